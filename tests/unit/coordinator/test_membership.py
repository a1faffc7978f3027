"""The checks before a group is looked at."""

from __future__ import annotations

from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.streams.member import StreamsMember
from kgctl.coordinator.streams.records import current_assignment_record, group_record, member_record, topology_record
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult, LeaveGroupResult, MemberIdentity
from kgctl.model.share_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from kgctl.model.streams_topology import StreamsTopology
from tests.support.coordinator_harness import CoordinatorHarness


def harness_with(*records: CoordinatorRecord) -> CoordinatorHarness:
    """A coordinator that found these records of the group ``s``."""
    harness = CoordinatorHarness()
    harness.driver.load([AppendRecord(record) for record in records])
    return harness


def test_a_group_needs_a_name() -> None:
    harness = CoordinatorHarness()

    for name in (None, ""):
        assert harness.join("m", group=name).join == JoinGroupResult(error=ErrorCode.INVALID_GROUP_ID, member_id="m")
        assert harness.sync("m", 1, group=name).error is ErrorCode.INVALID_GROUP_ID
        assert harness.heartbeat("m", 1, group=name) is ErrorCode.INVALID_GROUP_ID
        assert harness.leave("m", group=name) == LeaveGroupResult(error=ErrorCode.INVALID_GROUP_ID)
    assert harness.log == []


def test_the_session_timeout_has_bounds() -> None:
    harness = CoordinatorHarness()

    for session_ms in (5_999, 1_800_001):
        call = harness.join("m", session_ms=session_ms)
        assert call.join == JoinGroupResult(error=ErrorCode.INVALID_SESSION_TIMEOUT, member_id="m")
    assert harness.list_groups() == []
    for session_ms in (6_000, 1_800_000):
        assert harness.join(session_ms=session_ms).error is ErrorCode.MEMBER_ID_REQUIRED


def test_nobody_is_in_a_group_that_is_not_there() -> None:
    harness = CoordinatorHarness()

    assert harness.join("m").join == JoinGroupResult(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id="m")
    assert harness.sync("m", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    result = harness.leave(MemberIdentity(member_id="m", group_instance_id="i"))
    assert [(m.member_id, m.group_instance_id, m.error) for m in result.members] == [("m", "i", ErrorCode.UNKNOWN_MEMBER_ID)]


def test_share_groups_have_no_classic_members() -> None:
    harness = CoordinatorHarness()
    record = CoordinatorRecord(ShareGroupMetadataKey("s"), ShareGroupMetadataValue(1))
    harness.driver.load([AppendRecord(record)])

    assert harness.join(group="s").join == JoinGroupResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert harness.sync("m", 1, group="s").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat("m", 1, group="s") is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.leave("m", group="s").members[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_streams_group_with_members_is_left_alone() -> None:
    harness = harness_with(
        group_record("s", 2, 0, 0, {}), member_record("s", StreamsMember("m")), current_assignment_record("s", StreamsMember("m"))
    )

    assert harness.join(group="s").join == JoinGroupResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def test_an_empty_streams_group_gives_way() -> None:
    harness = harness_with(group_record("s", 2, 0, 0, {}), topology_record("s", StreamsTopology(0)))

    assert harness.join(group="s").error is ErrorCode.MEMBER_ID_REQUIRED
    assert harness.list_groups() == [("s", "", "Empty", "classic")]
    assert len(harness.log) == 2 + 3 + 1
