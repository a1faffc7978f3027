"""ConsumerGroupDescribe: every field, in every state a member can be in."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
)
from tests.unit.coordinator.consumer.beats import TOPICS, A, Group


def described(group: Group, *group_ids: str) -> tuple[ConsumerGroupDescribedGroup, ...]:
    call = group.harness.send(ConsumerGroupDescribe, group_ids=group_ids or ("g",))
    return call.result(ConsumerGroupDescribeResult).groups


def member(group: Group, member_id: str) -> ConsumerGroupDescribedMember:
    return next(entry for entry in described(group)[0].members if entry.member_id == member_id)


def test_a_group_and_its_member_are_told_whole() -> None:
    group = Group()
    group.beat("m1", instance_id="i", rack_id="r", client_id="c", client_host="/127.0.0.1")

    assert described(group) == (
        ConsumerGroupDescribedGroup(
            group_id="g",
            state="Stable",
            group_epoch=2,
            assignment_epoch=2,
            assignor_name="uniform",
            members=(
                ConsumerGroupDescribedMember(
                    member_id="m1",
                    instance_id="i",
                    rack_id="r",
                    member_epoch=2,
                    client_id="c",
                    client_host="/127.0.0.1",
                    subscribed_topic_names=("a",),
                    subscribed_topic_regex="",
                    assignment=((A, (0, 1, 2, 3)),),
                    target_assignment=((A, (0, 1, 2, 3)),),
                    member_type=1,
                ),
            ),
        ),
    )


def test_a_member_answers_for_what_it_still_has_to_give_up() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m2")
    group.beat("m1", 2, 0, 1, 2, 3)

    assert described(group)[0].state == "Reconciling"
    assert member(group, "m1").assignment == ((A, (0, 1, 2, 3)),)
    assert member(group, "m1").target_assignment == ((A, (0, 1)),)
    assert member(group, "m2").assignment == ()
    assert member(group, "m2").target_assignment == ((A, (2, 3)),)


def test_a_group_whose_target_is_old_is_assigning() -> None:
    group = Group({})
    group.harness.sleep_ms(1)
    group.beat("m1")
    group.beat("m2")

    found = described(group)[0]
    assert (found.state, found.group_epoch, found.assignment_epoch) == ("Assigning", 3, 2)


def test_a_group_that_everybody_left_is_empty() -> None:
    group = Group()
    group.beat("m1")
    group.beat("m1", -1)

    found = described(group)[0]
    assert (found.state, found.members) == ("Empty", ())


def test_topics_that_are_gone_are_left_out() -> None:
    group = Group()
    group.beat("m1", subscribed_topic_names=("a", "b"))
    group.harness.change_topics({"b": TOPICS["b"]})

    assert [topic_id == A for topic_id, _ in member(group, "m1").assignment] == [False]
    assert member(group, "m1").subscribed_topic_names == ("a", "b")


def test_classic_members_have_a_type_of_their_own() -> None:
    group = Group()
    group.beat("m1")
    group.harness.join("classic", topics=("a",))

    assert (member(group, "m1").member_type, member(group, "classic").member_type) == (1, 0)


def test_what_is_no_consumer_group_is_not_found() -> None:
    group = Group()
    group.beat("m1")
    group.harness.commit({"a-0": 1}, group="offsets")

    assert described(group, "offsets", "nowhere", "", "g")[:3] == (
        ConsumerGroupDescribedGroup(
            group_id="offsets", error=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group offsets is not a consumer group."
        ),
        ConsumerGroupDescribedGroup(
            group_id="nowhere", error=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group nowhere not found."
        ),
        ConsumerGroupDescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID),
    )
