"""Objectives over a span: minutes without a row, minutes without a sample, what is outside of its log."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.objectives import Kept, Objective, kept
from tests.support.pipeline.gold import Row, write_gold

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


def test_a_commit_outside_of_its_log_is_bad_and_both_limits_count(tmp_path: Path) -> None:
    rows = [window(0, past_end=1, max_lag_ms=None), window(1, below_start=1), window(2, total_lag=11), window(3, total_lag=10)]
    rows += [window(4, total_lag=None, max_lag_ms=1_001), window(5, total_lag=None), window(6, total_lag=3)]
    (found,) = asked(tmp_path / "w", rows, range(8), (0, 7), Objective(1_000, 10, Fraction(1, 2)))
    assert (found.good, found.bad, found.unknown) == (2, 4, 1)


def test_a_share_is_exact() -> None:
    assert Kept("g", 0, 0, good=9, bad=1).left(Fraction("99.9") / 100) < 0 <= Kept("g", 0, 0, good=9, bad=1).left(NINE.target)
