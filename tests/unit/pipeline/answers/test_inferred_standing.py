"""The status beside a lag: Burrow's, unless the log was not sampled often enough to say so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.inferred import standings, unmeasured_groups
from kgctl.pipeline.store.tables import LOG_OFFSETS
from tests.support.pipeline.gold import Row, commit, run, write_gold

SECOND_MS = 1000


def lag(at_s: float, value: int | None, kind: str = "commit") -> Row:
    end = None if value is None else 100 + value
    named = {"group": "g", "topic": "t", "partition": 0, "time_ms": int(at_s * SECOND_MS), "kind": kind}
    return {**named, "committed_offset": 100, "log_end_offset": end, "lag": value}


def answered(folder: Path, lags: list[Row], samples_s: range, at_s: int, status: str | None = None) -> tuple[str | None, str]:
    """A group that commits every second for ten seconds, with the log sampled at these times, as of ``at_s``."""
    changes = [{"group": "g", "topic": "t", "partition": 0, "time_ms": 5_000, "status": status}] if status else []
    last_ms = at_s * SECOND_MS
    tables = {
        "offset_commits": [commit("g", "t", 0, 100, 0, 0)],
        "lag": lags,
        "status_changes": changes,
        "coverage": [run(0, 9, 0, last_ms)],
    }
    warehouse = write_gold(folder, tables)
    rows = [
        {"topic": "t", "partition": 0, "timestamp_ms": at * SECOND_MS, "log_start_offset": 0, "log_end_offset": 105}
        for at in samples_s
    ]
    warehouse.add_samples("c1", pa.Table.from_pylist(rows, schema=LOG_OFFSETS))
    (row,) = standings(History.open(folder), None, last_ms)
    return row["status"], row["why"]


COMMITS = [lag(at, 5) for at in range(10)]


@pytest.mark.parametrize(
    ("lags", "samples_s", "at_s", "expected"),
    [
        ([*COMMITS, lag(60, 5, "sample")], range(0, 70, 10), 70, ("OK", "")),
        ([*COMMITS, lag(420, 5, "sample")], range(0, 421, 10), 429, ("OK", "")),
        (
            [*COMMITS, lag(420, 5, "sample")],
            range(0, 421, 60),
            429,
            ("UNMEASURED", "no commit for 7 min, and 7 samples since: too few to tell whether it stopped"),
        ),
        ([*COMMITS, lag(420, 0, "sample")], range(0, 421, 60), 429, ("OK", "")),
        ([*COMMITS, lag(20, 0, "sample")], range(0, 421, 10), 429, ("OK", "")),
        ([*COMMITS, lag(20, 0, "sample")], range(0, 100, 10), 429, ("UNMEASURED", "last measured 5 min before")),
        ([*COMMITS], range(0, 20, 10), 429, ("UNMEASURED", "last measured 7 min before")),
        ([lag(9, None)], range(0), 20, (None, "the end of the log was not sampled")),
    ],
)
def test_a_group_without_trouble(
    tmp_path: Path, lags: list[Row], samples_s: range, at_s: int, expected: tuple[str | None, str]
) -> None:
    assert answered(tmp_path / "w", lags, samples_s, at_s) == expected


def test_trouble_that_was_seen_is_told(tmp_path: Path) -> None:
    found = answered(tmp_path / "w", [*COMMITS, lag(420, 5, "sample")], range(0, 421, 60), 429, status="STALL")
    assert found == ("STALL", "")


def test_the_last_known_lag_counts_where_the_last_commit_has_none(tmp_path: Path) -> None:
    found = answered(tmp_path / "w", [*COMMITS, lag(15, None)], range(0, 11, 10), 16)
    assert found == ("OK", "")


def test_groups_that_are_not_measured_often_enough(tmp_path: Path) -> None:
    answered(tmp_path / "w", COMMITS, range(0, 11, 10), 429)
    history = History.open(tmp_path / "w")
    assert unmeasured_groups(history, None, 429_000) == {"g": "t-0: last measured 7 min before"}
    assert unmeasured_groups(history, None, 15_000) == {}


def test_rows_and_samples_of_several_files_are_judged_together(tmp_path: Path) -> None:
    """As a second build leaves them: files with other groups and topics, which pyarrow reads into other dictionaries."""
    lags: list[Row] = [{**lag(9, 5), "group": group, "topic": topic} for group, topic in (("g", "t"), ("h", "u"))]
    commits = [commit("g", "t", 0, 100, 0, 0), commit("h", "u", 0, 100, 0, 1)]
    tables = {"offset_commits": commits, "lag": lags, "coverage": [run(0, 9, 0, 20_000)]}
    warehouse = write_gold(tmp_path / "w", tables, files=2)
    for topic in ("t", "u"):
        row = {"topic": topic, "partition": 0, "timestamp_ms": 9_000, "log_start_offset": 0, "log_end_offset": 105}
        warehouse.add_samples("c1", pa.Table.from_pylist([row], schema=LOG_OFFSETS))
    found = standings(History.open(tmp_path / "w"), None, 20_000)
    assert [(row["group"], row["status"]) for row in found] == [("g", "OK"), ("h", "OK")]
