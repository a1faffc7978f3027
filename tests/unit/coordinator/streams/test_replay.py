"""A streams group that is loaded: what its records say, its sessions, and the tombstones of what is not there."""

from __future__ import annotations

import pytest

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.shard import apply_record
from kgctl.coordinator.share.group import ShareMember
from kgctl.coordinator.share.records import group_record as share_group_record
from kgctl.coordinator.share.records import member_record as share_member_record
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import HeldTasks, StreamsMember, StreamsMemberState
from kgctl.coordinator.streams.records import (
    current_assignment_record,
    group_record,
    group_tombstone_keys,
    member_record,
    member_tombstone_keys,
    target_metadata_record,
    topology_record,
)
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import (
    AssignedTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    UserEndpoint,
)
from tests.support.coordinator_harness import CoordinatorHarness
from tests.unit.coordinator.streams.tasks import PLAIN, Streams, ids


def two_members() -> Streams:
    """One of them has to give tasks up."""
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 2)
    return streams


def test_a_group_is_the_same_after_a_reload_and_its_times_start_anew() -> None:
    streams = two_members()
    streams.harness.sleep_ms(20_000)
    before = streams.harness.driver.coordinator.durable()

    streams.harness.driver.reload()

    assert streams.harness.driver.coordinator.durable() == before
    streams.harness.sleep_ms(29_999)
    assert sorted(streams.state.members) == ["m", "n"]
    streams.harness.sleep_ms(1)
    assert sorted(streams.state.members) == ["n"]
    streams.harness.sleep_ms(15_000)
    assert streams.state.is_empty


def test_what_could_not_be_written_is_as_before() -> None:
    streams = two_members()
    core = streams.harness.driver.coordinator
    written = GroupCoordinator(streams.harness.driver.config, str, streams.harness.driver.image)
    for entry in streams.harness.log:
        written.replay(entry.record)
    streams.beat("o")

    core.restore({"g": False}, written, streams.harness.now_ms)

    assert sorted(streams.state.members) == ["m", "n"]
    timers = sorted(f"{key.kind} {key.member_id}" for key in core.shard.timers.keys() if key.group_id)  # noqa: SIM118
    assert timers == ["streams-rebalance m", "streams-session m", "streams-session n"]
    core.check()


@pytest.mark.parametrize("keys", [group_tombstone_keys("g", ["m"]), member_tombstone_keys("g", "m")])
def test_tombstones_of_what_is_not_there_change_nothing(keys: list[object]) -> None:
    records = [CoordinatorRecord(key, None) for key in keys]  # type: ignore[arg-type]

    assert loaded(*records).list_groups() == []


def loaded(*records: CoordinatorRecord) -> CoordinatorHarness:
    """A coordinator whose log has these records."""
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(record) for record in records])
    return harness


def test_an_empty_group_is_deleted_with_kafkas_tombstones() -> None:
    streams = two_members()
    assert streams.harness.delete_groups("g") == [ErrorCode.NON_EMPTY_GROUP]
    for member_id in ("m", "n"):
        streams.beat(member_id, -1)
    before = len(streams.harness.log)

    assert streams.harness.delete_groups("g") == [ErrorCode.NONE]

    appended = [entry.record for entry in streams.harness.log[before:]]
    assert appended == [CoordinatorRecord(key, None) for key in group_tombstone_keys("g", [])]
    assert streams.harness.any_group("g") is None


def test_who_leaves_is_taken_out_of_the_log() -> None:
    streams = two_members()
    before = len(streams.harness.log)

    streams.beat("n", -1)

    appended = [entry.record for entry in streams.harness.log[before:]]
    tombstones = [CoordinatorRecord(key, None) for key in member_tombstone_keys("g", "n")]
    assert appended == [*tombstones, group_record("g", 4, streams.state.metadata_hash, 0, {"num.standby.replicas": "0"})]


def test_a_name_is_one_groups_but_for_a_group_without_members() -> None:
    share = [share_group_record("g", 2, 0), share_member_record("g", ShareMember("m"))]

    with pytest.raises(InvariantViolation, match="a streams-group record for 'g', which is a share group"):
        loaded(*share, group_record("g", 2, 0, 0, {}))
    assert loaded(share[0], group_record("g", 2, 0, 0, {})).list_groups() == [("g", "streams", "Empty", "streams")]


