"""Batches of before and new ones become one list: each way in which two can lie, by who of them wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.share import StateBatch
from kgctl.share.state.combining import combined

Spans = list[tuple[int, int, int]]
"""First and last offset, delivery count: all are available."""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], []),
        ([(5, 9, 1)], [(5, 9, 1)]),
        ([(5, 9, 1), (5, 9, 1)], [(5, 9, 1)]),
        ([(5, 9, 1), (0, 2, 1)], [(0, 2, 1), (5, 9, 1)]),
        ([(0, 4, 1), (5, 9, 1)], [(0, 9, 1)]),
        ([(0, 4, 1), (5, 9, 2)], [(0, 4, 1), (5, 9, 2)]),
        ([(0, 9, 1), (3, 5, 1)], [(0, 9, 1)]),
        ([(0, 9, 1), (0, 9, 2)], [(0, 9, 2)]),
        ([(0, 4, 1), (0, 9, 2)], [(0, 9, 2)]),
        ([(0, 4, 2), (0, 9, 1)], [(0, 4, 2), (5, 9, 1)]),
        ([(0, 9, 1), (3, 5, 2)], [(0, 2, 1), (3, 5, 2), (6, 9, 1)]),
        ([(0, 9, 2), (3, 5, 1)], [(0, 9, 2)]),
        ([(0, 9, 1), (5, 9, 2)], [(0, 4, 1), (5, 9, 2)]),
        ([(0, 9, 2), (5, 9, 1)], [(0, 9, 2)]),
        ([(0, 9, 1), (5, 14, 2)], [(0, 4, 1), (5, 14, 2)]),
        ([(0, 9, 2), (5, 14, 1)], [(0, 9, 2), (10, 14, 1)]),
    ],
)
def test_two_batches(before: Spans, expected: Spans) -> None:
    assert combined(_batches(before)) == _batches(expected)


def test_of_equal_delivery_counts_the_higher_state_wins() -> None:
    assert combined([StateBatch(0, 9, 4, 1), StateBatch(5, 14, 2, 1)]) == (StateBatch(0, 9, 4, 1), StateBatch(10, 14, 2, 1))


@pytest.mark.parametrize(
    ("start", "expected"),
    [(-1, [(0, 4, 1), (6, 9, 1)]), (3, [(3, 4, 1), (6, 9, 1)]), (5, [(6, 9, 1)]), (6, [(6, 9, 1)]), (9, [(9, 9, 1)]), (10, [])],
)
def test_what_lies_before_the_start_is_gone(start: int, expected: Spans) -> None:
    assert combined(_batches([(0, 4, 1), (6, 9, 1)]), start) == _batches(expected)


def test_neighbours_that_became_alike_behind_kafkas_back_stay_two() -> None:
    """The third wins over the second and is like the first, which was passed by then."""
    batches = [StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1), StateBatch(5, 12, 2, 1)]

    assert combined(batches) == (StateBatch(0, 4, 2, 1), StateBatch(5, 12, 2, 1))


@given(
    st.lists(
        st.builds(
            lambda first, more, *rest: StateBatch(first, first + more, *rest), *[st.integers(0, 30)] * 2, *[st.integers(0, 4)] * 2
        )
    )
)
def test_each_offset_has_the_batch_that_wins_and_no_offset_two(batches: list[StateBatch]) -> None:
    found = combined(batches)

    covered = [offset for each in found for offset in range(each.first_offset, each.last_offset + 1)]
    assert covered == sorted({offset for each in batches for offset in range(each.first_offset, each.last_offset + 1)})
    for each in found:
        for offset in range(each.first_offset, each.last_offset + 1):
            at = [(one.delivery_count, one.delivery_state) for one in batches if one.first_offset <= offset <= one.last_offset]
            assert max(at) == (each.delivery_count, each.delivery_state)


def _batches(spans: Spans) -> tuple[StateBatch, ...]:
    return tuple(StateBatch(first, last, 0, count) for first, last, count in spans)
