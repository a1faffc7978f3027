"""The sticky assignors' answer as a whole: order, what is in transfer, and generations."""

from __future__ import annotations

from kgctl.assignors.spec import GroupSpec, MemberSpec, StickyClaim, TopicSpec
from kgctl.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from kgctl.assignors.wire_form import encode_sticky


def _names(assignment: object, member: str) -> list[str]:
    return [str(partition) for partition in assignment.partitions(member)]  # type: ignore[attr-defined]


def test_kept_partitions_come_first_by_number_then_new_ones() -> None:
    members = [
        MemberSpec("a", ("t", "u"), user_data=encode_sticky({"u": [0], "t": [1, 0]}, 3)),
        MemberSpec("b", ("t", "u"), user_data=encode_sticky({"u": [1]}, 3)),
    ]

    assignment = StickyAssignor().assign(GroupSpec({"t": TopicSpec(3), "u": TopicSpec(2)}, members))

    assert _names(assignment, "a") == ["t-0", "u-0", "t-1"]
    assert _names(assignment, "b") == ["u-1", "t-2"]
    assert (assignment.transferring, assignment.max_generation) == ({}, 3)


def test_subscription_fields_do_not_count_for_the_eager_assignor() -> None:
    members = [MemberSpec("a", ("t",)), MemberSpec("b", ("t",), owned={"t": [0]}, generation=4)]

    assert dict(StickyAssignor().assign(GroupSpec({"t": TopicSpec(2)}, members))) == {"a": {"t": [0]}, "b": {"t": [1]}}


def test_owned_of_one_round_can_be_given_to_the_next() -> None:
    topics = {"t": TopicSpec(6)}
    first = StickyAssignor().assign(GroupSpec(topics, [MemberSpec(m, ("t",)) for m in "abc"]))
    left = [MemberSpec(m, ("t",), user_data=StickyClaim(first.owned(m), 1)) for m in "bc"]

    second = StickyAssignor().assign(GroupSpec(topics, left))

    assert dict(second) == {"b": {"t": [0, 1, 4]}, "c": {"t": [2, 3, 5]}}


def test_cooperative_first_phase_is_the_aim_without_what_is_in_transfer() -> None:
    members = [MemberSpec("a", ("t",), owned={"t": [0, 1, 2]}, generation=1), MemberSpec("b", ("t",))]

    aim, now = CooperativeStickyAssignor().two_phases(GroupSpec({"t": TopicSpec(3)}, members))

    assert dict(aim) == {"a": {"t": [0, 1]}, "b": {"t": [2]}}
    assert dict(now) == {"a": {"t": [0, 1]}, "b": {}}
    assert aim.transferring == {2: "b"}


def test_a_group_without_members_has_an_empty_assignment() -> None:
    assert dict(StickyAssignor().assign(GroupSpec({"t": TopicSpec(3)}, []))) == {}


def test_a_member_that_seems_to_have_been_away_gives_back_what_others_claim() -> None:
    """Its claim is of an older generation than the highest, which somebody else saw."""
    members = [
        MemberSpec("a", ("t",), owned={"t": [0, 1]}, generation=3, user_data=StickyClaim({"t": [0, 1]}, 3)),
        MemberSpec("b", ("t",), owned={"t": [0, 1]}, generation=4, user_data=StickyClaim({"t": [0, 1]}, 4)),
    ]

    assert dict(StickyAssignor().assign(GroupSpec({"t": TopicSpec(2)}, members))) == {"a": {"t": [1]}, "b": {"t": [0]}}
