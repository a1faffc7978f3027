"""The build: what is new is built, once; whatever the cut, order and number of the files, the tables are the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from kgctl.errors import RefusedError
from kgctl.pipeline.build.cluster import build_cluster
from kgctl.pipeline.build.partition import build_partition
from kgctl.pipeline.build.run import BuildResult, Progress, build, tasks_of
from kgctl.pipeline.spread import LocalEngine
from kgctl.pipeline.tables.registry import CLUSTER_TABLES, PARTITION_TABLES, module
from kgctl.pipeline.warehouse.files import read_table
from kgctl.pipeline.warehouse.schemas import LOG_OFFSETS
from kgctl.pipeline.warehouse.warehouse import Warehouse
from tests.support.pipeline.logs import PARTITIONS, raw_log

LOG = raw_log()
SAMPLES = pa.Table.from_pylist(
    [
        {"topic": "t", "partition": part, "timestamp_ms": at_ms, "log_start_offset": 0, "log_end_offset": at_ms // 100}
        for part in range(4)
        for at_ms in range(0, 200_000, 10_000)
    ],
    schema=LOG_OFFSETS,
)


def collected(folder: Path, parts: Sequence[pa.Table] = tuple(LOG), samples: pa.Table = SAMPLES) -> Warehouse:
    """A warehouse with these tables in it, each a file."""
    warehouse = Warehouse.create(folder)
    for number, part in enumerate(parts):
        if part.num_rows:
            warehouse.add_records("c1", part.column("partition")[0].as_py(), part, f"part {number}")
    warehouse.add_log_offsets("c1", samples)
    return warehouse


def built(warehouse: Warehouse, *, is_rebuild: bool = False) -> BuildResult:
    return build(warehouse, ["c1"], LocalEngine, is_rebuild=is_rebuild)


def files_of(warehouse: Warehouse) -> dict[str, bytes]:
    """Everything in the folder."""
    return {str(path.relative_to(warehouse.path)): path.read_bytes() for path in warehouse.path.rglob("*") if path.is_file()}


def gold_of(warehouse: Warehouse) -> Mapping[str, list[tuple[str, bytes]]]:
    """The files of the tables, byte for byte."""
    names = (*PARTITION_TABLES, *CLUSTER_TABLES)
    return {name: [(path.name, path.read_bytes()) for path in warehouse.gold(name, "c1")] for name in names}


def test_every_table_has_its_schema_and_rows(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")

    result = built(warehouse)

    assert (result.built, result.unchanged, result.failed) == (PARTITIONS, 0, [])
    assert result.decoded == sum(part.num_rows for part in LOG)
    rows = {}
    for name in (*PARTITION_TABLES, *CLUSTER_TABLES):
        tables = [read_table(path) for path in warehouse.gold(name, "c1")]
        assert all(table.schema.equals(module(name).SCHEMA) for table in tables), name
        rows[name] = sum(table.num_rows for table in tables)
    assert {table.table: table.rows for table in result.tables} == rows
    assert all(table.written == table.rows for table in result.tables)
    assert [name for name, number in rows.items() if not number] == []


def test_the_same_build_again_changes_nothing(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")
    built(warehouse)
    before = files_of(warehouse)

    def no_engine() -> LocalEngine:
        raise AssertionError("there is nothing to do")

    result = build(warehouse, ["c1"], no_engine)

    assert files_of(warehouse) == before
    assert (result.built, result.unchanged, result.decoded) == (0, PARTITIONS, 0)
    assert not any(table.changed or table.written for table in result.tables)
    assert all(table.rows for table in result.tables if table.table == "offset_commits")


def test_a_rebuild_gives_the_same_bytes(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")
    built(warehouse)
    before = files_of(warehouse)

    result = built(warehouse, is_rebuild=True)

    assert files_of(warehouse) == before
    assert (result.built, result.unchanged, any(table.changed for table in result.tables)) == (PARTITIONS, 0, False)


def test_only_what_is_new_is_worked_on(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w", [*LOG[1:], LOG[0].slice(0, 40)])
    built(warehouse)
    before = files_of(warehouse)
    warehouse.add_records("c1", 0, LOG[0].slice(40), "the rest")

    result = built(warehouse)

    assert (result.built, result.unchanged, result.decoded) == (1, PARTITIONS - 1, LOG[0].num_rows - 40)
    after = files_of(warehouse)
    others = [name for name in before if "partition=0" not in name and name.startswith(("silver", "gold", "state/built"))]
    assert all(after[name] == before[name] for name in others)
    assert gold_of(warehouse) == gold_of(built_whole(tmp_path / "whole"))


def built_whole(folder: Path) -> Warehouse:
    """Built from one file a partition."""
    warehouse = collected(folder)
    built(warehouse)
    return warehouse


@pytest.mark.parametrize("seed", range(2))
def test_any_cut_order_and_repetition_gives_the_same_tables(tmp_path: Path, seed: int) -> None:
    expected = gold_of(built_whole(tmp_path / "whole"))
    choice = random.Random(seed)
    parts = []
    for part in LOG:
        places = sorted(choice.sample(range(part.num_rows), choice.randint(1, 6)))
        cuts = [0, *places, part.num_rows]
        pieces = [part.slice(low, high - low) for low, high in pairwise(cuts)]
        parts += [*pieces, *choice.sample(pieces, 1)]
    choice.shuffle(parts)
    warehouse = collected(tmp_path / "cut", parts, SAMPLES.take(choice.sample(range(SAMPLES.num_rows), SAMPLES.num_rows)))
    if seed % 2:
        warehouse.add_log_offsets("c1", SAMPLES.slice(3, 5))

    built(warehouse)

    assert gold_of(warehouse) == expected


def test_builds_in_between_end_with_the_same_tables(tmp_path: Path) -> None:
    expected = gold_of(built_whole(tmp_path / "whole"))
    choice = random.Random(1)
    pieces = [part.slice(low, 17) for part in LOG for low in range(0, part.num_rows, 17)]
    choice.shuffle(pieces)
    warehouse = collected(tmp_path / "cut", [])
    for number, piece in enumerate(pieces):
        warehouse.add_records("c1", piece.column("partition")[0].as_py(), piece, str(number))
        if number % 7 == 0:
            built(warehouse)

    before = built(warehouse)
    assert gold_of(warehouse) == expected
    out_of_use = warehouse.left_overs("built")
    assert before.left_overs > 0, "what earlier builds had put out of use is gone"

    assert built(warehouse).left_overs == 0
    assert warehouse.left_overs("built") == out_of_use, "a build without anything to do touches nothing"
    assert built(warehouse, is_rebuild=True).left_overs == len(out_of_use) > 0
    assert warehouse.left_overs("built") == []


def test_processes_make_the_same_tables(tmp_path: Path) -> None:
    expected = gold_of(built_whole(tmp_path / "whole"))
    warehouse = collected(tmp_path / "w")
    seen: list[Progress] = []

    build(warehouse, ["c1"], lambda: LocalEngine(2), on_progress=seen.append)

    assert gold_of(warehouse) == expected
    assert seen[-1] == Progress(sum(part.num_rows for part in LOG), sum(part.num_rows for part in LOG))


def test_a_partition_that_fails_keeps_its_tables_and_the_others_are_built(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in LOG])
    built(warehouse)
    old = warehouse.built("c1", 2)
    for part in LOG:
        warehouse.add_records("c1", part.column("partition")[0].as_py(), part.slice(30), "the rest")
    broken = warehouse.path / warehouse.bronze_files("c1", 2)[-1].path
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])

    result = built(warehouse)

    assert result.built == PARTITIONS - 1
    assert [error.partition for error in result.failed] == [2]
    assert result.failed[0].message.startswith(f"partition 2 of cluster 'c1' was not built: {broken}: cannot be read: ")
    assert warehouse.built("c1", 2) == old
    assert all((warehouse.path / path).exists() for paths in old.tables.values() for path in paths)

    broken.write_bytes(whole)
    result = built(warehouse)

    assert (result.built, result.unchanged, result.failed) == (1, PARTITIONS - 1, [])
    assert gold_of(warehouse) == gold_of(built_whole(tmp_path / "whole"))


def test_two_builds_at_a_time_are_refused(tmp_path: Path) -> None:
    warehouse = collected(tmp_path / "w")
    with warehouse.locked("built"), pytest.raises(RefusedError):
        built(warehouse)


def test_samples_that_come_later_are_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = collected(tmp_path / "w", samples=SAMPLES.slice(0, 40))
    first = built(warehouse)
    warehouse.add_log_offsets("c1", SAMPLES.slice(40))

    monkeypatch.setattr("kgctl.pipeline.build.records.resolve", None)  # the records have told what they tell
    result = built(warehouse)

    assert first.counts["c1"]["partitions_without_samples"] > 0
    without = {"partitions_without_samples": 0}
    assert {**result.counts["c1"], **without} == {**first.counts["c1"], **without}
    assert result.counts["c1"]["partitions_without_samples"] == 0
    assert (result.built, result.decoded) == (PARTITIONS, 0), "commits need no new decoding"
    monkeypatch.undo()
    assert gold_of(warehouse) == gold_of(built_whole(tmp_path / "whole"))
    assert warehouse.remove_left_overs("built") > 0
    assert built(warehouse, is_rebuild=True).failed == [], "all that is still in use is there"


def test_a_damaged_table_is_made_anew(tmp_path: Path) -> None:
    """By --rebuild, and where only samples came: a file of the right size whose bytes have changed, and one cut short."""
    expected = gold_of(built_whole(tmp_path / "whole"))
    warehouse = collected(tmp_path / "w", samples=SAMPLES.slice(0, 40))
    built(warehouse)
    for number, path in enumerate(warehouse.gold("offset_commits", "c1")):
        data = bytearray(path.read_bytes())
        data[-6] ^= 0xFF
        path.write_bytes(data if number % 2 else data[:100])
    warehouse.add_log_offsets("c1", SAMPLES.slice(40))
    assert built(warehouse).failed == []
    assert gold_of(warehouse) == expected

    path = warehouse.gold("lag", "c1")[0]
    path.write_bytes(bytes(path.stat().st_size))
    built(warehouse, is_rebuild=True)
    assert gold_of(warehouse) == expected


def test_a_task_may_be_done_more_than_once_at_a_time(tmp_path: Path) -> None:
    expected = gold_of(built_whole(tmp_path / "whole"))
    warehouse = collected(tmp_path / "w")
    build_cluster(warehouse, "c1", is_rebuild=False)
    tasks = list(tasks_of(warehouse, "c1", is_rebuild=False))

    done = LocalEngine(2).map(build_partition, [task for task in tasks for _ in range(3)])

    assert [one.failure for one in done] == [None] * 3 * PARTITIONS
    assert gold_of(warehouse) == expected
    assert warehouse.remove_left_overs("built") == 0


def test_files_that_a_collection_made_one_meanwhile_are_read_from_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [LOG[0].slice(low, 20) for low in range(0, LOG[0].num_rows, 20)]
    warehouse = collected(tmp_path / "w", pieces)
    stale = warehouse.bronze_files("c1", 0)
    anew = collected(tmp_path / "anew", [LOG[0]])
    assert built(anew).failed == []
    expected = gold_of(anew)
    whole = anew.bronze_files("c1", 0)
    original = Warehouse.bronze_files
    asked = iter([stale])
    (warehouse.path / whole[0].path).write_bytes((anew.path / whole[0].path).read_bytes())
    manifest = Path("state/collected/cluster=c1/partition=0.json")
    (warehouse.path / manifest).write_bytes((anew.path / manifest).read_bytes())
    for file in stale:
        (warehouse.path / file.path).unlink()
    monkeypatch.setattr(Warehouse, "bronze_files", lambda *which: next(asked, None) or original(*which))

    result = built(warehouse)

    assert (result.failed, result.built) == ([], 1)
    assert gold_of(warehouse) == expected
