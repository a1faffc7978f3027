"""When racks make a difference."""

from __future__ import annotations

import pytest

from kgctl.assignors.spec import TopicSpec, partition_racks, use_racks


@pytest.mark.parametrize(
    ("consumers", "partitions", "used"),
    [
        ([], [("a",), ("b",)], False),
        (["a"], [], False),
        (["c"], [("a",), ("b",)], False),
        (["a"], [("a", "b"), ("b", "a")], False),
        (["a"], [("a", "b"), ("b",)], True),
        (["a"], [("a",), ()], True),
    ],
)
def test_racks_are_used_where_they_make_a_difference(
    consumers: list[str], partitions: list[tuple[str, ...]], *, used: bool
) -> None:
    assert use_racks(consumers, [frozenset(racks) for racks in partitions]) is used


def test_a_topic_without_racks_has_partitions_without_racks() -> None:
    assert partition_racks(TopicSpec(2)) == [frozenset(), frozenset()]


def test_racks_of_replicas_are_a_set() -> None:
    assert partition_racks(TopicSpec(2, (("a", "b", "a"), ("c",)))) == [{"a", "b"}, {"c"}]
