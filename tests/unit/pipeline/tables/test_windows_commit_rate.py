"""How often a group commits, and how much it reads."""

from __future__ import annotations

from tests.support.pipeline.history_of import columns, commit, commits, members, table

S = 1000
COLUMNS = ("window_start_ms", "commits", "records_consumed", "records_per_s")


def test_windows() -> None:
    records = commits((1 * S, 100), (2 * S, 150), (59 * S, 200), (60 * S, 230), (300 * S, 290))
    assert table("commit_rate", records) == [
        {
            "group": "g",
            "topic": "t",
            "partition": 0,
            "window_start_ms": start,
            "window_ms": 60 * S,
            "commits": count,
            "records_consumed": consumed,
            "records_per_s": consumed / 60,
        }
        for start, count, consumed in [(0, 3, 100), (60 * S, 1, 30), (300 * S, 1, 60)]
    ]


def test_what_the_first_commit_moved_is_unknown() -> None:
    assert columns(table("commit_rate", commits((0, 100), (70 * S, 100))), *COLUMNS) == [(0, 1, None, None), (60 * S, 1, 0, 0.0)]


def test_a_step_back_is_not_reading_and_what_follows_is() -> None:
    records = commits((0, 100), (1 * S, 200), (2 * S, 50), (3 * S, 80))
    assert columns(table("commit_rate", records), *COLUMNS) == [(0, 4, 130, 130 / 60)]


def test_a_reset_forward_is_not_reading() -> None:
    records = [
        (0, members(1, 1)),
        *commits((0, 100), (1 * S, 110)),
        (2 * S, members(0, 2)),
        *commits((3 * S, 9000), (4 * S, 9500)),
        (5 * S, members(1, 3)),
        *commits((6 * S, 9505)),
    ]
    assert columns(table("commit_rate", records), *COLUMNS) == [(0, 5, 15, 15 / 60)]


def test_after_a_removal_it_begins_anew() -> None:
    records = commits((0, 100), (1 * S, 110), (2 * S, None), (61 * S, 500))
    assert columns(table("commit_rate", records), *COLUMNS) == [(0, 2, 10, 10 / 60), (60 * S, 1, None, None)]


def test_only_removals() -> None:
    assert table("commit_rate", commits((0, None))) == []


def test_a_clock_that_goes_back_does_not_open_the_window_again() -> None:
    assert columns(table("commit_rate", commits((61 * S, 1), (59 * S, 2), (62 * S, 3))), *COLUMNS) == [(60 * S, 3, 2, 2 / 60)]


def test_series_do_not_mix() -> None:
    records = [(time_ms, commit(offset, group=group)) for time_ms, offset, group in [(0, 5, "a"), (1, 900, "b"), (2, 7, "a")]]
    assert columns(table("commit_rate", records), "group", "commits", "records_consumed") == [("a", 2, 2), ("b", 1, None)]
