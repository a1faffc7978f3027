"""Heartbeat to a classic group, and the end of sessions."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupResult
from tests.support.coordinator_harness import CoordinatorHarness


def test_a_heartbeat_extends_the_session() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group()
    harness.sleep_ms(4_000)

    assert harness.heartbeat(member, 1) is ErrorCode.NONE
    harness.expect_timer(harness.group().session_timer(member), at_ms=harness.now_ms + 10_000)


def test_a_heartbeat_is_answered_by_state() -> None:
    harness = CoordinatorHarness()
    call = harness.join(version=3)
    assert harness.heartbeat("c-1", 0) is ErrorCode.REBALANCE_IN_PROGRESS
    harness.sleep_ms(3_000)
    assert call.join.generation_id == 1
    assert harness.heartbeat("c-1", 1) is ErrorCode.NONE
    harness.sync("c-1", 1)
    assert harness.heartbeat("c-1", 1) is ErrorCode.NONE
    harness.leave("c-1")
    assert harness.heartbeat("c-1", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_is_checked() -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group(instances=["i"])

    assert harness.heartbeat("ghost", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(member, 2) is ErrorCode.ILLEGAL_GENERATION
    assert harness.heartbeat("ghost", 1, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(member, 1, instance="i") is ErrorCode.NONE
    assert harness.heartbeat(member, 1, group="other") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_taken_out_and_the_rest_rebalances() -> None:
    harness = CoordinatorHarness()
    leader, silent = harness.stable_group(2)
    harness.sleep_ms(5_000)
    harness.heartbeat(leader, 1)
    harness.sleep_ms(9_000)

    assert list(harness.group().members) == [leader]
    assert harness.group().state == "PreparingRebalance"
    assert harness.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_silent_member_leaves_an_empty_group_behind() -> None:
    harness = CoordinatorHarness()
    harness.stable_group()
    harness.sleep_ms(10_000)

    assert (harness.group().state, harness.group().generation_id) == ("Empty", 2)


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    harness = CoordinatorHarness()
    harness.join(session_ms=6_000)

    harness.sleep_ms(5_999)
    assert harness.group().pending_joins
    harness.sleep_ms(1)
    assert not harness.group().pending_joins


def test_a_pending_id_that_expires_ends_the_wait_for_it() -> None:
    harness = CoordinatorHarness()
    (leader,) = harness.stable_group(session_ms=60_000)
    harness.join(session_ms=6_000)
    waiting = harness.join(leader, session_ms=60_000)
    assert waiting.is_parked

    harness.sleep_ms(6_000)

    assert waiting.join.generation_id == 2


def test_a_new_member_whose_client_is_gone_is_given_up() -> None:
    harness = CoordinatorHarness({"group.initial.rebalance.delay.ms": "400000"})
    call = harness.join(version=3, rebalance_ms=500_000)

    harness.sleep_ms(300_000)

    assert call.join == JoinGroupResult(error=ErrorCode.UNKNOWN_MEMBER_ID)
    assert harness.group().state == "Empty"


def test_a_member_that_waits_for_an_answer_is_not_silent() -> None:
    harness = CoordinatorHarness()
    leader, other = harness.stable_group(2, rebalance_ms=60_000)
    harness.join(leader, rebalance_ms=60_000)

    for _ in range(5):
        harness.sleep_ms(9_000)
        harness.heartbeat(other, 1)

    assert sorted(harness.group().members) == sorted([leader, other])
    harness.expect_timer(harness.group().session_timer(leader), at_ms=None)


def test_the_timer_of_an_id_that_was_replaced_does_nothing_even_without_a_group() -> None:
    harness = CoordinatorHarness()
    (old,) = harness.stable_group(instances=["i"], session_ms=30_000)
    new = harness.join(instance="i", session_ms=6_000).join.member_id
    key = harness.group().session_timer(old)
    harness.leave(new)
    harness.delete_groups("g")
    assert key in harness.shard.timers

    harness.sleep_ms(30_000)

    assert harness.list_groups() == []
    assert key not in harness.shard.timers
