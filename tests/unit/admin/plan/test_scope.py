"""``topic``, ``topic:3``, ``topic:0,2-5``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.plan.offset_reset import TopicScope, parse_topic_scopes, resolve_scopes
from kgctl.errors import NotFoundError, UsageError
from kgctl.model.groups import TopicPartition


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["t"], [TopicScope("t")]),
        (["t:3"], [TopicScope("t", ((3, 3),))]),
        (["t:0,2-5"], [TopicScope("t", ((0, 0), (2, 5)))]),
        (["t:5,3,4"], [TopicScope("t", ((3, 5),))]),
        (["t:1-3,2-6"], [TopicScope("t", ((1, 6),))]),
        (["t:1", "u", "t:0"], [TopicScope("t", ((0, 1),)), TopicScope("u")]),
        (["t:1", "t"], [TopicScope("t")]),
        (["t:0-2147483647"], [TopicScope("t", ((0, 2147483647),))]),
        ([], []),
    ],
)
def test_scopes_are_read(texts: list[str], expected: list[TopicScope]) -> None:
    assert parse_topic_scopes(texts) == tuple(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no topic"),
        (":1", "names no topic"),
        ("t:", "'' is not a partition"),
        ("t:x", "'x' is not a partition"),
        ("t:0:1", "'0:1' is not a partition"),
        ("t:1,", "'' is not a partition"),
        ("t:-1", "'-1' is not a partition"),
        ("t:1-", "'1-' is not a partition"),
        ("t:1-2-3", "'1-2-3' is not a partition"),
        ("t:3-1", "ends before it begins"),
        ("t:2147483648", "larger than any partition number"),
        ("t:99999999999999999999", "is not a partition"),
    ],
)
def test_what_is_no_scope_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_topic_scopes([text])


def test_scopes_become_partitions() -> None:
    scopes = parse_topic_scopes(["b:2,0", "a"])
    assert resolve_scopes(scopes, {"a": 2, "b": 3, "c": 9}) == (
        TopicPartition("b", 0),
        TopicPartition("b", 2),
        TopicPartition("a", 0),
        TopicPartition("a", 1),
    )


def test_missing_topic_is_named() -> None:
    with pytest.raises(NotFoundError, match="topic 'b' does not exist"):
        resolve_scopes(parse_topic_scopes(["a", "b"]), {"a": 1})


@pytest.mark.parametrize(("text", "partition"), [("t:3", 3), ("t:0-9", 3), ("t:0,7-9", 7)])
def test_first_missing_partition_is_named(text: str, partition: int) -> None:
    with pytest.raises(NotFoundError, match=f"partition t-{partition} does not exist: topic 't' has 3 partitions") as caught:
        resolve_scopes(parse_topic_scopes([text]), {"t": 3})
    assert (caught.value.topic, caught.value.partition) == ("t", partition)


def test_enormous_range_is_refused_without_being_counted_out() -> None:
    with pytest.raises(NotFoundError, match="t-3 does not exist"):
        resolve_scopes(parse_topic_scopes(["t:0-2147483647"]), {"t": 3})


NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=12)


@given(NUMBERS)
def test_written_numbers_are_the_partitions_meant(numbers: list[int]) -> None:
    (scope,) = parse_topic_scopes(["t:" + ",".join(map(str, numbers))])
    assert [partition.partition for partition in scope.resolve(31)] == sorted(set(numbers))
    assert [number for number in range(31) if TopicPartition("t", number) in scope] == sorted(set(numbers))
    assert TopicPartition("u", numbers[0]) not in scope


@given(NUMBERS, NUMBERS)
def test_two_scopes_of_a_topic_unite(one: list[int], other: list[int]) -> None:
    def text(numbers: list[int]) -> str:
        return "t:" + ",".join(map(str, numbers))

    assert parse_topic_scopes([text(one), text(other)]) == parse_topic_scopes([text(one + other)])
