"""SQL over a warehouse, thinning it, and forgetting."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest

from kgctl.errors import StorageError, UsageError
from kgctl.pipeline import upkeep
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.series import Exactness, offsets_at
from kgctl.pipeline.builds import cut, fold
from kgctl.pipeline.sql import VIEWS, described, query
from kgctl.pipeline.store import files
from kgctl.pipeline.store.tables import GOLD, LOG_OFFSETS, RAW, TABLES
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.upkeep import compact, forget, prune
from tests.support.pipeline.segments import commit_like
from tests.support.pipeline.warehouses import LOG, add, built, built_whole, collected, rows_of, tables_of, tables_of_whole

DAY_MS = 86_400_000
NOW_MS = 1 << 50


def days(warehouse: Warehouse, count: int, begin: int = 0) -> None:
    """A commit of each of twelve groups, every day from one on."""
    records = [commit_like(offset) for offset in range(count * 12)]
    columns = {
        "partition": [0] * len(records),
        "offset": [record.offset for record in records],
        "timestamp_ms": [record.offset // 12 * DAY_MS for record in records],
        "key": [records[record.offset % 12].key for record in records],
        "value": [record.value for record in records],
    }
    empty = {name: pa.nulls(len(records), RAW.field(name).type) for name in ("producer_id", "producer_epoch", "commits")}
    add(warehouse, "c1", pa.table({**columns, **empty}).cast(RAW).slice(begin * 12))


def ends(count: int) -> pa.Table:
    """Samples of the logs that are committed on, four a day, for so many days."""
    rows = [
        {"topic": "orders", "partition": part, "timestamp_ms": at_ms, "log_start_offset": 0, "log_end_offset": at_ms // 100_000}
        for part in range(12)
        for at_ms in range(0, count * DAY_MS, DAY_MS // 4)
    ]
    return pa.Table.from_pylist(rows, schema=LOG_OFFSETS)


@contextmanager
def files_read() -> Iterator[dict[str, list[str]]]:
    """The days of the files of each table that are read meanwhile."""
    found: dict[str, list[str]] = defaultdict(list)
    opened = files.opened

    def noted(location: files.StoreLocation, name: str, path: str, *options: Any, **others: Any) -> Any:
        found[name].append(path.split("date=")[1][:10])
        return opened(location, name, path, *options, **others)

    with pytest.MonkeyPatch.context() as patch:
        for module in (files, cut, fold):
            patch.setattr(module, "opened", noted)
        yield found


def since(tables: Mapping[str, list[dict[str, Any]]], at_ms: int) -> dict[str, list[dict[str, Any]]]:
    """The rows from a moment on."""
    times = {name: TABLES[name].time for name in GOLD}
    names = {name: {stored: own for own, stored in TABLES[name].renamed.items()}.get(time, time) for name, time in times.items()}
    return {name: [row for row in tables[name] if row[names[name]] >= at_ms] for name in GOLD}


@pytest.fixture(scope="module")
def in_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 40 records of each partition, collected and built in ten parts."""
    folder = tmp_path_factory.mktemp("parts") / "w"
    warehouse = collected(folder, [])
    for low in range(0, 40, 4):
        for part in LOG:
            add(warehouse, "c1", part.slice(low, 4))
        built(warehouse)
    return folder


