"""Objectives over a span: minutes without a row, minutes without a sample, what is outside of its log."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.objectives import Kept, Objective, kept
from tests.support.pipeline.gold import Row, commit, run, write_gold

MINUTE_MS = 60_000
NINE = Objective(1_000, None, Fraction(9, 10))


def window(minute: int, group: str = "g", **values: int | None) -> Row:
    """A row of ``group_health`` in which nothing happened."""
    counts = dict.fromkeys(("rebalances", "commits", "resets", "stalled_partitions", "past_end", "below_start"), 0)
    return {"group": group, "window_start_ms": minute * MINUTE_MS, "window_ms": MINUTE_MS, **counts, "max_lag_ms": 0, **values}


def asked(
    folder: Path, rows: Sequence[Row], sampled: Sequence[int], span: tuple[int, int], objective: Objective = NINE
) -> list[Kept]:
    """Minutes are numbers."""
    write_gold(folder, {"group_health": rows}, sampled_ms=[minute * MINUTE_MS for minute in sampled])
    return kept(History.open(folder), None, (span[0] * MINUTE_MS, span[1] * MINUTE_MS), objective)


def test_a_minute_without_a_row_is_as_the_last(tmp_path: Path) -> None:
    rows = [
        window(0),
        window(10, max_lag_ms=1_001),
        window(14, max_lag_ms=None),
        window(16),
        window(0, "other"),
        window(30, "new"),
    ]
    found = asked(tmp_path / "w", rows, range(41), (5, 40))

    assert found == [
        Kept("g", 5 * MINUTE_MS, 40 * MINUTE_MS, good=5 + 24, bad=4, unknown=2),
        Kept("new", 30 * MINUTE_MS, 40 * MINUTE_MS, good=10),
        Kept("other", 5 * MINUTE_MS, 40 * MINUTE_MS, good=35),
    ]
    assert [each.left(NINE.target) for each in found] == [Fraction(-5, 2), 1, Fraction(7, 2)]
    assert found[0].share == Fraction(29, 35)


@pytest.mark.parametrize(
    ("sampled", "unknown"),
    [
        ((0, 100, 340, 499), 0),
        ((0, 100, 341, 499), 0),
        ((0, 100, 345, 499), 4),
        ((0,), 499),
        ((), 500),
        ((0, 600), 359),
        ((490, 500), 250),
    ],
)
def test_minutes_that_no_sample_tells_of_are_not_known(tmp_path: Path, sampled: Sequence[int], unknown: int) -> None:
    """A sample counts for four hours before it; what came before makes nothing known."""
    (found,) = asked(tmp_path / "w", [window(0)], sampled, (0, 500))
    assert (found.unknown, found.good) == (unknown, 500 - unknown)


@pytest.mark.parametrize(
    ("sampled", "first_offset", "unknown"),
    [((20, 40), 7, 15), ((19, 40), 7, 0), ((20, 40), 0, 0), ((), 7, 35), ((), 0, 20)],
)
def test_minutes_before_the_first_collection_are_not_known(
    tmp_path: Path, sampled: Sequence[int], first_offset: int, unknown: int
) -> None:
    """A group whose first row is later than the first look at the cluster, or whose log is there from offset 0 on, was not there
    before; of another one that is not known. Where nothing was sampled nothing is."""
    moments = [minute * MINUTE_MS for minute in sampled]
    covered = [run(first_offset, 99, 19 * MINUTE_MS, 40 * MINUTE_MS)]
    commits = [commit("g", "t", 0, 5, 20 * MINUTE_MS, 50)]
    tables = {"coverage": covered, "offset_commits": commits, "group_health": [window(20)]}
    write_gold(tmp_path / "w", tables, sampled_ms=moments)
    span = (5 * MINUTE_MS, 40 * MINUTE_MS)
    (whole,) = kept(History.open(tmp_path / "w"), None, span, NINE, is_whole=True)
    assert (whole.from_ms // MINUTE_MS, whole.unknown) == (5 if unknown in (15, 35) else 20, unknown)
    (found,) = kept(History.open(tmp_path / "w"), None, span, NINE)
    assert (found.from_ms // MINUTE_MS, found.minutes) == (20, 20)


@pytest.mark.parametrize(("thinned_until", "unknown"), [(20, 0), (21, 15)])
def test_records_that_were_thinned_do_not_tell_that_a_group_was_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thinned_until: int, unknown: int
) -> None:
    covered = [run(0, 99, 19 * MINUTE_MS, 40 * MINUTE_MS)]
    tables = {"coverage": covered, "offset_commits": [commit("g", "t", 0, 5, 20 * MINUTE_MS, 50)], "group_health": [window(20)]}
    write_gold(tmp_path / "w", tables, sampled_ms=[19 * MINUTE_MS, 40 * MINUTE_MS])
    monkeypatch.setattr(History, "pruned_until_ms", thinned_until * MINUTE_MS)
    (found,) = kept(History.open(tmp_path / "w"), None, (5 * MINUTE_MS, 40 * MINUTE_MS), NINE, is_whole=True)
    assert found.unknown == unknown


def test_a_commit_outside_of_its_log_is_bad_and_both_limits_count(tmp_path: Path) -> None:
    rows = [window(0, past_end=1, max_lag_ms=None), window(1, below_start=1), window(2, total_lag=11), window(3, total_lag=10)]
    rows += [window(4, total_lag=None, max_lag_ms=1_001), window(5, total_lag=None), window(6, total_lag=3)]
    (found,) = asked(tmp_path / "w", rows, range(8), (0, 7), Objective(1_000, 10, Fraction(1, 2)))
    assert (found.good, found.bad, found.unknown) == (2, 4, 1)


def test_a_share_is_exact() -> None:
    assert Kept("g", 0, 0, good=9, bad=1).left(Fraction("99.9") / 100) < 0 <= Kept("g", 0, 0, good=9, bad=1).left(NINE.target)


@pytest.mark.parametrize(("lag", "unknown"), [(0, 40 - 11), (None, 0)])
def test_minutes_after_the_last_sample_of_its_log_are_not_known(tmp_path: Path, lag: int | None, unknown: int) -> None:
    """Though others are sampled on. Without a lag there is none to grow old: the rows themselves tell."""
    place = {"group": "g", "topic": "t", "partition": 0, "committed_offset": 7, "log_end_offset": 7, "kind": "sample"}
    told = [] if lag is None else [{**place, "time_ms": 10 * MINUTE_MS, "lag": lag, "lag_ms": 0}]
    tables = {"offset_commits": [commit("g", "t", 0, 7, 0, 1)], "group_health": [window(0)], "lag": told}
    write_gold(tmp_path, tables, sampled_ms=[minute * MINUTE_MS for minute in range(41)])
    (found,) = kept(History.open(tmp_path), None, (0, 40 * MINUTE_MS), NINE)

    assert (found.good, found.bad, found.unknown) == (40 - unknown, 0, unknown)


@pytest.mark.parametrize(
    ("commits_after", "good", "unknown"),
    [(1, 11 + 15, 9), (0, 35, 0)],
    ids=["what it committed meanwhile is gone", "what it committed last would be there"],
)
def test_minutes_of_which_no_record_was_collected_are_not_known(
    tmp_path: Path, commits_after: int, good: int, unknown: int
) -> None:
    """Of minutes 10 to 20 records were compacted away: a group that commits on may have been reset, and may have come back."""
    runs = [run(0, 9, 0, 10 * MINUTE_MS + 5), run(20, 29, 20 * MINUTE_MS + 5, 35 * MINUTE_MS)]
    rows = [window(0, commits=1), window(20, commits=commits_after)]
    write_gold(
        tmp_path / "w",
        {"group_health": rows, "coverage": runs, "offset_commits": [commit("g", "t", 0, 5, 1, 1)]},
        sampled_ms=[at * MINUTE_MS for at in range(36)],
    )

    (found,) = kept(History.open(tmp_path / "w"), None, (0, 35 * MINUTE_MS), NINE)
    assert (found.good, found.unknown, found.bad) == (good, unknown, 0)
