"""Collecting from files: everything good of them, once, and everything else named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgctl.errors import KgctlError, NotFoundError, RefusedError, StorageError, UsageError
from kgctl.pipeline.collect.at_rest import collect_at_rest
from kgctl.pipeline.collect.collection import Collection
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.sources.at_rest import RestSource, parquet, record_log, record_log_samples, segments
from kgctl.pipeline.store.tables import RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.serde.record_batch import Record, build_batch
from kgctl.storage.folder import open_folder
from tests.support.pipeline.segments import commit_like, segment
from tests.support.pipeline.warehouses import rows_of
from tests.support.storage import commit, marker


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(tmp_path / "warehouse")


def write(folder: Path, partition: int, *parts: bytes, first: Sequence[int] = ()) -> Path:
    """Segment files of a partition; their names are their first offsets."""
    path = folder / f"__consumer_offsets-{partition}"
    path.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(parts):
        (path / f"{first[number] if first else number:020d}.log").write_bytes(data)
    return path


def collect(warehouse: Warehouse, *sources: RestSource, jobs: int = 1) -> Collection:
    return collect_at_rest(warehouse, "c", sources, LocalEngine(jobs), str)


def collected(warehouse: Warehouse, partition: int) -> list[Any]:
    found = [row for row in rows_of(warehouse, "records", "c") if row["partition"] == partition]
    return sorted(tuple(row[name] for name in ("offset", "timestamp_ms", "key", "value")) for row in found)


def partitions(warehouse: Warehouse) -> set[int]:
    return {row["partition"] for row in rows_of(warehouse, "records", "c")}


def test_a_log_directory(tmp_path: Path, warehouse: Warehouse) -> None:
    logs = tmp_path / "kafka-logs"
    write(logs, 0, segment([3, 4]), segment([5], first_offset=7), first=(0, 7))
    write(logs, 12, segment([2]))
    write(logs, 13, b"")
    (logs / "orders-0").mkdir()
    (logs / "orders-0" / "00000000000000000000.log").write_bytes(segment([9]))
    (logs / "__consumer_offsets-0" / "00000000000000000000.index").write_bytes(b"\0" * 10)
    (logs / "__consumer_offsets-0" / "00000000000000000000.log.deleted").write_bytes(b"\0" * 10)
    found = collect(warehouse, segments(logs), jobs=2)
    assert collected(warehouse, 0) == [tuple(commit_like(offset))[:4] for offset in range(12)]
    assert collected(warehouse, 12) == [tuple(commit_like(offset))[:4] for offset in range(2)]
    assert (found.added, found.errors, found.notices, partitions(warehouse)) == (14, [], [], {0, 12})
    again = collect(warehouse, segments(logs))
    assert (again.added, again.records_read, again.errors) == (0, 14, [])


def test_one_file_and_one_partition(tmp_path: Path, warehouse: Warehouse) -> None:
    folder = write(tmp_path, 5, segment([2]), segment([1], first_offset=2))
    (first, second) = segments(folder).pieces
    assert [(piece.partition, piece.is_last) for piece in (first, second)] == [(5, False), (5, True)]  # type: ignore[attr-defined]
    collect(warehouse, segments(folder / f"{1:020d}.log"))
    assert [offset for offset, *_ in collected(warehouse, 5)] == [2]


def test_a_later_copy_of_a_segment_that_grew(tmp_path: Path, warehouse: Warehouse) -> None:
    whole = segment([4, 4])
    folder = write(tmp_path, 5, whole[:-10])
    found = collect(warehouse, segments(folder))
    assert (found.added, found.errors) == (4, [])
    torn = len(whole) // 2 - 10
    name = folder / f"{0:020d}.log"
    assert found.notices == [f"{name}: ends inside a batch; its {torn} bytes are left out until it is whole"]
    write(tmp_path, 5, whole)
    assert collect(warehouse, segments(folder)).added == 4


def test_damage_is_kept_aside_and_the_rest_is_collected(tmp_path: Path, warehouse: Warehouse) -> None:
    broken = bytearray(segment([4, 4, 4]))
    broken[len(broken) // 2] ^= 1
    folder = write(tmp_path, 5, bytes(broken), segment([2], first_offset=12)[:-3], segment([1], first_offset=14))
    found = collect(warehouse, segments(folder))
    assert [offset for offset, *_ in collected(warehouse, 5)] == [0, 1, 2, 3, 8, 9, 10, 11, 14]
    third = len(broken) // 3
    assert sorted(error.message for error in found.errors) == [
        f"{folder}/{0:020d}.log at byte {third}: wrong checksum ({third} bytes, 4 records from offset 4)",
        f"{folder}/{1:020d}.log: holds no record batch of Kafka's: not a segment of its log",
    ]
    assert {error.code for error in found.errors} == {"DAMAGED", "USAGE"}
    kept = {row["source"]: row for row in rows_of(warehouse, "damaged", "c")}
    assert kept[f"{folder}/{0:020d}.log"]["data"] == bytes(broken[third : 2 * third])
    assert kept[f"{folder}/{1:020d}.log"]["reason"] == "a batch that is cut off, though other segments follow"
    assert found.partitions[5].damaged == 1


def test_much_damage_is_counted(tmp_path: Path, warehouse: Warehouse) -> None:
    batches = [bytearray(segment([1], first_offset=offset)) for offset in range(60)]
    for batch in batches[::2]:
        batch[-1] ^= 1
    found = collect(warehouse, segments(write(tmp_path, 5, b"".join(map(bytes, batches)))))
    assert (len(found.errors), found.partitions[5].damaged, found.added) == (21, 30, 30)
    assert "10 more damaged places" in found.errors[-1].message


def test_a_file_that_is_something_else(tmp_path: Path, warehouse: Warehouse) -> None:
    folder = write(tmp_path, 5, b"2026-03-02 08:00:00 INFO started\n" * 50, segment([1], first_offset=9))
    found = collect(warehouse, segments(folder))
    (error,) = found.errors
    assert (type(error), found.added) == (UsageError, 1)
    assert error.message == f"{folder}/{0:020d}.log: holds no record batch of Kafka's: not a segment of its log"


def test_a_file_that_goes_away_is_an_error_beside_the_others(tmp_path: Path, warehouse: Warehouse) -> None:
    folder = write(tmp_path, 5, segment([1]), segment([1], first_offset=1))
    source = segments(folder)
    (folder / f"{0:020d}.log").unlink()
    found = collect(warehouse, source)
    (error,) = found.errors
    assert (type(error), found.added) == (StorageError, 1)
    assert error.message == f"{folder}/{0:020d}.log: No such file or directory"


def test_segments_of_another_cluster_are_refused(tmp_path: Path, warehouse: Warehouse) -> None:
    collect(warehouse, segments(write(tmp_path / "a", 5, segment([4]))))
    found = collect(warehouse, segments(write(tmp_path / "d", 5, _foreign())))
    (error,) = found.errors
    assert (type(error), error.code) == (RefusedError, "REFUSED")
    assert len(collected(warehouse, 5)) == 4


def test_one_proof_of_another_cluster_refuses_everything(tmp_path: Path, warehouse: Warehouse) -> None:
    collect(warehouse, segments(write(tmp_path / "a", 5, segment([4]))))
    write(tmp_path / "d", 4, segment([9]))
    write(tmp_path / "d", 5, _foreign(), segment([3], first_offset=9))
    found = collect(warehouse, segments(tmp_path / "d"))
    assert ([type(error) for error in found.errors], found.added, found.records_read) == ([RefusedError], 0, 0)
    assert (partitions(warehouse), len(collected(warehouse, 5))) == ({5}, 4)
    assert found.notices == ["Nothing was collected: records were refused, and the others come from the same place."]


@pytest.mark.parametrize("key", [None, b"", b"order-17", b'{"id": 7}', b"\0\0\0\x07", b"\0" * 8])
def test_segments_of_a_normal_topic_are_refused(tmp_path: Path, warehouse: Warehouse, key: bytes | None) -> None:
    records = [Record(offset, 1_700_000_000_000, key, b"a value") for offset in range(5)]
    found = collect(warehouse, segments(write(tmp_path, 5, build_batch(records))))
    (error,) = found.errors
    assert (type(error), found.added, partitions(warehouse)) == (RefusedError, 0, set())
    assert error.message.endswith(
        "5 of 5 records have keys that no group coordinator writes: these are records of another topic than __consumer_offsets"
    )


def test_some_damaged_keys_and_newer_types_are_no_proof(tmp_path: Path, warehouse: Warehouse) -> None:
    records = [*(commit_like(offset) for offset in range(4)), Record(4, 1, b"\0\x63rest", b"v"), Record(5, 1, b"\0", b"v")]
    found = collect(warehouse, segments(write(tmp_path, 5, build_batch(records))))
    assert (found.errors, found.added) == ([], 6)


def _foreign() -> bytes:
    return build_batch([commit_like(0)._replace(value=b"another")])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("gone", NotFoundError, "no such file or folder"),
        ("empty", NotFoundError, "no folder of a partition (__consumer_offsets-0 and so on), and no segment"),
        ("__consumer_offsets-3", NotFoundError, "no segment (00000000000000000000.log and so on) in it"),
        ("server.txt", UsageError, "is not a segment"),
        ("00000000000000000000.log", UsageError, "its folder must be named after its partition"),
    ],
)
def test_paths_that_are_no_segments(tmp_path: Path, name: str, error: type[KgctlError], words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "__consumer_offsets-3").mkdir()
    (tmp_path / "server.txt").write_text("x")
    (tmp_path / "00000000000000000000.log").write_text("x")
    with pytest.raises(error) as raised:
        segments(tmp_path / name)
    assert words in raised.value.message


def test_a_record_log_with_a_transaction(tmp_path: Path, warehouse: Warehouse) -> None:
    with open_folder(tmp_path / "data", create=True, offsets_partitions=1) as folder:
        folder.record_log.append([commit("g", 0, 5)], 1_000)
        folder.record_log.append([commit("g", 0, 7, producer=9)], 1_500)
        folder.record_log.append([marker(9, committed=False)], 1_600)
        expected = [
            (r.offset, r.timestamp_ms, r.key, r.value, r.producer_id, None if r.producer_id is None else 0, r.commits)
            for r in folder.record_log.read(0)
        ]
        assert collect(warehouse, record_log(tmp_path / "data")).added == 3
    found = sorted(rows_of(warehouse, "records", "c"), key=lambda row: row["offset"])
    assert [tuple(row[name] for name in RAW.names[1:]) for row in found] == expected
    samples = record_log_samples(tmp_path / "data", every_ms=1_000, now_ms=9)
    assert samples.num_rows == 0


def test_parquet_and_other_warehouses(tmp_path: Path, warehouse: Warehouse) -> None:
    collect(warehouse, segments(write(tmp_path / "a", 5, segment([4]))))
    collect(warehouse, segments(write(tmp_path / "a", 6, segment([3]))))
    source = parquet(Path(warehouse.location.uri))
    copy = Warehouse.create(tmp_path / "copy")
    assert (source.cluster, collect(copy, source).added) == ("c", 7)
    assert [collected(copy, number) for number in (5, 6)] == [collected(warehouse, number) for number in (5, 6)]
    mixed = conform(from_stored("records", warehouse.table("records").rows()), RAW)
    pq.write_table(mixed.select(["offset", "key", "timestamp_ms", "value", "partition"]), tmp_path / "mixed.parquet")
    other = Warehouse.create(tmp_path / "other")
    assert collect(other, parquet(tmp_path / "mixed.parquet")).added == 7
    assert [collected(other, number) for number in (5, 6)] == [collected(warehouse, number) for number in (5, 6)]


def test_parquet_that_cannot_be_taken(tmp_path: Path, warehouse: Warehouse) -> None:
    with pytest.raises(NotFoundError, match="no such file or folder"):
        parquet(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no Parquet file in it"):
        parquet(tmp_path / "empty")
    pq.write_table(pa.table({"offset": [1]}), tmp_path / "columns.parquet")
    pq.write_table(pa.table({"partition": [0], "offset": ["x"], "timestamp_ms": [1]}), tmp_path / "types.parquet")
    (tmp_path / "text.parquet").write_text("x" * 100)
    found = collect(warehouse, *(parquet(tmp_path / f"{name}.parquet") for name in ("columns", "types", "text")))
    assert [type(error) for error in found.errors].count(UsageError) == 2
    assert sorted(error.message.partition("/test_")[2].partition("/")[2].split(" ")[0] for error in found.errors) == [
        "columns.parquet:",
        "text.parquet:",
        "types.parquet:",
    ]
    shutil.rmtree(tmp_path / "empty")


def test_what_may_not_be_looked_at_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, who may look at everything: the system's refusal is made up."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    for look in (segments, record_log, parquet, Warehouse.open, Warehouse.create):
        with pytest.raises(StorageError, match="Permission denied"):
            look(tmp_path / "closed")