def test_records_of_older_brokers_and_odd_ones_are_read_as_kafka_reads_them() -> None:
    """No epochs of tasks, or too few: since the member's epoch. No settings of the assignor. A state of a newer broker."""
    tasks = (AssignedTaskIds("0", (1, 0)), AssignedTaskIds("1", (0, 1), (2,)), AssignedTaskIds("2", (0,), (3,)))
    value = StreamsGroupCurrentMemberAssignmentValue(5, 4, 9, tasks, standby_tasks=(AssignedTaskIds("0", (2,)),))
    key = StreamsGroupCurrentMemberAssignmentKey("g", "m")
    harness = loaded(
        CoordinatorRecord(StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(6)),
        target_metadata_record("g", 6, 0),
        member_record("g", StreamsMember("m")),
        CoordinatorRecord(key, value),
    )
    group = harness.any_group("g")
    assert isinstance(group, StreamsGroup)

    assert group.last_assignment_configs == {}
    assert group.members["m"] == StreamsMember(
        "m",
        5,
        4,
        StreamsMemberState.UNKNOWN,
        assigned=HeldTasks({"0": {0: 5, 1: 5}, "1": {0: 5, 1: 5}, "2": {0: 3}}, {"0": {2: 0}}),
    )


def test_what_a_broker_that_did_not_say_so_has_validated_bumps_the_epoch() -> None:
    streams = Streams()
    streams.beat("m")
    known = streams.state.metadata_hash
    record = group_record("g", 2, known, -1, {"num.standby.replicas": "0"})
    streams.harness.driver.load([AppendRecord(record)])

    assert streams.beat("m", 2).member_epoch == 3
    assert streams.state.validated_topology_epoch == 0


def test_a_member_whose_tasks_are_gone_from_the_log_has_none() -> None:
    streams = two_members()
    tombstone = CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey("g", "m"), None)
    shard = streams.harness.driver.coordinator.shard

    apply_record(shard, tombstone)

    member = streams.state.members["m"]
    assert (member.member_epoch, member.previous_member_epoch) == (-1, -1)
    assert (member.assigned, member.pending_revocation) == (HeldTasks(), HeldTasks())
    assert not streams.state.processes.is_processed("0", 0)


def test_tasks_that_the_topology_does_not_have_are_at_no_endpoint() -> None:
    """The log of the topology is lost, and the members declare another one."""
    streams = Streams()
    member = StreamsMember("m", 2, 1, user_endpoint=UserEndpoint("h", 1), assigned=HeldTasks({"old": {0: 2}}))
    records = [group_record("g", 2, 0, 0, {}), target_metadata_record("g", 2, 0), member_record("g", member)]
    records.append(current_assignment_record("g", member))
    streams.harness.driver.load([AppendRecord(record) for record in records])

    assert streams.beat("n", user_endpoint=UserEndpoint("h", 2)).error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_member_of_an_unknown_state_begins_anew() -> None:
    streams = Streams()
    records = [group_record("g", 2, 0, 0, {}), topology_record("g", PLAIN), member_record("g", StreamsMember("m"))]
    value = StreamsGroupCurrentMemberAssignmentValue(1, 1, 9)
    records.append(CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey("g", "m"), value))
    streams.harness.driver.load([AppendRecord(record) for record in records])

    refused = streams.owns("m", ids(0))
    assert (refused.error, refused.error_message) == (
        ErrorCode.FENCED_MEMBER_EPOCH,
        "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
    )
    assert streams.beat("m", 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert streams.beat("m").active_tasks == ids(0, 1, 2, 3)


@pytest.mark.parametrize("missing", ["metadata", "assignment"])
def test_a_member_of_which_a_record_is_missing_fails_as_in_kafka(missing: str) -> None:
    streams = Streams()
    member = StreamsMember("m", 2, 1)
    record = current_assignment_record("g", member) if missing == "metadata" else member_record("g", member)
    records = [group_record("g", 3, 0, 0, {}), target_metadata_record("g", 2, 0), topology_record("g", PLAIN), record]
    streams.harness.driver.load([AppendRecord(record) for record in records])

    assert streams.beat("m").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert streams.describe("g", "k") == tuple(
        type(group)(group_id=group.group_id, error=ErrorCode.UNKNOWN_SERVER_ERROR) for group in streams.describe("g", "k")
    )
    expected = ErrorCode.NONE if missing == "metadata" else ErrorCode.UNKNOWN_SERVER_ERROR
    assert streams.harness.commit({"a-0": 1}, "m", 2, version=9, group="g") == {"a-0": expected}
    assert streams.harness.fetch("a-0", group="g", member_id="m", member_epoch=2).error is expected
    assert streams.harness.commit({"a-0": 1}, "m", 2, version=8, group="g") == {"a-0": ErrorCode.UNSUPPORTED_VERSION}
    assert streams.beat("n").error is (ErrorCode.UNKNOWN_SERVER_ERROR if missing == "metadata" else ErrorCode.NONE)
    streams.harness.sleep_ms(45_000)
    assert "m" not in streams.state.members
