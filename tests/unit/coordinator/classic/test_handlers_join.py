"""JoinGroup to a classic group."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.classic.handlers import NEW_MEMBER_JOIN_TIMEOUT_MS
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey, GroupMetadataValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import JoinGroupMember, JoinGroupResult, SyncGroupResult
from tests.support.coordinator_harness import CoordinatorHarness, subscription


def test_a_dynamic_member_is_first_given_an_id() -> None:
    harness = CoordinatorHarness()

    call = harness.join()

    assert call.join == JoinGroupResult(error=ErrorCode.MEMBER_ID_REQUIRED, member_id="c-1")
    assert list(harness.group().pending_joins) == ["c-1"]
    harness.expect_timer(harness.group().session_timer("c-1"), at_ms=10_000)


def test_even_a_refused_join_creates_the_group_with_an_empty_record() -> None:
    harness = CoordinatorHarness()

    call = harness.join(protocols=())

    assert call.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    empty = GroupMetadataValue("", 0, None, None, current_state_timestamp_ms=0)
    assert [entry.record for entry in harness.log] == [CoordinatorRecord(GroupMetadataKey("g"), empty)]


def test_an_old_client_joins_at_once() -> None:
    harness = CoordinatorHarness()

    call = harness.join(version=3)

    assert call.is_parked
    assert harness.group().state == "PreparingRebalance"
    harness.expect_timer(harness.group().session_timer("c-1"), at_ms=NEW_MEMBER_JOIN_TIMEOUT_MS)
    harness.expect_timer(harness.group().join_timer, at_ms=3_000)


def test_a_static_member_joins_at_once_under_its_instance_id() -> None:
    harness = CoordinatorHarness()

    call = harness.join(instance="i")
    harness.sleep_ms(3_000)

    assert call.join == JoinGroupResult(
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="i-1",
        member_id="i-1",
        members=(JoinGroupMember(member_id="i-1", group_instance_id="i", metadata=subscription("t")),),
    )


def test_the_leader_is_told_of_all_members_and_the_others_of_none() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)

    leaders = [call.join for call in calls if call.join.member_id == call.join.leader]

    assert [sorted(m.member_id for m in leader.members) for leader in leaders] == [["c-1", "c-2"]]
    assert sorted(len(call.join.members) for call in calls) == [0, 2]


def test_the_initial_delay_is_extended_by_newcomers_up_to_the_rebalance_timeout() -> None:
    harness = CoordinatorHarness()
    first = harness.join(version=3, rebalance_ms=7_000)
    harness.sleep_ms(2_000)
    harness.join(version=3)
    harness.sleep_ms(3_000)
    harness.join(version=3)
    harness.sleep_ms(60_000)

    assert first.answered_at_ms == 7_000


def test_without_a_newcomer_the_initial_delay_is_not_extended() -> None:
    harness = CoordinatorHarness()

    call = harness.join(version=3)
    harness.sleep_ms(60_000)

    assert call.answered_at_ms == 3_000


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"protocols": ["sticky"]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "ghost", "instance": "i"}, ErrorCode.FENCED_INSTANCE_ID),
        ({"member_id": "ghost", "instance": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_does_not_fit_is_refused_with_its_id(arguments: dict[str, Any], error: ErrorCode) -> None:
    harness = CoordinatorHarness()
    harness.stable_group(instances=["i"])

    call = harness.join(**arguments)

    assert call.join == JoinGroupResult(error=error, member_id=arguments.get("member_id", ""))
    assert harness.group().state == "Stable"


def test_an_instance_id_with_an_id_that_was_only_handed_out_is_a_client_s_bug() -> None:
    harness = CoordinatorHarness()
    member_id = harness.join().join.member_id

    assert harness.join(member_id, instance="i").error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_full_group_refuses_newcomers_but_not_its_members() -> None:
    harness = CoordinatorHarness({"group.max.size": "1"})
    (member,) = harness.stable_group()

    assert harness.join(version=3).join == JoinGroupResult(error=ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert harness.join(member).join.generation_id == 2


def test_while_it_rebalances_a_full_group_takes_those_that_came_first() -> None:
    harness = CoordinatorHarness({"group.max.size": "1"})

    first, second = harness.join(version=3), harness.join(version=3)

    assert first.is_parked
    assert second.error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_refused_pending_id_is_forgotten() -> None:
    harness = CoordinatorHarness({"group.max.size": "1"})
    first, second = harness.join().join.member_id, harness.join().join.member_id
    harness.join(first)

    assert harness.join(second).join == JoinGroupResult(error=ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert not harness.group().pending_joins


def test_a_follower_that_joins_again_unchanged_keeps_the_generation() -> None:
    harness = CoordinatorHarness()
    leader, follower = harness.stable_group(2)

    call = harness.join(follower)

    assert call.join == JoinGroupResult(
        generation_id=1, protocol_type="consumer", protocol_name="range", leader=leader, member_id=follower
    )
    assert harness.group().state == "Stable"


@pytest.mark.parametrize("topics", [["t"], ["t", "u"]])
def test_a_leader_that_joins_again_starts_a_rebalance(topics: list[str]) -> None:
    harness = CoordinatorHarness()
    leader, follower = harness.stable_group(2)

    call = harness.join(leader, topics=topics)

    assert call.is_parked
    assert harness.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    harness.join(follower)
    assert call.join.generation_id == 2


def test_a_follower_with_other_topics_starts_a_rebalance() -> None:
    harness = CoordinatorHarness()
    _, follower = harness.stable_group(2)

    assert harness.join(follower, topics=["u"]).is_parked
    assert harness.group().state == "PreparingRebalance"


def test_a_repeated_join_while_syncs_are_awaited_is_answered_with_the_same_generation() -> None:
    harness = CoordinatorHarness()
    first = harness.join(version=3)
    harness.sleep_ms(3_000)
    assert harness.group().state == "CompletingRebalance"

    assert harness.join(first.join.member_id).join == first.join


def test_another_join_while_syncs_are_awaited_starts_over() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(version=3), harness.join(version=3)]
    harness.sleep_ms(6_000)
    follower = next(call.join.member_id for call in calls if not call.join.members)
    waiting = harness.sync(follower, 1)

    harness.join(follower, topics=["u"])

    assert waiting.sync == SyncGroupResult(error=ErrorCode.REBALANCE_IN_PROGRESS)
    assert harness.group().state == "PreparingRebalance"


def test_a_second_join_of_a_waiting_member_takes_the_place_of_the_first() -> None:
    harness = CoordinatorHarness()
    leader, _ = harness.stable_group(2)

    first, second = harness.join(leader), harness.join(leader)
    harness.sleep_ms(30_000)

    assert first.is_parked
    assert second.join.generation_id == 2


def test_version_0_waits_as_long_as_the_session() -> None:
    harness = CoordinatorHarness()

    harness.join(version=0, rebalance_ms=None, session_ms=20_000)

    assert harness.group().rebalance_timeout_ms == 20_000


# Static members that come back without an id.


def test_a_returning_static_leader_keeps_generation_and_assignment() -> None:
    harness = CoordinatorHarness()
    (old,) = harness.stable_group(instances=["i"])
    appended = len(harness.log)

    call = harness.join(instance="i", topics=["u"])

    new = call.join.member_id
    assert call.join == JoinGroupResult(
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader=new,
        skip_assignment=True,
        member_id=new,
        members=(JoinGroupMember(member_id=new, group_instance_id="i", metadata=subscription("u")),),
    )
    assert harness.sync(new, 1).sync.assignment == b"A" + old.encode()
    assert len(harness.log) == appended + 1
    assert harness.heartbeat(old, 1, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_an_older_client_is_told_the_leader_it_was() -> None:
    harness = CoordinatorHarness()
    (old,) = harness.stable_group(instances=["i"])

    result = harness.join(instance="i", version=5).join

    assert (result.leader, result.members, result.skip_assignment) == (old, (), False)
    assert result.member_id == harness.group().leader_id != old


def test_a_replacement_that_changes_the_protocol_starts_a_rebalance() -> None:
    harness = CoordinatorHarness()
    harness.stable_group(instances=["i"], protocols=["range", "sticky"])

    call = harness.join(instance="i", protocols=["sticky"])

    assert call.join.protocol_name == "sticky"
    assert call.join.generation_id == 2


def test_a_replacement_while_syncs_are_awaited_starts_a_rebalance_and_fences_the_old_sync() -> None:
    harness = CoordinatorHarness()
    calls = [harness.join(instance="i"), harness.join(instance="j")]
    harness.sleep_ms(6_000)
    follower = next(call.join for call in calls if not call.join.members)
    instance = follower.member_id[0]
    waiting = harness.sync(follower.member_id, 1, instance=instance)

    call = harness.join(instance=instance)

    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert call.is_parked
    assert harness.group().state == "PreparingRebalance"


def test_a_replacement_of_a_waiting_member_fences_its_join() -> None:
    harness = CoordinatorHarness()
    first = harness.join(instance="i")

    second = harness.join(instance="i")

    assert first.join == JoinGroupResult(error=ErrorCode.FENCED_INSTANCE_ID, member_id="i-1")
    harness.sleep_ms(6_000)
    assert second.join.leader == "i-2"


def test_a_replacement_may_complete_the_join_phase() -> None:
    harness = CoordinatorHarness()
    leader, _ = harness.stable_group(2, instances=["i", "j"])
    harness.join(leader, instance=leader[0])

    call = harness.join(instance="j" if leader[0] == "i" else "i")

    assert call.join.generation_id == 2
