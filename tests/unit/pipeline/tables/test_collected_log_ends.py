"""Cleaned samples of the topics' logs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.tables.collected import LOG_END_COLUMNS
from tests.support.pipeline.history_of import Sample, columns, ends, log_ends


def shown(samples: list[Sample]) -> list[tuple[Any, ...]]:
    found = log_ends(samples)
    assert found.schema == LOG_END_COLUMNS
    return columns(found.to_pylist(), *LOG_END_COLUMNS.names)


def test_sorted_and_each_moment_once() -> None:
    samples: list[Sample] = [("b", 0, 1, 0, 5), ("a", 1, 2, 1, 9), ("a", 1, 1, 1, 7), ("a", 1, 2, None, 8), ("a", 0, 9, None, 1)]
    assert shown(samples) == [("a", 0, 9, None, 1), ("a", 1, 1, 1, 7), ("a", 1, 2, 1, 9), ("b", 0, 1, 0, 5)]


def test_a_sample_that_says_nothing_is_left_out() -> None:
    assert shown([("a", 0, 1, None, None), ("a", 0, 2, 3, None)]) == [("a", 0, 2, 3, None)]


def test_a_replica_that_was_behind_for_one_sample_is_left_out() -> None:
    assert shown(ends((1, 10), (2, 7), (3, 10), (4, 12))) == [("t", 0, 1, 0, 10), ("t", 0, 3, 0, 10), ("t", 0, 4, 0, 12)]


def test_a_log_that_begins_anew_stays() -> None:
    samples = ends((1, 10), (2, 3), (3, 4))
    assert shown(samples) == samples


def test_the_neighbour_partition_proves_nothing() -> None:
    samples = ends((1, 10)) + ends((2, 3), partition=1) + ends((3, 12), partition=2)
    assert shown(samples) == samples


def test_nothing() -> None:
    assert shown([]) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(0, 1),
            st.integers(0, 6),
            st.none() | st.integers(0, 3),
            st.none() | st.integers(0, 6),
        )
    ),
    st.randoms(use_true_random=False),
)
def test_order_and_duplicates_do_not_matter(samples: list[Sample], random: Any) -> None:
    expected = log_ends(samples)
    again = samples + samples[:3]
    random.shuffle(again)
    assert log_ends(again).equals(expected)
