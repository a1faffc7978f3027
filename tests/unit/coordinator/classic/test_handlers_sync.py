"""SyncGroup to a classic group."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import SyncGroupResult
from tests.support.coordinator_harness import CoordinatorHarness, subscription


def test_followers_wait_for_the_leader() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    leader = calls[0].join.leader
    follower = next(call.join.member_id for call in calls if call.join.member_id != leader)

    waiting = harness.sync(follower, 1)
    assert waiting.is_parked
    answered = harness.sync(leader, 1, {leader: b"one", follower: b"two", "stranger": b"three"})

    assert answered.sync == SyncGroupResult(protocol_type="consumer", protocol_name="range", assignment=b"one")
    assert waiting.sync.assignment == b"two"
    assert harness.group().state == "Stable"
    harness.expect_timer(harness.group().sync_timer, at_ms=None)


def test_the_leaders_sync_is_recorded_with_the_time_the_join_phase_ended() -> None:
    harness = CoordinatorHarness()
    harness.join(instance="i")
    harness.sleep_ms(3_500)
    harness.sync("i-1", 1, {"i-1": b"all"}, instance="i")

    member = MemberMetadata("i-1", "i", "c", "/127.0.0.1", 30_000, 10_000, subscription("t"), b"all")
    value = GroupMetadataValue("consumer", 1, "range", "i-1", current_state_timestamp_ms=3_000, members=(member,))
    assert harness.log[-1].record == CoordinatorRecord(GroupMetadataKey("g"), value)


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    harness = CoordinatorHarness()
    harness.join(version=3)
    harness.sleep_ms(3_000)

    assert harness.sync("c-1", 1).sync == SyncGroupResult(protocol_type="consumer", protocol_name="range")


def test_a_late_follower_is_answered_at_once_in_stable() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    leader = calls[0].join.leader
    follower = next(call.join.member_id for call in calls if call.join.member_id != leader)
    harness.sync(leader, 1, {follower: b"two"})
    harness.expect_timer(harness.group().sync_timer, at_ms=36_000)

    assert harness.sync(follower, 1, {follower: b"ignored"}).sync.assignment == b"two"
    harness.expect_timer(harness.group().sync_timer, at_ms=None)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"member_id": "ghost", "instance": None}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "j"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "ghost", "instance": "i"}, ErrorCode.FENCED_INSTANCE_ID),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "range", "protocol_type": "consumer"}, ErrorCode.NONE),
    ],
)
def test_a_sync_is_checked(arguments: dict[str, Any], error: ErrorCode) -> None:
    harness = CoordinatorHarness()
    (member,) = harness.stable_group(instances=["i"])

    fields: dict[str, Any] = {"member_id": member, "generation": 1, "instance": "i"} | arguments
    assert harness.sync(**fields).error is error


def test_a_sync_during_the_join_phase_is_told_to_rejoin() -> None:
    harness = CoordinatorHarness()
    leader, follower = harness.stable_group(2)
    harness.join(leader)

    assert harness.sync(follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_empty_group_knows_nobody() -> None:
    harness = CoordinatorHarness()
    harness.join()

    assert harness.sync("c-1", 0).error is ErrorCode.UNKNOWN_MEMBER_ID
