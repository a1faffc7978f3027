"""ConsumerGroupHeartbeat: joining, reconciliation, leaving, static members, timers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kgctl.coordinator.modern.member import MemberState
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from tests.support.coordinator_harness import CoordinatorHarness
from tests.unit.coordinator.consumer.beats import AT_ONCE, JOIN, TOPICS, A, Group


def given(result: ConsumerGroupHeartbeatResult) -> dict[UUID, tuple[int, ...]] | None:
    """The assignment in an answer."""
    return None if result.assignment is None else {topic_id: tuple(numbers) for topic_id, numbers in result.assignment}


def test_members_hand_partitions_over_one_heartbeat_at_a_time() -> None:
    group = Group()

    assert given(group.beat("m1")) == {A: (0, 1, 2, 3)}
    assert group.stands("m1") == (2, MemberState.STABLE, (0, 1, 2, 3))
    assert given(group.beat("m2")) == {}
    assert group.stands("m2") == (3, MemberState.UNRELEASED_PARTITIONS, ())
    assert given(group.beat("m1", 2, 0, 1, 2, 3)) == {A: (0, 1)}
    assert group.stands("m1") == (2, MemberState.UNREVOKED_PARTITIONS, (0, 1))
    assert group.state.group_state == "Reconciling"
    assert group.beat("m1", 2, 0, 1).member_epoch == 3
    assert given(group.beat("m2", 3)) == {A: (2, 3)}
    assert group.stands("m2") == (3, MemberState.STABLE, (2, 3))
    assert group.state.group_state == "Stable"
    assert group.state.members["m2"].assigned[A] == {2: 3, 3: 3}


def test_a_member_that_is_revoking_skips_the_epochs_in_between() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)
    group.beat("m3")

    assert group.beat("m1", 2, 0, 1).member_epoch == 4


def test_a_member_that_does_not_give_up_is_fenced_after_its_rebalance_timeout() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)
    group.harness.sleep_ms(4_999)
    assert "m1" in group.state.members

    group.harness.sleep_ms(1)

    assert list(group.state.members) == ["m2"]


def test_a_silent_member_is_fenced_when_its_session_ends() -> None:
    group = Group()
    group.beat("m1")
    group.harness.sleep_ms(44_999)
    assert group.state.group_state == "Stable"

    group.harness.sleep_ms(1)

    assert group.state.group_state == "Empty"
    assert group.state.group_epoch == 3
    assert group.beat("m1", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_leaves() -> None:
    group = Group()
    group.beat("m1")

    result = group.beat("m1", -1)

    assert (result.error, result.member_epoch, result.heartbeat_interval_ms) == (ErrorCode.NONE, -1, 0)
    assert group.state.group_state == "Empty"


def test_a_static_member_that_comes_back_keeps_its_partitions_and_raises_no_epoch() -> None:
    group = Group()
    group.beat("m1", instance_id="i")
    assert group.beat("m2", instance_id="i").error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert group.beat("m1", -2, instance_id="i").member_epoch == -2

    result = group.beat("m2", instance_id="i")

    assert (result.member_epoch, given(result)) == (2, {A: (0, 1, 2, 3)})
    assert group.state.group_epoch == 2
    assert group.beat("m1", 2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_an_answer_that_was_lost_is_given_again_to_who_owns_nothing_else() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)
    group.beat("m1", 2, 0, 1)

    assert group.beat("m1", 2, 0, 1).error is ErrorCode.NONE
    assert group.beat("m1", 2, 0, 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    fenced = group.beat("m1", 9)
    assert fenced.error is ErrorCode.FENCED_MEMBER_EPOCH
    assert fenced.error_message == (
        "The consumer group member has a greater member epoch (9) than the one known by the group coordinator (3). "
        "The member must abandon all its partitions and rejoin."
    )


def test_new_partitions_are_assigned_with_a_new_epoch() -> None:
    group = Group()
    group.beat("m1")
    group.harness.change_topics({**TOPICS, "a": 5})

    result = group.beat("m1", 2, 0, 1, 2, 3)

    assert (result.member_epoch, given(result)) == (3, {A: (0, 1, 2, 3, 4)})


def test_a_pattern_is_resolved_and_then_assigned() -> None:
    group = Group()
    first = group.beat("m1", subscribed_topic_names=None, subscribed_topic_regex="[a]")

    result = group.beat("m1", first.member_epoch)

    assert given(result) == {A: (0, 1, 2, 3)}
    assert group.beat("m2", subscribed_topic_names=None, subscribed_topic_regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_within_the_assignment_interval_no_new_target_is_computed() -> None:
    group = Group({"group.consumer.assignment.interval.ms": "1000"})
    group.harness.sleep_ms(10)
    group.beat("m1")
    group.beat("m2")
    assert group.state.group_state == "Assigning"
    group.harness.sleep_ms(1_000)

    group.beat("m1", 2, 0, 1, 2, 3)

    assert group.state.group_state == "Reconciling"


def test_most_members_choose_the_assignor() -> None:
    group = Group()
    group.beat("m1", server_assignor="range", subscribed_topic_names=("b",))
    group.beat("m2", server_assignor="range", subscribed_topic_names=("b",))
    group.beat("m3", server_assignor="uniform", subscribed_topic_names=("b",))

    assert dict(group.state.assignor_counts) == {"range": 2, "uniform": 1}


def test_a_full_group_takes_nobody_in() -> None:
    group = Group({**AT_ONCE, "group.consumer.max.size": "1"})
    group.beat("m1")

    assert group.beat("m2").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group.beat("m1").error is ErrorCode.NONE


def test_a_reload_changes_nothing_but_the_session() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)
    before = group.harness.driver.coordinator.durable()
    group.harness.driver.reload()

    assert group.harness.driver.coordinator.durable() == before
    assert group.beat("m1", 2, 0, 1).member_epoch == 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        ({"topic_partitions": ((A, (0,)),)}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    harness = CoordinatorHarness(topics=TOPICS)
    request = {"api_version": 1, "group_id": "g", "member_id": "m", **JOIN, **fields}

    result = harness.send(ConsumerGroupHeartbeat, **request).result(ConsumerGroupHeartbeatResult)

    assert (result.error, result.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert harness.log == []


def test_an_unknown_assignor_is_refused_with_the_known_ones() -> None:
    result = Group().beat("m1", server_assignor="mine")

    assert result.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert result.error_message == "ServerAssignor mine is not supported. Supported assignors: uniform, range."


def test_only_a_join_makes_a_group() -> None:
    group = Group()

    assert group.beat("m1", 3).error_message == "Consumer group g not found."
    assert group.beat("m1", -1).error_message == "Group g not found."
