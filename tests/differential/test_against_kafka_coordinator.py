"""Kafka's own coordinator and the core do the same with generated sequences; the deep run is `tests.differential.search`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from kgctl.coordinator.timers import TimerKind
from tests.conformance.replay import load
from tests.differential.choices import drawn_by_hypothesis
from tests.differential.oracle import LATEST, VERSIONS, KafkaCoordinator
from tests.differential.search import GOLDEN, Tally, build, differences, run
from tests.differential.sequences import KINDS, MOVES
from tests.differential.verdict import verdict

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

OLDER = [version for version in VERSIONS if version != LATEST]
SEQUENCES = 2_000 if settings.get_current_profile_name() == "deep" else 20
RECORDED = GOLDEN.parents[1] / "conformance" / "cases" / "coordinator_generated.jsonl.gz"


_STREAMS_TIMERS = (TimerKind.STREAMS_SESSION, TimerKind.STREAMS_REBALANCE, TimerKind.STREAMS_INITIAL_REBALANCE)
_NO_TIMERS_OF_THESE = (TimerKind.STUCK_REBALANCE, TimerKind.DELETE_OFFSETS, TimerKind.SHARE_SESSION, *_STREAMS_TIMERS)
REACHED = {
    "timers": {kind.value for kind in TimerKind if kind not in _NO_TIMERS_OF_THESE},
    "records": {
        "GroupMetadata",
        "GroupMetadata tombstone",
        "OffsetCommit",
        "OffsetCommit tombstone",
        "marker",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupMemberMetadata tombstone",
        "ConsumerGroupRegularExpression",
        "ConsumerGroupRegularExpression tombstone",
        "ShareGroupMetadata tombstone",
        "StreamsGroupTopology tombstone",
    },
    "changes of groups": {
        "none -> classic PreparingRebalance",
        "classic PreparingRebalance -> classic CompletingRebalance",
        "classic CompletingRebalance -> classic Stable",
        "classic Stable -> classic PreparingRebalance",
        "classic Stable -> consumer Reconciling",
        "consumer Stable -> consumer Assigning",
        "consumer Assigning -> consumer Reconciling",
        "consumer Reconciling -> consumer Stable",
        "consumer Stable -> classic PreparingRebalance",
        "consumer Empty -> none",
    },
    "changes of members": {
        "STABLE -> UNREVOKED_PARTITIONS",
        "STABLE -> UNRELEASED_PARTITIONS",
        "UNREVOKED_PARTITIONS -> STABLE",
        "UNRELEASED_PARTITIONS -> STABLE",
        "classic -> STABLE",
        "STABLE -> classic",
    },
    "answers": {
        "cg_heartbeat 0 static: UNRELEASED_INSTANCE_ID",
        "cg_heartbeat n: FENCED_MEMBER_EPOCH",
        "join: MEMBER_ID_REQUIRED",
        "join: INCONSISTENT_GROUP_PROTOCOL",
        "sync: NONE",
        "sync: REBALANCE_IN_PROGRESS",
        "heartbeat: ILLEGAL_GENERATION",
        "offset_commit: STALE_MEMBER_EPOCH",
        "offset_fetch: UNSTABLE_OFFSET_COMMIT",
        "offset_delete: GROUP_SUBSCRIBED_TO_TOPIC",
        "delete_groups: NON_EMPTY_GROUP",
        "group_config: NONE",
        "reload: NONE",
    },
}
"""What has to occur in any run: a generator that no longer gets there proves less than it seems to."""
SHARES_REACHED = {
    "records": {
        "ShareGroupStatePartitionMetadata",
        "ShareGroupTargetAssignmentMember",
        "ShareGroupCurrentMemberAssignment tombstone",
    },
    "changes of groups": {"none -> share Stable", "share Stable -> share Empty"},
    "answers": {
        "share_heartbeat n: FENCED_MEMBER_EPOCH",
        "alter_share_offsets: NON_EMPTY_GROUP",
        "delete_share_offsets: NONE",
        "describe_share_groups: NONE",
    },
}
"""And in a run of share groups."""
STREAMS_REACHED = {
    "timers": {kind.value for kind in _STREAMS_TIMERS},
    "records": {
        "StreamsGroupTopology",
        "StreamsGroupTargetAssignmentMember",
        "StreamsGroupCurrentMemberAssignment tombstone",
        "StreamsGroupMetadata tombstone",
    },
    "changes of groups": {
        "none -> streams NotReady",
        "none -> streams Assigning",
        "streams NotReady -> streams Stable",
        "streams Assigning -> streams Reconciling",
        "streams Reconciling -> streams Stable",
        "streams Stable -> streams Empty",
        "streams Empty -> classic PreparingRebalance",
    },
    "changes of members": {"STABLE -> UNREVOKED_TASKS", "STABLE -> UNRELEASED_TASKS", "UNREVOKED_TASKS -> STABLE"},
    "answers": {
        "streams_heartbeat n: FENCED_MEMBER_EPOCH",
        "streams_heartbeat 0: GROUP_MAX_SIZE_REACHED",
        "streams_heartbeat 0: STREAMS_INVALID_TOPOLOGY",
        "describe_streams_groups: NONE",
        "offset_commit: STALE_MEMBER_EPOCH",
    },
}
"""And in a run of streams groups."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCoordinator]:
    """Kafka's coordinator in virtual time."""
    partner = KafkaCoordinator()
    try:
        yield partner
    finally:
        partner.close()


