"""The phases of a rebalance and their deadlines."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import SyncGroupResult
from tests.support.coordinator_harness import CoordinatorHarness


def two_in_completing() -> tuple[CoordinatorHarness, str, str]:
    """A group whose two members have joined and not synced: the leader, the other."""
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    leader = calls[0].join.leader
    return harness, leader, next(call.join.member_id for call in calls if call.join.member_id != leader)


def test_the_join_phase_waits_for_the_largest_rebalance_timeout() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2, session_ms=100_000)
    harness.join(other, topics=["u"], rebalance_ms=40_000, session_ms=100_000)
    harness.expect_timer(harness.group().join_timer, at_ms=harness.now_ms + 40_000)

    harness.sleep_ms(40_000)

    assert list(harness.group().members) == [other]
    assert (harness.group().leader_id, harness.group().generation_id) == (other, 2)
    assert harness.heartbeat(leader, 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_survive_the_end_of_the_join_phase() -> None:
    harness = CoordinatorHarness()
    static, dynamic = sorted(harness.stable_group(2, instances=["i"], session_ms=100_000), reverse=True)
    harness.join(dynamic, topics=["u"], session_ms=100_000)

    harness.sleep_ms(30_000)

    assert sorted(harness.group().members) == sorted([static, dynamic])
    assert harness.group().leader_id == dynamic


def test_with_only_absent_static_members_the_join_phase_starts_again() -> None:
    harness = CoordinatorHarness()
    static, dynamic = sorted(harness.stable_group(2, instances=["i"], session_ms=100_000), reverse=True)
    harness.leave(dynamic)

    harness.sleep_ms(30_000)

    assert harness.group().state == "PreparingRebalance"
    harness.expect_timer(harness.group().join_timer, at_ms=harness.now_ms + 30_000)
    harness.sleep_ms(70_000)
    assert static not in harness.group().members
    assert harness.group().state == "Empty"


def test_members_that_do_not_sync_in_time_are_taken_out() -> None:
    harness, leader, other = two_in_completing()
    waiting = harness.sync(other, 1)
    for _ in range(6):
        harness.sleep_ms(4_900)
        harness.heartbeat(leader, 1)
    harness.sleep_ms(600)

    assert waiting.sync == SyncGroupResult(error=ErrorCode.REBALANCE_IN_PROGRESS)
    assert (list(harness.group().members), harness.group().leader_id) == ([other], other)


def test_a_follower_that_never_syncs_is_taken_out_of_a_stable_group() -> None:
    harness, leader, other = two_in_completing()
    harness.sync(leader, 1)
    for _ in range(6):
        harness.sleep_ms(4_900)
        for member in (leader, other):
            harness.heartbeat(member, 1)
    harness.sleep_ms(600)

    assert list(harness.group().members) == [leader]
    assert harness.group().state == "PreparingRebalance"


def test_a_sync_timer_of_an_older_generation_does_nothing() -> None:
    harness, leader, other = two_in_completing()
    harness.join(leader, topics=["u"])
    harness.join(other, topics=["u"])

    assert harness.group().generation_id == 2
    harness.expect_timer(harness.group().sync_timer, at_ms=harness.now_ms + 30_000)


def test_a_parked_sync_of_a_member_that_leaves_is_never_answered() -> None:
    harness, _, other = two_in_completing()
    waiting = harness.sync(other, 1)

    harness.leave(other)
    harness.sleep_ms(120_000)

    assert waiting.is_parked


def test_the_initial_phase_starts_over_when_an_expiry_empties_it() -> None:
    """Kafka asks only whether everybody has joined, and of nobody that is true."""
    harness = CoordinatorHarness({"group.initial.rebalance.delay.ms": "400000"})
    harness.join(version=3, rebalance_ms=900_000)
    harness.sleep_ms(300_000)
    assert harness.group().state == "Empty"

    harness.join(version=3)
    assert harness.group().is_initial_rebalance
