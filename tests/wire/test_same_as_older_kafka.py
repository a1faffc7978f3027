"""What is said about groups and offsets, to kgctl serve as a broker of an older version and to that version of Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.coordinator.config import BROKER_VERSION, CoordinatorConfig
from kgctl.server.background import BackgroundServer
from kgctl.server.service import default_registry
from tests.support.kafka import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating
from tests.wire.differential.about_rights import of_share_groups
from tests.wire.differential.conversations import CONVERSATIONS
from tests.wire.differential.probe import Probe
from tests.wire.differential.talk import create_topic
from tests.wire.test_same_as_kafka import CONFIG, compare, ranges_of

pytestmark = pytest.mark.kafka

RELEASES = {"3.9": "3.9.1", "4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0"}
EVERY_TIME = "4.0"
"""The others are for deep runs."""
ABOUT_GROUPS = range(8, 17)
"""OffsetCommit to ListGroups."""
MORE = (42, 47, 68, 69)
SHARE = (76, 77, 78, 79, 90, 92)
STREAMS = (88, 89)
"""Of share groups, and of streams groups, which are on since 4.2."""
LEFT_OUT = {
    ("3.9", "committing too much"): "a partition that is named twice is answered once by its classic coordinator",
    ("3.9", "fetching offsets"): "an OffsetFetch for no group is never answered",
    ("4.0", "fetching offsets"): "an OffsetFetch for no group is never answered",
    ("4.2", "share offsets"): "the lag of a group that was just reset is not told",
    ("4.2", "streams settings"): "a group's settings are described with other synonyms",
    ("4.2", "streams topics that cannot be made"): "its controller's words know no log directories that are cordoned",
    ("3.9", "subscribing by expression"): "its ConsumerGroupHeartbeat has no expressions",
}
"""Where a version does otherwise than kgctl as that version, or has nothing to say."""


def _cases() -> Iterator[Any]:
    keys = {name: api_key for name, (api_key, _) in CONVERSATIONS.items()}
    for version in RELEASES:
        wanted = {*ABOUT_GROUPS, *MORE, *((*SHARE, *STREAMS) if version == "4.2" else ())}
        for name, api_key in keys.items():
            if api_key in wanted and (version, name) not in LEFT_OUT:
                yield pytest.param(version, name, marks=_marks(version))


def _marks(version: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if version == EVERY_TIME else (pytest.mark.deep,)


@pytest.fixture(scope="module")
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """A version, that version's Kafka, and kgctl as one of it."""
    version = request.param
    kafka = KafkaBroker(tmp_path_factory.mktemp(f"kafka-{version}"), release=RELEASES[version])
    try:
        kafka.start()
        wait_until_coordinating(kafka.bootstrap)
        with BackgroundServer(config={**CONFIG, BROKER_VERSION: version}) as ours:
            yield version, kafka.bootstrap, ours.bootstrap
    finally:
        kafka.stop()


@pytest.mark.parametrize(("brokers", "name"), list(_cases()), indirect=["brokers"])
def test_every_answer_is_that_versions(name: str, brokers: tuple[str, str, str]) -> None:
    version, kafka, ours = brokers
    api_key, conversation = CONVERSATIONS[name]
    spec = default_registry(CoordinatorConfig.from_properties({BROKER_VERSION: version})).get(api_key)
    assert spec is not None
    compare(name, conversation, spec.max_version, (kafka, ours))


@pytest.mark.parametrize("brokers", [pytest.param("4.1", marks=_marks("4.1"))], indirect=True)
def test_share_groups_that_are_off_are_refused_as_by_that_version(brokers: tuple[str, str, str]) -> None:
    version, kafka, ours = brokers
    registry = default_registry(CoordinatorConfig.from_properties({BROKER_VERSION: version}))

    def asking(probe: Probe, _: int, name: str) -> None:
        for api_key, values in of_share_groups(name, create_topic(probe, name), lambda _: 0):
            spec = registry.get(api_key)
            assert spec is not None
            probe.call(api_key, spec.max_version, values)

    compare("share groups off", asking, 0, (kafka, ours))


@pytest.mark.parametrize("brokers", [pytest.param(each, marks=_marks(each)) for each in RELEASES], indirect=True)
def test_the_versions_of_its_apis_are_that_versions(brokers: tuple[str, str, str]) -> None:
    """But for those that KIP-896 took away with 4.0, which kgctl does not read."""
    _, kafka, ours = brokers
    theirs, own = ranges_of(kafka), ranges_of(ours)

    assert {key: highest for key, (_, highest) in own.items()} == {key: theirs[key][1] for key in own}
