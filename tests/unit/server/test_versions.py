"""Which groups a broker of each version has."""

from __future__ import annotations

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.profile import PROFILES
from kgctl.server.api.fields import unsupported
from kgctl.server.service import default_registry
from kgctl.server.versions import features_of

SHARE_FETCH, STREAMS_GROUP_HEARTBEAT = 78, 88


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("3.9", {}),
        ("4.0", {"group.version": 1}),
        ("4.1", {"group.version": 1}),
        ("4.2", {"group.version": 1, "share.version": 1, "streams.version": 1}),
        ("4.3", {"group.version": 1, "share.version": 1, "streams.version": 1}),
    ],
)
def test_features_are_on_since_their_version(version: str, features: dict[str, int]) -> None:
    assert features_of(PROFILES[version]) == features


@pytest.mark.parametrize(("version", "there", "on"), [("4.0", False, False), ("4.1", True, False), ("4.2", True, True)])
def test_share_groups_are_there_before_they_are_on(version: str, *, there: bool, on: bool) -> None:
    spec = default_registry(CoordinatorConfig.from_properties({"kgctl.broker.version": version})).get(SHARE_FETCH)
    assert (spec is not None, spec is not None and spec.handler is not unsupported) == (there, on)


@pytest.mark.parametrize(
    ("given", "there", "on"),
    [
        ({"kgctl.broker.version": "4.1"}, False, False),
        ({"kgctl.broker.version": "4.2"}, True, True),
        ({}, True, True),
        ({"group.coordinator.rebalance.protocols": "classic,consumer"}, True, False),
    ],
)
def test_streams_groups_are_on_by_the_feature_and_among_the_protocols(given: dict[str, str], *, there: bool, on: bool) -> None:
    spec = default_registry(CoordinatorConfig.from_properties(given)).get(STREAMS_GROUP_HEARTBEAT)
    assert (spec is not None, spec is not None and spec.handler is not unsupported) == (there, on)