def test_generated_sequences_go_as_in_kafka(kafka: KafkaCoordinator) -> None:
    tally = Tally()

    @settings(max_examples=SEQUENCES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def search(data: DataObject) -> None:
        built = build(drawn_by_hypothesis(data))

        assert differences(built, kafka.expect(built.case), tally) == [], built.case

    search()


@pytest.mark.parametrize("sequences", [420, pytest.param(20_000, marks=pytest.mark.deep)])
def test_seeded_sequences_go_as_in_kafka_and_reach_what_they_should(
    kafka: KafkaCoordinator, tmp_path: Path, sequences: int
) -> None:
    """Many more, and the same each time; `tests.differential.search` takes other seeds."""
    tally = run(kafka, sequences, start=1, folder=tmp_path)

    assert [path.read_text(encoding="utf-8") for path in tally.differing] == []
    assert tally.sequences == sequences
    missing = {kind: reached - tally.coverage.seen[kind].keys() for kind, reached in REACHED.items()}
    assert {kind: found for kind, found in missing.items() if found} == {}


@pytest.mark.parametrize("sequences", [90, pytest.param(20_000, marks=pytest.mark.deep)])
def test_static_members_that_change_protocol_time_and_again_go_as_in_kafka(
    kafka: KafkaCoordinator, tmp_path: Path, sequences: int
) -> None:
    """Several moves within one rebalance time-out: no timer of an earlier form of the group may act on a later one."""
    tally = run(kafka, sequences, start=1, folder=tmp_path, themes=MOVES)

    assert [path.read_text(encoding="utf-8") for path in tally.differing] == []
    seen = tally.coverage.seen["changes of groups"]
    assert sum(seen[change] for change in seen if change.startswith("classic") and "-> consumer" in change) > sequences / 4
    assert sum(seen[change] for change in seen if change.startswith("consumer") and "-> classic" in change) > sequences / 4


@pytest.mark.parametrize(("version", "sequences"), [("4.3", 60), ("4.2", 25)])
def test_share_groups_go_as_in_kafka(version: str, sequences: int, tmp_path: Path) -> None:
    """With a Persister whose answers are steps: well, ill, late or never. ``--about share`` is the deep run."""
    kafka = KafkaCoordinator(version)
    tally = run(kafka, sequences, start=1, folder=tmp_path, themes=KINDS["share"])
    kafka.close()

    assert [path.read_text(encoding="utf-8") for path in tally.differing] == []
    missing = {kind: reached - tally.coverage.seen[kind].keys() for kind, reached in SHARES_REACHED.items()}
    assert {kind: found for kind, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    ("version", "sequences"), [("4.3", 250), ("4.2", 25), pytest.param("4.3", 20_000, marks=pytest.mark.deep)]
)
def test_streams_groups_go_as_in_kafka(version: str, sequences: int, tmp_path: Path) -> None:
    """With internal topics that somebody makes, well, ill, late or never. ``--about streams`` is the deep run."""
    kafka = KafkaCoordinator(version)
    tally = run(kafka, sequences, start=1, folder=tmp_path, themes=KINDS["streams"])
    kafka.close()

    assert [path.read_text(encoding="utf-8") for path in tally.differing] == []
    if version == LATEST:
        missing = {kind: reached - tally.coverage.seen[kind].keys() for kind, reached in STREAMS_REACHED.items()}
        assert {kind: found for kind, found in missing.items() if found} == {}


@pytest.mark.parametrize(
    ("version", "sequences"),
    [
        *((version, 25) for version in OLDER),
        *(pytest.param(version, 5_000, marks=pytest.mark.deep, id=f"{version}-deep") for version in VERSIONS),
    ],
)
@pytest.mark.parametrize("about", ["classic", "consumer", "mixed", "offsets"])
def test_each_version_goes_as_that_versions_coordinator(version: str, sequences: int, about: str, tmp_path: Path) -> None:
    kafka = KafkaCoordinator(version)
    tally = run(kafka, sequences, start=5, folder=tmp_path, themes=KINDS[about])
    kafka.close()

    assert [path.read_text(encoding="utf-8") for path in tally.differing] == []
    assert tally.sequences == sequences


def test_recorded_sequences_go_as_recorded_in_kafka_itself(kafka: KafkaCoordinator) -> None:
    """The oracle answers what the sequences' authors saw, so that its word can be taken."""
    for case in list(load(RECORDED))[::20]:
        assert verdict(case, kafka.expect(case)) == [], case["id"]
