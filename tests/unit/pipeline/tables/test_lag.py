"""Lag in records and in time, between samples and outside of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.lag import lag_of, out_of_range
from kgctl.pipeline.tables.points import RANGE, ranges
from kgctl.pipeline.tables.samples import UNKNOWN
from tests.support.pipeline.history_of import columns, commits, ends, table

S = 1000
COLUMNS = ("time_ms", "committed_offset", "log_end_offset", "lag", "lag_ms", "kind")


def lag(records: Any, samples: Any, window_ms: int = 60_000) -> list[tuple[Any, ...]]:
    return columns(table("lag", records, samples, window_ms), *COLUMNS)


@pytest.mark.parametrize(
    ("time_ms", "offset", "end", "behind", "behind_ms"),
    [
        (10 * S, 50, 100, 50, 5 * S),  # at a sample: exact; the log was at 50 five seconds ago
        (15 * S, 50, 150, 100, 10 * S),  # between two: as if the log had grown evenly
        (15 * S, 150, 150, 0, 0),
        (15 * S, 160, 160, 0, 0),  # the log was longer than the line says: at least as long as what was read of it
        (15 * S, 300, 150, None, None),  # past even the next sample: somebody committed what is not there
        (20 * S, 200, 200, 0, 0),
        (25 * S, 150, None, None, 10 * S),  # behind the last sample the end is unknown; when 150 was written is known
        (25 * S, 200, None, None, None),
        (-5 * S, 0, None, None, None),  # before the first sample
    ],
)
def test_at_a_commit(time_ms: int, offset: int, end: int | None, behind: int | None, behind_ms: int | None) -> None:
    samples = ends((0, 0), (10 * S, 100), (20 * S, 200))
    rows = lag(commits((time_ms, offset)), samples, window_ms=1000 * S)
    assert rows[0] == (time_ms, offset, end, behind, behind_ms, "commit")


def test_before_the_first_sample_the_average_rate_counts() -> None:
    """kafka-lag-exporter extrapolates along the first and the last point of its table."""
    samples = ends((0, 1000), (10 * S, 1500), (20 * S, 2000))
    assert lag(commits((10 * S, 900)), samples, 1000 * S)[0] == (10 * S, 900, 1500, 600, 12 * S, "commit")


def test_where_the_log_did_not_grow_the_age_of_what_is_before_it_is_unknown() -> None:
    assert lag(commits((5 * S, 900)), ends((0, 1000), (10 * S, 1000)))[0] == (5 * S, 900, 1000, 100, None, "commit")


def test_a_flat_run_is_left_at_its_end() -> None:
    """What is unread was written after the log had stood still, not before."""
    samples = ends((0, 0), (10 * S, 100), (20 * S, 100), (30 * S, 200))
    assert lag(commits((30 * S, 100)), samples, 1000 * S)[0] == (30 * S, 100, 200, 100, 10 * S, "commit")


def test_one_sample_is_too_few_for_time() -> None:
    assert lag(commits((5 * S, 90)), ends((5 * S, 100)))[0] == (5 * S, 90, 100, 10, None, "commit")
    assert lag(commits((5 * S, 100)), ends((5 * S, 100)))[0] == (5 * S, 100, 100, 0, 0, "commit")


def test_without_samples_everything_is_unknown() -> None:
    others = ends((0, 1), topic="other") + ends((0, 1), partition=7) + ends((0, None))
    assert lag(commits((5 * S, 90)), others) == [(5 * S, 90, None, None, None, "commit")]


def test_a_log_that_began_anew_says_nothing_about_the_one_before() -> None:
    samples = ends((0, 0), (10 * S, 100), (20 * S, 10), (30 * S, 20))
    assert lag(commits((15 * S, 50), (25 * S, 12)), samples, 1000 * S)[:2] == [
        (15 * S, 50, None, None, 10 * S, "commit"),
        (25 * S, 12, 15, 3, 3 * S, "commit"),
    ]


def test_samples_between_commits() -> None:
    records = commits((0, 0), (5 * S, 50), (40 * S, None))
    samples = ends((0, 0), (10 * S, 100), (20 * S, 200), (30 * S, 200), (50 * S, 300))
    assert lag(records, samples, window_ms=10 * S) == [
        (0, 0, 0, 0, 0, "commit"),
        (5 * S, 50, 50, 0, 0, "commit"),
        (10 * S, 50, 100, 50, 5 * S, "sample"),
        (20 * S, 50, 200, 150, 15 * S, "sample"),
        (30 * S, 50, 200, 150, 25 * S, "sample"),
    ]


def test_a_sample_that_tells_nothing_new_is_left_out() -> None:
    samples = ends((0, 100), (10 * S, 100), (20 * S, 100), (30 * S, 110))
    assert columns(table("lag", commits((0, 100)), samples, 10 * S), "time_ms", "lag") == [(0, 0), (30 * S, 10)]


def test_the_last_sample_of_a_window_stands_for_it() -> None:
    samples = ends((0, 100), (S, 101), (2 * S, 102), (10 * S, 103))
    assert columns(table("lag", commits((0, 0)), samples, 10 * S), "time_ms", "lag") == [(0, 100), (2 * S, 102), (10 * S, 103)]


def test_a_clock_that_goes_back_stands_still() -> None:
    assert columns(table("lag", commits((9 * S, 1), (8 * S, 2), (10 * S, 3))), "time_ms", "committed_offset") == [
        (9 * S, 1),
        (9 * S, 2),
        (10 * S, 3),
    ]


def test_series_do_not_mix() -> None:
    records = commits((0, 10), group="h") + commits((0, 20)) + commits((0, 30), topic="u") + commits((0, 40), partition=1)
    samples = ends((0, 100)) + ends((0, 200), topic="u") + ends((0, 300), partition=1)
    assert columns(table("lag", records, samples), "group", "topic", "partition", "lag") == [
        ("g", "t", 0, 80),
        ("g", "t", 1, 260),
        ("g", "u", 0, 170),
        ("h", "t", 0, 90),
    ]


def test_nothing() -> None:
    assert table("lag", [], ends((0, 1))) == []


def test_before_the_log_s_start_nothing_is_known_of_the_lag() -> None:
    samples = ends((0, 100), (10 * S, 200), start=0) + ends((20 * S, 300), (30 * S, 400), start=90)
    assert lag(commits((5 * S, 50)), samples, 1000 * S) == [
        (5 * S, 50, 150, 100, 10 * S, "commit"),
        (30 * S, 50, 400, None, None, "sample"),
    ]


def test_a_sample_that_was_taken_a_little_earlier_than_it_says_is_no_commit_past_the_end() -> None:
    samples = ends((0, 0), (10 * S, 100), (20 * S, 200))
    assert lag(commits((9 * S, 103)), samples, 10 * S)[1] == (10 * S, 103, 103, 0, 0, "sample")


offsets = st.integers(0, 6)


@given(st.lists(st.tuples(offsets, offsets | st.just(UNKNOWN), offsets | st.just(UNKNOWN)), min_size=1, max_size=20))
def test_what_is_out_of_range_is_what_commands_say(found: list[tuple[int, int, int]]) -> None:
    committed, start, end = (np.array(column, np.int64) for column in zip(*found, strict=True))
    told = [RANGE[number] for number in ranges(committed, start, end)]
    known = [tuple(None if value == UNKNOWN else value for value in each) for each in found]
    assert told == [out_of_range(one or 0, low, high) for one, low, high in known]
    lags = (end - committed).tolist()
    of_range = [None if flag or high is None else lag for flag, lag, (*_, high) in zip(told, lags, known, strict=True)]
    assert of_range == [lag_of(*each) for each in known]
