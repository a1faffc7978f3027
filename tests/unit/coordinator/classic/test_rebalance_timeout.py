"""Whom a rebalance waits for, and rebalances that are stuck."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import AwaitedMember, RebalanceStatus
from tests.support.coordinator_harness import CoordinatorHarness

LIMIT = {"kgctl.rebalance.stuck.timeout.ms": "20000"}


def status(harness: CoordinatorHarness, group: str = "g") -> RebalanceStatus | None:
    """The status now."""
    return harness.driver.coordinator.rebalance_status(group, harness.now_ms)


def test_a_stable_group_waits_for_nobody() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()

    assert status(harness) == RebalanceStatus(group_id="g", state="Stable", generation_id=1)
    assert status(harness, "other") is None


def test_the_initial_phase_waits_for_time_and_for_ids_handed_out() -> None:
    harness = CoordinatorHarness()
    pending = harness.join(session_ms=8_000).join.member_id
    harness.sleep_ms(1_000)
    harness.join(version=3)

    assert status(harness) == RebalanceStatus(
        group_id="g",
        state="PreparingRebalance",
        generation_id=0,
        waiting_for="initial-delay",
        started_ms=1_000,
        deadline_ms=4_000,
        awaited=(AwaitedMember(member_id=pending, group_instance_id=None, waiting_for="join", session_deadline_ms=8_000),),
    )


def test_the_join_phase_waits_for_members_that_have_not_joined() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2)
    harness.join(leader)

    current = status(harness)

    assert current is not None
    assert (current.waiting_for, current.deadline_ms) == ("join", harness.now_ms + 30_000)
    assert [member.member_id for member in current.awaited] == [other]
    assert not current.is_stuck


def test_the_sync_phase_waits_for_members_that_have_not_synced() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    follower = next(call.join.member_id for call in calls if not call.join.members)
    harness.sync(follower, 1)

    current = status(harness)

    assert current is not None
    assert (current.waiting_for, current.started_ms, current.deadline_ms) == ("sync", 0, 36_000)
    assert [member.member_id for member in current.awaited] == [calls[0].join.leader]


def test_absent_static_members_get_a_rebalance_stuck() -> None:
    harness = CoordinatorHarness()
    _, dynamic = sorted(harness.stable_group(2, instances=["i"], session_ms=1_800_000), reverse=True)
    harness.leave(dynamic)

    harness.sleep_ms(600_000)
    assert status(harness) is not None
    assert not getattr(status(harness), "is_stuck", None)
    harness.sleep_ms(1)
    assert getattr(status(harness), "is_stuck", None)
    assert harness.group().state == "PreparingRebalance"


def test_with_a_limit_a_stuck_rebalance_is_completed() -> None:
    harness = CoordinatorHarness(LIMIT)
    _, dynamic = sorted(harness.stable_group(2, instances=["i"], session_ms=1_800_000), reverse=True)
    harness.leave(dynamic)

    harness.sleep_ms(19_999)
    assert harness.group().state == "PreparingRebalance"
    harness.sleep_ms(1)
    assert (harness.group().state, harness.group().generation_id) == ("Empty", 2)


def test_progress_puts_the_limit_off_and_the_end_removes_it() -> None:
    harness = CoordinatorHarness(LIMIT)
    leader, other = harness.stable_group(2, session_ms=60_000)
    harness.join(leader, session_ms=60_000)
    harness.sleep_ms(15_000)
    harness.join(other, session_ms=60_000)
    harness.expect_timer(harness.group().stuck_timer, at_ms=harness.now_ms + 20_000)

    harness.sync(leader, 2)

    harness.expect_timer(harness.group().stuck_timer, at_ms=None)


def test_a_sync_phase_without_progress_drops_those_it_waits_for() -> None:
    harness = CoordinatorHarness(LIMIT)
    calls = [harness.join(version=3, session_ms=60_000), harness.join(version=3, session_ms=60_000)]
    harness.sleep_ms(6_000)
    follower = next(call.join.member_id for call in calls if not call.join.members)
    waiting = harness.sync(follower, 1)

    harness.sleep_ms(20_000)

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(harness.group().members) == [follower]


def test_an_administrator_may_complete_a_rebalance_now() -> None:
    harness = CoordinatorHarness()
    leader, _ = harness.stable_group(2)
    pending = harness.join().join.member_id
    waiting = harness.join(leader)

    assert harness.force_complete() is ErrorCode.NONE
    assert waiting.join.generation_id == 2
    assert harness.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_there_must_be_a_rebalance_to_complete() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()

    assert harness.force_complete() is ErrorCode.INVALID_REQUEST
    assert harness.force_complete("other") is ErrorCode.GROUP_ID_NOT_FOUND
