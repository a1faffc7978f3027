"""What brokers of Kafka's versions answer: the highest version of each API, and the features that they announce.

Only what is lower than today's, or is not there at all, is in the table. What KIP-896 took away with 4.0, the oldest versions of
many APIs, is answered for no version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kgctl.server.request_context import SHARE_VERSION, STREAMS_VERSION, ApiRegistry, ApiSpec

if TYPE_CHECKING:
    from kgctl.coordinator.config import CoordinatorConfig
    from kgctl.coordinator.profile import Profile

_4_2: Mapping[str, int] = {"DescribeLogDirs": 4}
_4_1 = {
    **_4_2,
    "ListOffsets": 10,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "ShareFetch": 1,
    "ShareAcknowledge": 1,
    "DescribeShareGroupOffsets": 0,
    "StreamsGroupHeartbeat": -1,
    "StreamsGroupDescribe": -1,
}
_NO_SHARE_GROUPS = dict.fromkeys(
    (
        *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
        *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    ),
    -1,
)
_4_0 = {
    **_4_1,
    **_NO_SHARE_GROUPS,
    "Produce": 12,
    "Fetch": 17,
    "ListConfigResources": 0,
    "AlterPartitionReassignments": 0,
    "ListTransactions": 1,
}
_3_9 = {
    **_4_0,
    "Produce": 11,
    "ListOffsets": 9,
    "Metadata": 12,
    "DescribeGroups": 5,
    "EndTxn": 4,
    "TxnOffsetCommit": 4,
    "DescribeCluster": 1,
    "ConsumerGroupHeartbeat": 0,
    "ConsumerGroupDescribe": 0,
}
HIGHEST: Mapping[str, Mapping[str, int]] = {"3.9": _3_9, "4.0": _4_0, "4.1": _4_1, "4.2": _4_2}
"""Broker version -> API -> its highest version, -1 for an API that is not there."""


def registry_of(config: CoordinatorConfig, specs: Iterable[ApiSpec]) -> ApiRegistry:
    """Of these APIs, those that a broker of this version has, as far as it has them and is configured to answer them."""
    highest = HIGHEST.get(config.profile.version, {})
    limited = (replace(spec, max_version=min(spec.max_version, highest.get(spec.name, spec.max_version))) for spec in specs)
    return ApiRegistry(_switched(spec, config) for spec in limited if spec.max_version >= spec.min_version)


def _switched(spec: ApiSpec, config: CoordinatorConfig) -> ApiSpec:
    if spec.when_off is None or _is_on(spec, config):
        return spec
    return replace(spec, handler=spec.when_off)


def _is_on(spec: ApiSpec, config: CoordinatorConfig) -> bool:
    has_feature = not spec.feature or spec.feature in features_of(config.profile)
    return has_feature and (not spec.protocol or spec.protocol in config.group_coordinator_rebalance_protocols)


FEATURES: tuple[tuple[str, str, int], ...] = (("group.version", "4.0", 1), (SHARE_VERSION, "4.2", 1), (STREAMS_VERSION, "4.2", 1))
"""Each feature that stands for a kind of groups, the version since which it is on by itself, and its level."""


def features_of(profile: Profile) -> dict[str, int]:
    """The features of a broker of this version, with their levels."""
    return {name: level for name, since, level in FEATURES if profile.is_since(since)}
