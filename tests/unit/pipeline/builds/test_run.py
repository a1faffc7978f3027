"""The build: whatever the cut, order and repetition of what was collected, and the number of slices, the tables are the same."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import deltalake
import pytest
from deltalake import DeltaTable
from pyarrow.parquet import read_schema

from kgctl.errors import RefusedError, UnreachableError
from kgctl.pipeline.builds import cut, run
from kgctl.pipeline.builds.run import Progress, build
from kgctl.pipeline.engines import Engine, LocalEngine
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.tables import BUILT, TABLES
from kgctl.pipeline.store.warehouse import TABLES_VERSION, Warehouse
from tests.support.pipeline.warehouses import (
    LOG,
    SAMPLES,
    add,
    built,
    built_whole,
    collected,
    data_files,
    rows_of,
    tables_of,
    tables_of_whole,
)

RECORDS = sum(part.num_rows for part in LOG)


class Death(BaseException):
    """Ends everything; nobody catches it."""


def test_every_table_has_its_columns_and_rows(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")

    result = built(warehouse)

    assert (result.built, result.unchanged, result.failed, result.decoded) == (1, 0, [], RECORDS)
    rows = {name: warehouse.table(name).rows() for name in BUILT}
    assert all(table.schema.equals(TABLES[name].schema) for name, table in rows.items())
    files = [read_schema(path) for name in BUILT for path in data_files(warehouse, name)]
    assert not [each for schema in files for each in schema if "dictionary" in str(each.type)], "types that every reader knows"
    assert {each.table: each.rows for each in result.tables} == {name: table.num_rows for name, table in rows.items()}
    assert [name for name, table in rows.items() if not table.num_rows] == ["undecoded"]
    assert rows_of(warehouse, "offset_commits")[0]["log_partition"] in range(4)


def test_the_same_build_again_changes_nothing(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "w").rglob("*")}

    def no_engine(_records: int) -> LocalEngine:
        raise AssertionError("there is nothing to do")

    result = build(warehouse, ["c1"], no_engine)

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "w").rglob("*")} == before
    assert (result.built, result.unchanged, result.decoded) == (0, 1, 0)
    assert not any(table.changed or table.written for table in result.tables)


def test_each_table_is_opened_once_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = collected(tmp_path / "w", [part.slice(0, 40) for part in LOG])
    built(warehouse)
    add(warehouse, "c1", LOG[0].slice(40))
    there = {path.name for path in (tmp_path / "w").iterdir()}
    opened: Counter[tuple[str, int | None]] = Counter()

    def counting(uri: str, version: int | None = None, **options: Any) -> DeltaTable:
        opened[uri, version] += 1
        return DeltaTable(uri, version=version, **options)

    monkeypatch.setattr(deltalake, "DeltaTable", counting)
    result = built(warehouse)

    assert result.decoded == LOG[0].num_rows - 40
    times = {Path(uri).name: count for (uri, version), count in opened.items() if version is None and Path(uri).name in there}
    assert {"offset_commits", "lag", "records", "samples", "builds"} <= times.keys()
    assert {name for name, count in times.items() if count > 1} <= {"state"}, "which is looked at before the first cluster"


def test_a_rebuild_gives_the_same_rows(tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    before = tables_of(warehouse)

    assert built(warehouse, is_rebuild=True).built == 1

    assert tables_of(warehouse) == before


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.deep)])
def test_any_cut_order_and_repetition_gives_the_same_tables(tmp_path: Path, seed: int) -> None:
    expected = tables_of_whole()
    choice = random.Random(seed)
    parts = []
    for part in LOG:
        cuts = [0, *sorted(choice.sample(range(part.num_rows), choice.randint(1, 6))), part.num_rows]
        pieces = [part.slice(low, high - low) for low, high in pairwise(cuts)]
        parts += [*pieces, *choice.sample(pieces, 1)]
    choice.shuffle(parts)
    warehouse = collected(tmp_path / "cut", parts, SAMPLES.take(choice.sample(range(SAMPLES.num_rows), SAMPLES.num_rows)))
    if seed % 2:
        assert warehouse.add_samples("c1", SAMPLES.slice(3, 5), is_again=True) == 0

    built(warehouse)

    assert tables_of(warehouse) == expected


@pytest.mark.deep
def test_builds_in_between_end_with_the_same_tables(tmp_path: Path) -> None:
    expected = tables_of_whole()
    choice = random.Random(1)
    pieces = [part.slice(low, 80) for part in LOG for low in range(0, part.num_rows, 80)]
    choice.shuffle(pieces)
    warehouse = collected(tmp_path / "cut", [], SAMPLES.slice(0, 50))
    for number, piece in enumerate(pieces):
        add(warehouse, "c1", piece, str(number))
        if number % 3 == 0:
            assert built(warehouse).built == 1
    warehouse.add_samples("c1", SAMPLES.slice(50))

    built(warehouse)

    assert tables_of(warehouse) == expected


def test_processes_and_slices_make_the_same_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w")
    seen: list[Progress] = []
    monkeypatch.setattr(cut, "PORTION_ROWS", 40)

    build(warehouse, ["c1"], lambda _: LocalEngine(2), on_progress=seen.append)

    assert tables_of(warehouse) == expected
    assert len({file.path.split("/")[-1].split("-")[0] for file in warehouse.table("lag").files()}) > 3
    assert len(seen) > 3


def test_a_damaged_file_of_records_fails_the_build_and_the_tables_stay(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in LOG])
    built(warehouse)
    before, known = tables_of(warehouse), data_files(warehouse, "records")
    add(warehouse, "c1", LOG[2].slice(30), "the rest")
    (broken,) = set(data_files(warehouse, "records")) - set(known)
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])

    result = built(warehouse)

    assert (result.built, len(result.failed)) == (0, 1)
    assert result.failed[0].message.startswith(f"cluster 'c1' was not built: {broken}: cannot be read: ")
    assert tables_of(warehouse) == before

    skipping = built(Warehouse.open(copytree(tmp_path / "w", tmp_path / "copy")), skips_damaged=True)
    assert (skipping.built, [Path(path).name for path in skipping.skipped]) == (1, [broken.name])

    broken.write_bytes(whole)
    assert (built(warehouse).failed, warehouse.files_behind("records", "c1")) == ([], [])


def test_two_builds_at_a_time_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w")
    write = run._coverage

    def meanwhile(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(run, "_coverage", write)
        assert built(Warehouse.open(tmp_path / "w")).built == 1
        return write(*given, **named)

    monkeypatch.setattr(run, "_coverage", meanwhile)
    assert built(warehouse).failed == []
    assert tables_of(warehouse) == expected
    assert built(warehouse).unchanged == 1


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.deep)])
def test_death_between_any_two_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    expected = tables_of_whole()
    commit = Table.commit
    for last in range(0, len(BUILT) + 1, step):
        warehouse = collected(tmp_path / f"{last}", [part.slice(0, 30) for part in LOG])
        built(warehouse)
        before = _as_read(warehouse)
        for part in LOG:
            add(warehouse, "c1", part.slice(30), "the rest")
        left = last

        def counted(table: Table, *given: Any, **named: Any) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise Death
            return commit(table, *given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(Table, "commit", counted)
            with pytest.raises(Death):
                built(warehouse)
        assert _as_read(warehouse) == before, "readers go by the last build that has ended"
        add(warehouse, "c1", LOG[0].slice(0, 3), "nothing new")
        assert built(warehouse).failed == []
        assert tables_of(warehouse) == expected, f"after {last} commits"


def test_what_came_after_a_build_that_died_is_built_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in LOG])

    def dies(*_: Any) -> None:
        raise Death

    with monkeypatch.context() as patched:
        patched.setattr(run, "_commit_state", dies)
        with pytest.raises(Death):
            built(warehouse)
    for part in LOG:
        add(warehouse, "c1", part.slice(30), "the rest")
    result = built(warehouse)

    assert (result.unchanged, result.failed, result.decoded) == (0, [], RECORDS)
    assert tables_of(warehouse) == tables_of_whole()
    assert {each.table: each.rows for each in result.tables} == {name: warehouse.table(name).count("c1") for name in BUILT}
    assert built(warehouse).unchanged == 1


def _as_read(warehouse: Warehouse) -> dict[str, int]:
    return {name: warehouse.table(name, version).rows().num_rows for name, version in warehouse.versions().items()}


def test_tables_of_another_kgctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = built_whole(tmp_path / "w")
    monkeypatch.setattr(run, "TABLES_VERSION", TABLES_VERSION - 1)
    with pytest.raises(RefusedError, match="a newer kgctl built the tables of cluster 'c1'"):
        built(warehouse)
    monkeypatch.setattr(run, "TABLES_VERSION", TABLES_VERSION + 2)
    assert (built(warehouse).rebuilt, built(warehouse).rebuilt) == (["c1"], [])


def test_a_column_that_was_never_null_and_may_be_now_is_one_in_tables_that_are_there(tmp_path: Path) -> None:
    """Spark takes "IS NULL" of a column that is never null for false."""
    warehouse = collected(tmp_path / "w")
    now, place = TABLES["group_health"], TABLES["group_health"].schema.get_field_index("past_end")
    with pytest.MonkeyPatch.context() as patched:
        before = now.schema.set(place, now.schema.field(place).with_nullable(False))
        patched.setitem(TABLES, "group_health", replace(now, schema=before))
        built(warehouse)
    there = warehouse.table("group_health").rows()
    path = str(tmp_path / "w" / "group_health")
    was = [each.name for each in DeltaTable(path).schema().fields if each.nullable]
    for part in LOG:
        add(warehouse, "c2", part)
    build(warehouse, ["c1", "c2"], lambda _: LocalEngine(), is_rebuild=True)  # as where an older kgctl had built them

    new = [each.name for each in DeltaTable(path).schema().fields if each.nullable]
    assert (new, [name for name in new if name not in was]) == (
        [each.name for each in now.dated() if each.nullable],
        ["past_end"],
    )
    assert warehouse.table("group_health").count("c1") == there.num_rows > 0


def test_clusters_are_built_by_themselves(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")
    add(warehouse, "c2", LOG[0])
    built(warehouse)
    assert [sum(file.rows for file in warehouse.files_behind("records", name)) for name in ("c1", "c2")] == [0, LOG[0].num_rows]
    before = tables_of(warehouse)
    assert build(warehouse, ["c2"], lambda _: LocalEngine()).built == 1
    assert tables_of(warehouse) == before
    assert rows_of(warehouse, "offset_commits", "c2")


def test_an_engine_that_cannot_be_had_ends_the_build(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")

    def none(_: int) -> Engine:
        raise UnreachableError("sc://spark: nobody answers")

    with pytest.raises(UnreachableError, match=r"^sc://spark: nobody answers$"):
        build(warehouse, ["c1"], none)
    assert built(warehouse).built == 1
