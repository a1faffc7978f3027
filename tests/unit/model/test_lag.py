"""The lag of a partition, and what hides it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.lag import Flag, lag_of, out_of_range, total_of

OFFSETS = st.integers(0, 50)


def test_a_commit_within_its_log_has_a_lag() -> None:
    assert [lag_of(offset, 5, 10) for offset in (5, 7, 10)] == [5, 3, 0]


def test_a_commit_out_of_its_log_has_none() -> None:
    assert [(lag_of(offset, 5, 10), out_of_range(offset, 5, 10)) for offset in (4, 11)] == [
        (None, Flag.BELOW_LOG_START),
        (None, Flag.PAST_LOG_END),
    ]


def test_what_is_not_known_is_not_held_against_a_commit() -> None:
    assert (lag_of(7, None, 10), out_of_range(7, None, 10)) == (3, None)
    assert (lag_of(7, 5, None), out_of_range(7, 5, None)) == (None, None)
    assert lag_of(None, 5, 10) is None


@given(OFFSETS, OFFSETS, OFFSETS)
def test_a_lag_is_never_negative_and_never_more_than_the_log_holds(committed: int, start: int, more: int) -> None:
    lag = lag_of(committed, start, start + more)
    assert (lag is None) == (out_of_range(committed, start, start + more) is not None)
    assert lag is None or 0 <= lag <= more


def test_a_total_without_one_of_its_parts_is_unknown() -> None:
    assert (total_of([1, 2]), total_of([1, None]), total_of([])) == (3, None, 0)


def test_every_flag_says_what_it_means() -> None:
    assert all(flag.meaning for flag in Flag)
    assert {flag for flag in Flag if not flag.hides_lag} == {Flag.NO_CONSUMER, Flag.STALE}
