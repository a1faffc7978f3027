"""The server assignors as the coordinator calls them: topics by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from kgctl.assignors.range import ServerRangeAssignor
from kgctl.assignors.spec import AssignorError, TargetMember, TargetSpec, topic_id_of_name
from kgctl.assignors.uniform import UniformAssignor
from kgctl.model.values import copied_set_order

A, B, GONE = UUID(int=1), UUID(int=2), UUID(int=3)


def _lists(targets: Mapping[str, Mapping[UUID, Sequence[int]]]) -> dict[str, dict[UUID, list[int]]]:
    return {member: {topic: list(partitions) for topic, partitions in target.items()} for member, target in targets.items()}


def test_uniform_hands_out_runs() -> None:
    spec = TargetSpec([TargetMember("m1", [A, B]), TargetMember("m2", [A, B])], {A: 3, B: 2}, is_homogeneous=True)

    assert _lists(UniformAssignor().assign_targets(spec)) == {"m1": {A: [0, 1]}, "m2": {A: [2], B: [0, 1]}}


def test_a_target_that_does_not_change_keeps_its_lists() -> None:
    target = {A: [1, 0]}
    spec = TargetSpec([TargetMember("m1", [A], target), TargetMember("m2", [A])], {A: 4}, is_homogeneous=True)

    targets = UniformAssignor().assign_targets(spec)

    assert targets["m1"][A] is target[A]
    assert _lists(targets)["m2"] == {A: [2, 3]}


def test_an_unsubscribed_topic_is_dropped_from_a_target() -> None:
    spec = TargetSpec([TargetMember("m", [A], {GONE: [0], A: [0]})], {A: 1}, is_homogeneous=True)

    assert _lists(UniformAssignor().assign_targets(spec)) == {"m": {A: [0]}}


@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_nothing_subscribed_gives_everybody_an_empty_target(*, is_homogeneous: bool) -> None:
    spec = TargetSpec([TargetMember("m", [], {A: [0]})], {}, is_homogeneous)

    assert UniformAssignor().assign_targets(spec) == {"m": {}}
    assert ServerRangeAssignor().assign_targets(spec) == {"m": {}}


@pytest.mark.parametrize("assignor", [UniformAssignor(), ServerRangeAssignor()])
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_a_subscribed_topic_without_metadata_is_an_error(
    assignor: UniformAssignor | ServerRangeAssignor, *, is_homogeneous: bool
) -> None:
    with pytest.raises(AssignorError, match=r"topic .*0003 which doesn't exist"):
        assignor.assign_targets(TargetSpec([TargetMember("m", [GONE])], {A: 1}, is_homogeneous))


def test_heterogeneous_members_get_only_what_they_subscribe_to() -> None:
    spec = TargetSpec([TargetMember("m1", [A]), TargetMember("m2", [A, B])], {A: 2, B: 2}, is_homogeneous=False)

    assert _lists(UniformAssignor().assign_targets(spec)) == {"m1": {A: [0, 1]}, "m2": {B: [0, 1]}}


def test_static_members_come_first_in_ranges() -> None:
    spec = TargetSpec([TargetMember("a", [A]), TargetMember("z", [A], instance_id="i")], {A: 3}, is_homogeneous=True)

    assert _lists(ServerRangeAssignor().assign_targets(spec)) == {"a": {A: [2]}, "z": {A: [0, 1]}}


def test_topic_id_of_a_name_is_javas() -> None:
    assert topic_id_of_name("orders") == UUID("12c500ed-0b78-3910-9fb4-6af0f246be87")


def test_subscribed_names_stand_in_the_order_of_a_copied_set() -> None:
    assert copied_set_order(["orders", "payments", "audit", "b", "a"]) == ["a", "b", "audit", "payments", "orders"]
