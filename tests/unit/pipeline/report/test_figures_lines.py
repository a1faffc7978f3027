"""Lag over time: the sum over a topic's partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.report import figures
from kgctl.pipeline.report.figures import FigureLine, lag_lines
from tests.support.pipeline.gold import Row, commit, run, write_gold


def lag(partition: int, time_ms: int, value: int | None, topic: str = "t") -> Row:
    end = None if value is None else 100 + value
    named = {"group": "g", "topic": topic, "partition": partition, "time_ms": time_ms, "kind": "commit"}
    return {**named, "committed_offset": 100, "log_end_offset": end, "lag": value}


def drawn(folder: Path, rows: list[Row], removed: list[Row] | None = None, from_ms: int = 0, to_ms: int = 1000) -> Any:
    commits = removed or [commit("g", "t", 0, 1, 0, 0)]
    write_gold(folder, {"lag": rows, "offset_commits": commits, "coverage": [run(0, 9, 0, 900)]})
    return lag_lines(History.open(folder), "g", from_ms, to_ms)


def test_partitions_add_up(tmp_path: Path) -> None:
    rows = [lag(0, 10, 5), lag(0, 30, 7), lag(0, 60, 0), lag(1, 20, 100), lag(1, 30, 50), lag(0, 15, 1, "u")]

    assert drawn(tmp_path, rows) == [
        FigureLine("t", [(10, 5), (20, 105), (30, 57), (60, 50)], 4),
        FigureLine("u", [(15, 1)], 1),
    ]


def test_unknown_is_a_gap_and_not_zero(tmp_path: Path) -> None:
    rows = [lag(0, 10, None), lag(0, 30, 7), lag(1, 20, 3), lag(1, 40, None)]

    assert drawn(tmp_path, rows) == [FigureLine("t", [(10, None), (20, None), (30, 10), (40, None)], 4)]


def test_deleted_commit_lags_no_more(tmp_path: Path) -> None:
    removed = [commit("g", "t", 0, 1, 5, 0), commit("g", "t", 0, None, 25, 1)]

    assert drawn(tmp_path, [lag(0, 10, 5), lag(1, 20, 2)], removed) == [FigureLine("t", [(10, 5), (20, 7), (25, 2)], 3)]


def test_line_begins_with_what_held_and_ends_before_the_end(tmp_path: Path) -> None:
    rows = [lag(0, 10, 5), lag(0, 20, 6), lag(0, 50, 7), lag(0, 70, 8)]

    assert drawn(tmp_path, rows, from_ms=40, to_ms=70) == [FigureLine("t", [(40, 6), (50, 7)], 2)]


def test_very_many_points_are_thinned_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_POINTS", 40)
    rows = [lag(0, time_ms, 999 if time_ms == 77 else time_ms % 7) for time_ms in range(300)]

    (line,) = drawn(tmp_path, rows)

    assert (line.of, len(line.points) <= 40) == (300, True)
    assert (77, 999) in line.points
