"""What counts in a warehouse, what is refused, and what a crash leaves."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.pipeline.warehouse import records
from kgctl.pipeline.warehouse.files import write_table
from kgctl.pipeline.warehouse.layout import MARKER
from kgctl.pipeline.warehouse.schemas import DAMAGED, LOG_OFFSETS, RAW, conform, rows_of
from kgctl.pipeline.warehouse.warehouse import Warehouse


def raw(*offsets: int, value: bytes = b"v", partition: int = 3) -> Any:
    """Records with these offsets."""
    return rows_of(
        {
            "partition": [partition] * len(offsets),
            "offset": list(offsets),
            "timestamp_ms": [1_000 + offset for offset in offsets],
            "key": [b"k%d" % offset for offset in offsets],
            "value": [value] * len(offsets),
        },
        RAW,
    )


def offsets_in(warehouse: Warehouse, cluster: str = "c", partition: int = 3) -> list[int]:
    """The offsets of all files that count, file by file."""
    tables = [pq.read_table(warehouse.path / file.path) for file in warehouse.bronze_files(cluster, partition)]
    return [offset for table in tables for offset in table.column("offset").to_pylist()]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "warehouse")


def test_the_same_again_adds_nothing_and_new_offsets_are_added(warehouse: Warehouse) -> None:
    assert warehouse.add_records("c", 3, raw(1, 2, 5), "a") == 3
    manifest = warehouse.path / "state/collected/cluster=c/partition=3.json"
    before = manifest.read_bytes()
    assert warehouse.add_records("c", 3, raw(1, 2, 5), "a") == 0
    assert manifest.read_bytes() == before
    assert warehouse.add_records("c", 3, raw(2, 3, 5, 9), "b") == 2
    assert warehouse.add_records("c", 3, raw(9, 9, 7, 8), "b") == 2  # in any order, and twice
    assert offsets_in(warehouse) == [1, 2, 5, 3, 9, 7, 8]
    assert [
        (file.rows, file.first_offset, file.last_offset, file.first_ms, file.last_ms, file.source)
        for file in (warehouse.bronze_files("c", 3))
    ] == [(3, 1, 5, 1_001, 1_005, "a"), (2, 3, 9, 1_003, 1_009, "b"), (2, 7, 8, 1_007, 1_008, "b")]


def test_another_record_at_the_same_offset_is_refused(warehouse: Warehouse) -> None:
    warehouse.add_records("c", 3, raw(1, 2, 5), "a")
    with pytest.raises(RefusedError, match="partition 3 of cluster 'c': offset 2 is in the warehouse with another record"):
        warehouse.add_records("c", 3, pa.concat_tables([raw(1), raw(2, value=b"w"), raw(9)]), "b")
    assert offsets_in(warehouse) == [1, 2, 5]
    assert warehouse.add_records("d", 3, raw(2, value=b"w"), "b") == 1
    assert (warehouse.clusters(), warehouse.partitions("d")) == (["c", "d"], [3])


def test_a_record_that_lost_its_producer_is_the_same_record(warehouse: Warehouse) -> None:
    settled = raw(4)
    transactional = settled.set_column(5, RAW.field("producer_id"), pa.array([77], pa.int64()))
    warehouse.add_records("c", 3, transactional, "a")
    assert warehouse.add_records("c", 3, settled, "a") == 0


def test_where_a_live_collection_goes_on(warehouse: Warehouse) -> None:
    warehouse.add_records("c", 3, raw(1), "a", next_offset=2, log_id="id")
    warehouse.add_records("c", 3, raw(), "a", next_offset=7)
    warehouse.add_records("c", 3, raw(8), "segments")
    found = warehouse.collected("c", 3)
    assert (found.next_offset, found.log_id, [file.source for file in found.files]) == (7, "id", ["a", "segments"])
    assert warehouse.collected("c", 4).next_offset is None


def test_any_name_is_a_cluster(warehouse: Warehouse) -> None:
    for name in ("a/b", "..", "ä =%", "x" * 60):
        warehouse.add_records(name, 0, raw(1, partition=0), "s")
        assert warehouse.partitions(name) == [0]
    assert set(warehouse.clusters()) == {"a/b", "..", "ä =%", "x" * 60}
    assert all(path.is_relative_to(warehouse.path) for path in warehouse.path.rglob("*"))


def test_samples_and_damage(warehouse: Warehouse) -> None:
    sample = rows_of({"topic": ["t"], "partition": [0], "timestamp_ms": [5], "log_end_offset": [9]}, LOG_OFFSETS)
    damage = rows_of({"source": ["f"], "partition": [1], "position": [0], "size": [3], "reason": ["r"]}, DAMAGED)
    for _ in range(2):
        warehouse.add_log_offsets("c", sample)
        warehouse.add_damaged("c", damage)
    ((samples,), (damaged,)) = warehouse.log_offset_files("c"), warehouse.damaged_files("c")
    assert pq.read_table(warehouse.path / samples).equals(sample)
    assert pq.read_table(warehouse.path / damaged).equals(damage)


def test_many_small_files_become_one(warehouse: Warehouse) -> None:
    for offset in range(100):
        warehouse.add_records("c", 3, raw(offset), f"run {offset // 60}")
        sample = rows_of({"topic": ["t"], "partition": [0], "timestamp_ms": [offset], "log_end_offset": [offset]}, LOG_OFFSETS)
        warehouse.add_log_offsets("c", sample)
    assert len(warehouse.bronze_files("c", 3)) < 48
    assert offsets_in(warehouse) == list(range(100))
    times = [row for file in warehouse.log_offset_files("c") for row in pq.read_table(warehouse.path / file)["timestamp_ms"]]
    assert (len(warehouse.log_offset_files("c")) < 48, [time.as_py() for time in times]) == (True, list(range(100)))
    assert warehouse.remove_left_overs("collected", before_ms=0) == 0
    assert warehouse.remove_left_overs("collected") > 100
    assert offsets_in(warehouse) == list(range(100))


def test_staged_files_that_have_offsets_in_common(warehouse: Warehouse) -> None:
    staged = [records.stage_records(warehouse, "c", 3, raw(*found), "s") for found in ((1, 2, 3), (2, 3), (3, 4), (9,))]
    assert offsets_in(warehouse) == []
    assert records.commit_records(warehouse, "c", 3, [file for file in staged if file]) == 5
    assert sorted(offsets_in(warehouse)) == [1, 2, 3, 4, 9]


def test_publishing_replaces_in_one_step(warehouse: Warehouse) -> None:
    file = warehouse.table_file("gold", "lag", "c", 3, "one")
    write_table(file, raw(1))
    built = warehouse.publish("c", 3, {"gold/lag": [file]}, ["in"], {"rows": 1})
    assert warehouse.built("c", 3) == built
    assert (warehouse.gold("lag", "c"), warehouse.built_partitions("c")) == ([file], [3])
    other = warehouse.table_file("gold", "lag", "c", None, "two")
    write_table(other, raw(2))
    warehouse.publish("c", None, {"gold/lag": [other]}, [])
    assert warehouse.gold("lag", "c") == [file, other]
    warehouse.publish("c", 3, {}, [])
    assert warehouse.gold("lag", "c") == [other]
    assert warehouse.remove_left_overs("built") == 1
    assert (file.exists(), other.exists()) == (False, True)


def test_a_crash_before_the_manifest_leaves_what_was(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.add_records("c", 3, raw(1), "a")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "write_json", crash)
    with pytest.raises(KeyboardInterrupt):
        warehouse.add_records("c", 3, raw(2), "a")
    monkeypatch.undo()
    assert offsets_in(warehouse) == [1]
    assert warehouse.remove_left_overs("collected") == 1
    assert warehouse.add_records("c", 3, raw(2), "a") == 1


@pytest.mark.parametrize("text", ["{", "[1]", '{"files": 3}', '{"files": [{"path": "x"}]}', '{"files": ["x"]}'])
def test_a_damaged_manifest_is_named(warehouse: Warehouse, text: str) -> None:
    warehouse.add_records("c", 3, raw(1), "a")
    manifest = warehouse.path / "state/collected/cluster=c/partition=3.json"
    manifest.write_text(text)
    with pytest.raises(StorageError, match=r"partition=3\.json: damaged"):
        warehouse.bronze_files("c", 3)


def test_a_disk_that_is_full_is_named(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        warehouse.add_records("c", 3, raw(1), "a")
    assert warehouse.bronze_files("c", 3) == ()


def test_one_at_a_time(warehouse: Warehouse) -> None:
    with warehouse.locked("collected"):
        with pytest.raises(RefusedError, match="in use by process"), warehouse.locked("collected"):
            pass
        with warehouse.locked("built"):
            pass
    assert pickle.loads(pickle.dumps(warehouse)).path == warehouse.path


def _file(path: Path) -> None:
    path.write_text("x")


def _full_folder(path: Path) -> None:
    path.mkdir()
    (path / "x").write_text("x")


def _marker(text: str) -> Any:
    def make(path: Path) -> None:
        path.mkdir()
        (path / MARKER).write_text(text)

    return make


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (_file, UsageError, "is not a warehouse"),
        (_full_folder, UsageError, "is not a warehouse"),
        (_marker('{"kgctl_warehouse_version": 2}'), UsageError, "made by a newer kgctl (format 2, this kgctl reads up to 1)"),
        (_marker("{}"), UsageError, "no kgctl_warehouse_version"),
        (_marker("{"), StorageError, "damaged, not JSON"),
        (_marker("[]"), StorageError, "damaged, no JSON object"),
    ],
)
def test_folders_that_are_no_warehouse(tmp_path: Path, make: Any, error: type[KgctlError], words: str) -> None:
    make(tmp_path / "w")
    for way in (Warehouse.open, Warehouse.create):
        with pytest.raises(error) as raised:
            way(tmp_path / "w")
        assert words in raised.value.message


def test_a_warehouse_is_made_where_nothing_is(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no warehouse at"):
        Warehouse.open(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty"):
        made = Warehouse.create(tmp_path / name)
        assert json.loads((made.path / MARKER).read_text()) == {"kgctl_warehouse_version": 1}
        assert Warehouse.open(tmp_path / name).clusters() == []


def test_which_cluster_is_meant(warehouse: Warehouse) -> None:
    with pytest.raises(NotFoundError, match="nothing was collected yet"):
        warehouse.require_cluster(None)
    warehouse.add_records("c", 0, raw(1, partition=0), "a")
    assert (warehouse.require_cluster(None), warehouse.require_cluster("c")) == ("c", "c")
    warehouse.add_records("d", 0, raw(1, partition=0), "a")
    with pytest.raises(UsageError, match=r"several clusters: choose one with --cluster \(c, d\)"):
        warehouse.require_cluster(None)
    with pytest.raises(NotFoundError, match=r"no cluster 'e' \(there: c, d\)"):
        warehouse.require_cluster("e")


def test_conforming() -> None:
    narrow = pa.table({"offset": pa.array([1], pa.int32()), "timestamp_ms": [2], "partition": [0]})
    assert conform(narrow, RAW).schema == RAW
    with pytest.raises(KeyError, match="timestamp_ms"):
        conform(narrow.drop_columns(["timestamp_ms"]), RAW)
