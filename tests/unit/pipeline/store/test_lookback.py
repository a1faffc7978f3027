"""What files note of their rows: answers about a moment are the same with these notes as without, and read less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kgctl.pipeline.answers import rows
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.inferred import standings
from kgctl.pipeline.answers.series import LAG, STATUS, offsets_at, rows_at
from kgctl.pipeline.store import lookback
from kgctl.pipeline.store.files import opened
from kgctl.pipeline.store.lookback import Notes
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.pipeline.gold import commit, run, write_gold

COUNT, LAST_MS = 2_000, 10_000
Row = dict[str, Any]


def history(folder: Path, seed: int) -> Warehouse:
    """Commits of a busy group and two others, sorted as builds write them: clocks go back, offsets are removed, lags unknown."""
    random = np.random.default_rng(seed)
    groups = random.choice(["audit", "busy", "zoo"], COUNT, p=[0.05, 0.9, 0.05])
    times = np.sort(random.integers(0, LAST_MS, COUNT)) + random.integers(-40, 40, COUNT)
    places = zip(groups.tolist(), random.integers(0, 5, COUNT).tolist(), times.tolist(), range(COUNT), strict=True)
    found = [
        commit(group, "t", partition, None if random.random() < 0.02 else log_offset, max(time_ms, 0), log_offset)
        for group, partition, time_ms, log_offset in places
    ]
    found.sort(key=lambda row: (row["group"], row["partition"], row["effect_offset"]))
    lags = [
        {
            **{name: row[name] for name in ("group", "topic", "partition", "time_ms")},
            "committed_offset": row["committed_offset"],
            "log_end_offset": None if row["log_offset"] % 7 == 0 else row["committed_offset"] + 5,
            "lag": None if row["log_offset"] % 7 == 0 else 5,
            "lag_ms": None,
            "kind": "sample" if row["log_offset"] % 5 == 0 else "commit",
        }
        for row in found
        if row["committed_offset"] is not None
    ]
    lags.sort(key=lambda row: (row["group"], row["partition"], row["time_ms"]))
    keys = ("group", "topic", "partition", "time_ms")
    status = [{**{name: row[name] for name in keys}, "status": ("OK", "WARN")[index % 2]} for index, row in enumerate(lags)]
    covered = [run(0, COUNT, 0, LAST_MS + 100)] if seed % 2 else [run(3, COUNT, 0, LAST_MS + 100)]
    tables = {"offset_commits": found, "lag": lags, "status_changes": status, "coverage": covered}
    return write_gold(folder, tables, files=1 + seed)


def answers(warehouse: Warehouse, groups: list[str] | None, at_ms: int) -> list[Any]:
    opened = History.open(warehouse.location)
    return [
        offsets_at(opened, groups, at_ms),
        rows_at(opened, LAG, groups, at_ms),
        rows_at(opened, STATUS, groups, at_ms),
        standings(opened, groups, at_ms),
    ]


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_the_same_with_notes_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    with monkeypatch.context() as plain:
        plain.setattr(lookback, "_ORDERS", {})
        plain.setattr(lookback, "_NOTED", {})
        without = history(tmp_path / "without", seed)
    monkeypatch.setattr(lookback, "BLOCK_ROWS", 300)
    monkeypatch.setattr(lookback, "ROW_GROUP_ROWS", 250)
    monkeypatch.setattr(lookback, "_WORTH", 1)
    monkeypatch.setattr(lookback, "_LEAST_ROWS", 1)
    noted = history(tmp_path / "noted", seed)
    assert _notes(noted)
    assert not _notes(without)

    for at_ms in (0, 777, 5_000, 9_930, LAST_MS + 500_000):
        for groups in (None, ["busy"], ["audit", "nosuch"]):
            assert answers(noted, groups, at_ms) == answers(without, groups, at_ms), (at_ms, groups)


def _notes(warehouse: Warehouse) -> int:
    table, found = warehouse.table("offset_commits"), 0
    for file in table.files():
        with opened(table.location, table.name, file.path) as source:
            found += len(Notes.of(source.metadata.metadata).numbers)
    return found


def test_question_about_a_moment_reads_the_rows_around_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookback, "BLOCK_ROWS", 200)
    monkeypatch.setattr(lookback, "_LEAST_ROWS", 1)
    warehouse = history(tmp_path, 3)
    read = []
    whole = rows._read

    def reading(source: Any, numbers: Any, *rest: Any) -> Any:
        read.append(sum(source.metadata.row_group(number).num_rows for number in numbers))
        return whole(source, numbers, *rest)

    monkeypatch.setattr(rows, "_read", reading)
    opened_ = History.open(warehouse.location)
    for at_ms, most in ((LAST_MS * 2, 100), (LAST_MS // 2, 900)):
        read.clear()
        offsets_at(opened_, ["busy"], at_ms)
        assert sum(read) <= most


@pytest.mark.parametrize("name", ["offset_commits", "lag", "status_changes"])
def test_sorted_rows_are_judged_as_rows_in_any_order(tmp_path: Path, name: str) -> None:
    table = history(tmp_path, 0).table(name)
    stored = table.rows()
    assert lookback._noted(name, stored).tolist() == lookback._NOTED[name](stored).tolist()
