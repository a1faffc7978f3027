"""LeaveGroup to a classic group."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult, LeaveGroupResult, MemberIdentity, MemberLeaveResult
from tests.support.coordinator_harness import CoordinatorHarness


def test_a_member_that_leaves_makes_the_others_rebalance() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2)

    assert harness.leave(leader) == LeaveGroupResult(members=(MemberLeaveResult(member_id=leader),))
    assert harness.group().leader_id == other
    assert harness.group().state == "PreparingRebalance"


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()

    harness.leave(member)

    assert (harness.group().state, harness.group().generation_id, harness.group().leader_id) == ("Empty", 2, None)


def test_each_identity_is_judged_by_itself() -> None:
    harness = CoordinatorHarness()
    ids = harness.stable_group(3, instances=["i", "j"])
    static = next(member for member in ids if member.startswith("i"))
    pending = harness.join().join.member_id
    identities = [
        MemberIdentity(group_instance_id="j"),
        MemberIdentity(group_instance_id="nobody"),
        MemberIdentity(),
        MemberIdentity(member_id=pending),
        MemberIdentity(member_id="ghost"),
        MemberIdentity(member_id="ghost", group_instance_id="i"),
        MemberIdentity(member_id=static, group_instance_id="i"),
    ]

    result = harness.leave(*identities)

    errors = [entry.error for entry in result.members]
    assert errors == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
    ]
    assert [entry.member_id for entry in result.members] == [identity.member_id for identity in identities]
    assert len(harness.group().members) == 1


def test_who_leaves_while_waiting_to_join_is_told_so() -> None:
    harness = CoordinatorHarness()
    leader, _ = harness.stable_group(2)
    waiting = harness.join(leader)

    harness.leave(leader)

    assert waiting.join == JoinGroupResult(error=ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_leave_may_complete_the_join_phase() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2)
    waiting = harness.join(leader)

    harness.leave(other)

    assert waiting.join.generation_id == 2


def test_a_leave_does_not_end_the_initial_phase() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]

    harness.leave("c-2")

    assert calls[0].is_parked
    assert harness.group().state == "PreparingRebalance"


def test_a_pending_id_leaves_an_empty_group_as_it_is() -> None:
    harness = CoordinatorHarness()
    pending = harness.join().join.member_id

    assert harness.leave(pending).members[0].error is ErrorCode.NONE
    assert harness.group().state == "Empty"
    harness.expect_timer(harness.group().session_timer(pending), at_ms=None)


def test_nobody_leaves_a_group_that_is_not_there() -> None:
    harness = CoordinatorHarness()

    assert harness.leave("m") == LeaveGroupResult(members=(MemberLeaveResult(member_id="m", error=ErrorCode.UNKNOWN_MEMBER_ID),))
