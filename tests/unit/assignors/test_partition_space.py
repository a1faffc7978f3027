"""Partitions as integers."""

from __future__ import annotations

import pytest

from kgctl.assignors.partition_space import PartitionIds, PartitionSpace, sorted_like_java
from kgctl.model.groups import TopicPartition


def test_numbers_follow_topics_by_name_then_partitions() -> None:
    space = PartitionSpace({"b": 2, "a": 3})

    assert [str(space.partition(number)) for number in range(space.total)] == ["a-0", "a-1", "a-2", "b-0", "b-1"]


def test_strings_sort_by_utf_16_unit() -> None:
    # U+1F600 starts with a surrogate, which is below U+FFEE.
    assert sorted_like_java(["\uffee", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffee"]


def test_owned_partitions_of_other_topics_are_left_out() -> None:
    assert PartitionSpace({"a": 3, "b": 2}).numbers({"b": [1, 0], "gone": [4], "a": [2]}) == [4, 3, 2]


def test_partitions_that_do_not_exist_get_numbers_past_the_end() -> None:
    space = PartitionSpace({"a": 2, "b": 1})

    assert space.numbers({"a": [1, 7], "b": [3]}) == [1, 3, 4]
    assert (space.partition(3), space.partition(4)) == (TopicPartition("a", 7), TopicPartition("b", 3))
    assert (space.topic(3), space.topic(4), space.phantom_end(3), space.phantom_end(4)) == (0, 1, 2, 3)
    assert space.by_topic([4, 0, 3]) == {"a": [0, 7], "b": [3]}


def test_a_partition_that_does_not_exist_keeps_its_number() -> None:
    space = PartitionSpace({"a": 1})

    assert space.numbers({"a": [5]}) == space.numbers({"a": [0, 5]})[1:]


def test_column_keys_sort_by_number_then_topic() -> None:
    space = PartitionSpace({"a": 2, "b": 3})
    numbers = [*range(space.total), *space.numbers({"a": [2, 9]})]

    assert [str(space.partition(n)) for n in sorted(numbers, key=space.column_key)] == [
        "a-0", "b-0", "a-1", "b-1", "a-2", "b-2", "a-9",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "topics"),
    [([], {}), ([4, 0], {"a": [0], "b": [1]}), ([2, 4, 0, 3], {"a": [0, 2], "b": [0, 1]}), (range(1, 3), {"a": [1, 2]})],
)
def test_numbers_become_topics_with_ascending_partitions(numbers: list[int], topics: dict[str, list[int]]) -> None:
    assert PartitionSpace({"a": 3, "b": 2}).by_topic(numbers) == topics


def test_numbers_of_an_equal_space_are_taken_as_they_are() -> None:
    space, twin = PartitionSpace({"a": 3}), PartitionSpace({"a": 3})
    ids = [0, 2]

    assert space.numbers(PartitionIds(twin, ids)) is ids


def test_numbers_of_another_space_are_translated() -> None:
    owned = PartitionIds(PartitionSpace({"a": 3, "c": 2}), [1, 4])

    assert PartitionSpace({"a": 3, "b": 1, "c": 2}).numbers(owned) == [1, 5]