def test_sql_sees_tables_and_stretches(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    versions = warehouse.versions()

    found = query(warehouse, 'SELECT count(*) AS rows, count(DISTINCT "group") AS groups FROM offset_commits', versions)
    members = query(warehouse, 'SELECT * FROM members WHERE "to" IS NOT NULL', versions)
    changes = rows_of(warehouse, "member_changes")

    commits = rows_of(warehouse, "offset_commits")
    assert found.to_pylist() == [{"rows": len(commits), "groups": len({row["group"] for row in commits})}]
    assert members.num_rows == sum(row["change"] == "left" for row in changes)
    assert all(row["from"] <= row["to"] for row in members.to_pylist())
    assert query(warehouse, "SELECT * FROM assignments", versions).num_rows == sum(
        row["change"] == "assigned" for row in rows_of(warehouse, "assignment_changes")
    )
    assert query(warehouse, "SELECT * FROM undecoded", versions).num_rows == 0
    assert query(warehouse, "SELECT * FROM stalls", versions).num_rows == sum(
        row["status"] != "OK" for row in rows_of(warehouse, "status_changes")
    )
    health = query(warehouse, 'SELECT h.from, h.to, h."group" FROM health h ORDER BY h."group", h.from', versions).to_pylist()
    assert len(health) == len(rows_of(warehouse, "group_health"))
    assert all(one["to"] == other["from"] for one, other in pairwise(health) if one["group"] == other["group"])
    assert sum(row["to"] is None for row in health) == len({row["group"] for row in health})
    moment = query(warehouse, "SELECT unix_millis(timestamp_millis(1234)) AS ms, timestamp_millis(1234) AS at", versions)
    assert moment.to_pylist() == [{"ms": 1234, "at": datetime(1970, 1, 1, 0, 0, 1, 234_000, tzinfo=UTC)}]


@pytest.mark.parametrize("text", ["SELEC 1", "SELECT * FROM nosuch", "COPY lag TO '/tmp/pipeline-out.csv'"])
def test_sql_that_cannot_be_answered_is_one_line(tmp_path: Path, text: str) -> None:
    warehouse = built_whole(tmp_path / "w")
    with pytest.raises(UsageError, match=r"^SQL: ") as raised:
        query(warehouse, text, {})
    assert "\n" not in raised.value.message


def test_every_column_is_described() -> None:
    assert {(row["table"], row["column"]) for row in described() if row["table"] not in VIEWS} == {
        (name, column) for name, table in TABLES.items() for column in table.schema.names
    }


def test_pruning_keeps_what_holds_from_then_on(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    days(warehouse, 10)
    built(warehouse)
    before = offsets_at(History.open(tmp_path / "w"), None, 7 * DAY_MS)

    pruned = prune(warehouse, 6 * DAY_MS)
    assert (pruned.rows, prune(warehouse, 6 * DAY_MS).rows) == ({"records": 60}, {})
    built(warehouse)

    history = History.open(tmp_path / "w")
    assert offsets_at(history, None, 7 * DAY_MS) == before
    assert {each.exactness for each in before} == {Exactness.EXACT}
    assert Exactness.EXACT not in {each.exactness for each in offsets_at(history, None, 3 * DAY_MS)}
    days(warehouse, 10)
    assert sum(file.rows for file in warehouse.files_behind("records", "c1")) == 60, "what was thinned can be collected again"


def test_a_cluster_or_a_source_is_forgotten(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    add(warehouse, "c2", LOG[0], "wrong")
    add(warehouse, "c2", LOG[1], "right")
    expected = tables_of(warehouse)

    assert forget(warehouse, "c2", "wrong").rows == {"records": LOG[0].num_rows}
    assert {row["source"] for row in rows_of(warehouse, "records", "c2")} == {"right"}
    assert forget(warehouse, "c2").rows["records"] == LOG[1].num_rows

    opened = Warehouse.open(tmp_path / "w")
    assert (opened.clusters(), tables_of(opened)) == (["c1"], expected)
    assert add(opened, "c2", LOG[0]) == LOG[0].num_rows


@pytest.mark.deep
def test_many_small_files_become_few_and_builds_go_on(tmp_path: Path, in_parts: Path) -> None:
    expected = tables_of_whole()
    warehouse = Warehouse.open(copytree(in_parts, tmp_path / "w"))
    add(warehouse, "c1", LOG[0].slice(40))
    files = {name: len(warehouse.table(name).files()) for name in ("records", "offset_commits")}
    before = tables_of(warehouse)

    assert compact(warehouse) > 40

    assert tables_of(warehouse) == before
    assert all(len(warehouse.table(name).files()) < count for name, count in files.items())
    for part in LOG[1:]:
        add(warehouse, "c1", part.slice(40))
    result = built(warehouse)
    assert (result.failed, result.late) == ([], {})
    assert tables_of(warehouse) == expected
    assert compact(warehouse) == 0


def test_files_that_a_build_has_taken_away_meanwhile_are_not_put_back(
    tmp_path: Path, in_parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse.open(copytree(in_parts, tmp_path / "w"))
    before = tables_of(warehouse)
    written = files.write_files

    def meanwhile(location: Any, name: str, rows: Any, prefix: str) -> Any:
        table = warehouse.table(name)
        if name == "offset_commits":
            there = table.files()
            table.commit(written(location, name, table.rows(there), "b0-63-"), there)
        return written(location, name, rows, prefix)

    monkeypatch.setattr(upkeep, "write_files", meanwhile)
    compact(warehouse)

    assert tables_of(warehouse) == before


@pytest.mark.parametrize(("sizes", "together"), [([1] * 9, 9), ([1] * 9 + [10], 9), ([1] * 9 + [9], 10), ([50, 1, 1, 7], 2)])
def test_large_files_are_not_written_anew_for_a_few_small_ones(sizes: list[int], together: int) -> None:
    assert len(upkeep._of_a_size([files.DataFile(str(number), size, 1, "") for number, size in enumerate(sizes)])) == together


def test_what_takes_nothing_away_makes_nothing_anew(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    days(warehouse, 6)
    built(warehouse)

    assert prune(warehouse, 4 * DAY_MS).rows == {"records": 36}
    assert built(warehouse).built == 1
    assert prune(warehouse, 4 * DAY_MS).rows == {}
    assert built(warehouse).unchanged == 1


def grown(folder: Path, *, lets_prune: bool) -> tuple[Warehouse, dict[str, list[str]]]:
    """Nine days of commits and samples, built; then, perhaps, thinned up to the sixth; a tenth day, built: what that has read."""
    warehouse = Warehouse.create(folder)
    days(warehouse, 9)
    warehouse.add_samples("c1", ends(10))
    built(warehouse)
    if lets_prune:
        prune(warehouse, 6 * DAY_MS)
    days(warehouse, 10, 9)
    with files_read() as read:
        result = built(warehouse)
    assert (result.failed, result.late, result.decoded, result.rebuilt) == ([], {}, 12, [])
    return warehouse, read


def test_a_build_after_thinning_costs_what_is_new(tmp_path: Path) -> None:
    undisturbed, usual = grown(tmp_path / "whole", lets_prune=False)
    thinned, read = grown(tmp_path / "thinned", lets_prune=True)
    whole, rest = tables_of(undisturbed), tables_of(thinned)

    assert set(read["records"]) == {"1970-01-10"}
    assert all(read[name] == usual[name] for name in ("records", "samples", "state"))
    more = [day for name in (*GOLD, "coverage") for day in read[name]]
    assert set(more) - {day for name in (*GOLD, "coverage") for day in usual[name]} <= {f"1970-01-0{day}" for day in range(1, 7)}
    assert since(rest, 6 * DAY_MS) == since(whole, 6 * DAY_MS)
    kept = [row for row in whole["offset_commits"] if 5 * DAY_MS <= row["time_ms"] < 6 * DAY_MS]
    assert [row for row in rest["offset_commits"] if row["time_ms"] < 6 * DAY_MS] == kept
    assert rest["coverage"] == whole["coverage"]
    with files_read() as again:
        assert built(thinned).unchanged == 1
    assert not again["records"]
    assert built(thinned, is_rebuild=True).failed == []
    assert offsets_at(History.open(tmp_path / "thinned"), None, 6 * DAY_MS) == offsets_at(
        History.open(tmp_path / "whole"), None, 6 * DAY_MS
    )


def test_what_was_late_is_made_anew_before_tables_are_thinned(tmp_path: Path) -> None:
    warehouse, _ = grown(tmp_path / "w", lets_prune=False)
    prune(warehouse, 6 * DAY_MS)
    days(warehouse, 10)
    assert sum(file.rows for file in warehouse.files_behind("records", "c1")) == 60
    assert built(warehouse).late.keys() == {"c1"}
    assert len(rows_of(warehouse, "offset_commits")) == 120
    built(warehouse)
    assert {row["time_ms"] // DAY_MS for row in rows_of(warehouse, "offset_commits")} == {5, 6, 7, 8, 9}


@pytest.mark.deep
def test_answers_and_builds_go_on_when_the_log_of_long_ago_is_gone(tmp_path: Path, in_parts: Path) -> None:
    warehouse = Warehouse.open(copytree(in_parts, tmp_path / "w"))
    expected, offsets = tables_of(warehouse), offsets_at(History.open(tmp_path / "w"), None, NOW_MS)
    add(warehouse, "c1", LOG[0].slice(40))
    for file in (tmp_path / "w").glob("*/_delta_log/*"):
        os.utime(file, (0, 0))

    pruned = prune(warehouse, 0, hours=0)
    assert (pruned.rows, pruned.merged > 40) == ({}, True)
    assert not (tmp_path / "w" / "records" / "_delta_log" / f"{0:020}.json").exists()
    assert (tables_of(warehouse), offsets_at(History.open(tmp_path / "w"), None, NOW_MS)) == (expected, offsets)
    for number in range(2):
        assert History.open(tmp_path / "w").behind().records == LOG[0].num_rows - 40, number
        prune(warehouse, 0, hours=0)
    for part in LOG[1:]:
        add(warehouse, "c1", part.slice(40))
    result = built(warehouse)

    assert (result.failed, result.late, result.decoded) == ([], {}, sum(part.num_rows - 40 for part in LOG))
    assert tables_of(warehouse) == tables_of_whole()
    with pytest.raises(StorageError, match="version 0 is not kept any more"):
        warehouse.new_files("records", 0)


def test_files_of_an_earlier_version_stay_for_a_week(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    days(warehouse, 4)
    version = warehouse.table("records").version
    pruned = prune(warehouse, 3 * DAY_MS)
    before = warehouse.table("records", version)
    assert (pruned.files, before.rows(before.files()).num_rows) == (0, 48)
    assert pruned.rows == {"records": 24}
    assert prune(warehouse, 3 * DAY_MS, hours=0).files == 2
