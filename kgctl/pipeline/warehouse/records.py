"""Adding to the bronze tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import RefusedError
from kgctl.pipeline.decode.columns import each_once
from kgctl.pipeline.warehouse import layout
from kgctl.pipeline.warehouse.files import read_table, write_json, write_table
from kgctl.pipeline.warehouse.manifests import BronzeFile, ClusterFiles, Collected, read_manifest
from kgctl.pipeline.warehouse.schemas import DAMAGED, LOG_OFFSETS, RAW, conform

if TYPE_CHECKING:
    from kgctl.pipeline.warehouse.warehouse import Warehouse

_SMALL_ROWS = 50_000
_SMALL_BYTES = 1 << 20
_MANY_SMALL = 48

_IDENTITY = ("timestamp_ms", "key", "value")
"""What a record never loses; who produced it goes when kgctl's own log is compacted."""


def add_records(
    warehouse: Warehouse,
    cluster: str,
    partition: int,
    table: Any,
    source: str,
    *,
    next_offset: int | None,
    log_id: str | None,
) -> int:
    """See `Warehouse.add_records`."""
    staged = stage_records(warehouse, cluster, partition, table, source)
    files = [] if staged is None else [staged]
    return commit_records(warehouse, cluster, partition, files, next_offset=next_offset, log_id=log_id)


def stage_records(warehouse: Warehouse, cluster: str, partition: int, table: Any, source: str) -> BronzeFile | None:
    """Write what is new in ``table`` to a file that no manifest names yet; None where nothing is. Raises as `add_records`.

    Any number of processes may stage at a time; `commit_records` makes the files count.
    """
    known = warehouse.collected(cluster, partition)
    table = _without_known(warehouse, cluster, known.files, each_once(conform(table, RAW), "offset"))
    return _write(warehouse, cluster, partition, table, source) if table.num_rows else None


def commit_records(
    warehouse: Warehouse,
    cluster: str,
    partition: int,
    staged: Sequence[BronzeFile],
    *,
    next_offset: int | None = None,
    log_id: str | None = None,
) -> int:
    """From now on these files count; how many new records they hold. What two of them have in common is kept once."""
    before = warehouse.collected(cluster, partition)
    fresh: list[BronzeFile] = []
    for file in sorted(staged, key=lambda each: (each.first_offset, each.last_offset)):
        whole = _unlike(warehouse, cluster, partition, fresh, file)
        if whole is not None:
            fresh.append(whole)
    files = merged(warehouse, cluster, partition, (*before.files, *fresh))
    now = Collected(
        files,
        before.next_offset if next_offset is None else next_offset,
        before.log_id if log_id is None else log_id,
    )
    path = warehouse.path / layout.manifest_file("collected", cluster, partition)
    if now != before or not path.exists():
        write_json(path, now.to_json())
    return sum(file.rows for file in fresh)


def _unlike(
    warehouse: Warehouse, cluster: str, partition: int, fresh: Sequence[BronzeFile], file: BronzeFile
) -> BronzeFile | None:
    """``file``, or one with what of it is in none of the others, or None."""
    if not any(file.first_offset <= other.last_offset and other.first_offset <= file.last_offset for other in fresh):
        return file
    table = _without_known(warehouse, cluster, fresh, read_table(warehouse.path / file.path))
    if table.num_rows == file.rows:
        return file
    return _write(warehouse, cluster, partition, table, file.source) if table.num_rows else None


def merged(warehouse: Warehouse, cluster: str, partition: int, files: Sequence[BronzeFile]) -> tuple[BronzeFile, ...]:
    """``files``, where there are many small ones at the end these as one; a live collection adds a small one every so often."""
    small = list(takewhile(lambda file: file.rows < _SMALL_ROWS, reversed(files)))[::-1]
    if len(small) < _MANY_SMALL:
        return tuple(files)
    table = each_once(pa.concat_tables([read_table(warehouse.path / file.path) for file in small]), "offset")
    sources = ", ".join(dict.fromkeys(file.source for file in small))
    return (*files[: len(files) - len(small)], _write(warehouse, cluster, partition, table, sources))


def add_log_offsets(warehouse: Warehouse, cluster: str, table: Any) -> None:
    """See `Warehouse.add_log_offsets`."""
    _add_cluster_file(warehouse, cluster, layout.LOG_OFFSETS, conform(table, LOG_OFFSETS))


def add_damaged(warehouse: Warehouse, cluster: str, table: Any) -> None:
    """See `Warehouse.add_damaged`."""
    _add_cluster_file(warehouse, cluster, layout.DAMAGED, conform(table, DAMAGED))


def require_cluster_id(warehouse: Warehouse, cluster: str, cluster_id: str | None) -> None:
    """See `Warehouse.require_cluster_id`."""
    manifest = warehouse.path / layout.manifest_file("collected", cluster, None)
    before = read_manifest(manifest, ClusterFiles)
    if cluster_id is None or cluster_id == before.cluster_id:
        return
    if before.cluster_id is not None:
        raise RefusedError(
            f"the cluster's id is {cluster_id}, but what was collected as '{cluster}' is of the one with the id "
            f"{before.cluster_id}: --cluster NAME keeps them apart"
        )
    write_json(manifest, replace(before, cluster_id=cluster_id).to_json())


def _add_cluster_file(warehouse: Warehouse, cluster: str, kind: str, table: Any) -> None:
    if not table.num_rows:
        return
    manifest = warehouse.path / layout.manifest_file("collected", cluster, None)
    before = read_manifest(manifest, ClusterFiles).to_json()
    name = _cluster_file(cluster, kind, table)
    if name in before[kind]:
        return
    write_table(warehouse.path / name, table)
    files = _merged_cluster_files(warehouse, cluster, kind, [*before[kind], name])
    write_json(manifest, {**before, kind: files})


def _merged_cluster_files(warehouse: Warehouse, cluster: str, kind: str, files: list[str]) -> list[str]:
    """As `merged`, for samples: there is one every half minute."""
    small = list(takewhile(lambda file: (warehouse.path / file).stat().st_size < _SMALL_BYTES, reversed(files)))[::-1]
    if len(small) < _MANY_SMALL:
        return files
    table = pa.concat_tables([read_table(warehouse.path / file) for file in small])
    name = _cluster_file(cluster, kind, table)
    write_table(warehouse.path / name, table)
    return [*files[: len(files) - len(small)], name]


def _cluster_file(cluster: str, kind: str, table: Any) -> str:
    return (layout.table_folder("bronze", kind, cluster) / f"{_digest(table)}.parquet").as_posix()


def _without_known(warehouse: Warehouse, cluster: str, files: Sequence[BronzeFile], table: Any) -> Any:
    """The rows whose offset is in none of these files. Raises `RefusedError` where one is there with another record."""
    for file in files:
        if not table.num_rows:
            break
        offsets = table.column("offset").to_numpy()
        first, last = np.searchsorted(offsets, [file.first_offset, file.last_offset + 1])
        if first == last:
            continue
        known = read_table(warehouse.path / file.path)
        is_known = np.isin(offsets, known.column("offset").to_numpy(), assume_unique=True)
        if is_known.any():
            mine = table.filter(pa.array(is_known))
            _require_same(cluster, mine, known.filter(pc.is_in(known.column("offset"), mine.column("offset"))))
            table = table.filter(pa.array(~is_known))
    return table


def _require_same(cluster: str, mine: Any, known: Any) -> None:
    for column in _IDENTITY:
        left, right = mine.column(column).combine_chunks(), known.column(column).combine_chunks()
        if left.equals(right):
            continue
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        is_same = pc.fill_null(pc.or_(both_null, pc.equal(left, right)), fill_value=False)
        place = pc.index(is_same, value=False).as_py()
        partition, offset = mine.column("partition")[0].as_py(), mine.column("offset")[place].as_py()
        raise RefusedError(
            f"partition {partition} of cluster '{cluster}': offset {offset} is in the warehouse with another record. "
            "Another cluster has this name here (--cluster NAME tells them apart), or __consumer_offsets was made anew"
        )


def _write(warehouse: Warehouse, cluster: str, partition: int, table: Any, source: str) -> BronzeFile:
    offsets, times = table.column("offset"), pc.min_max(table.column("timestamp_ms")).as_py()
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    digest = hashlib.sha256(offsets.to_numpy().tobytes()).hexdigest()[:8]
    folder = layout.table_folder("bronze", layout.RECORDS, cluster, partition)
    path = folder / f"{first:020d}-{last:020d}-{table.num_rows}-{digest}.parquet"
    write_table(warehouse.path / path, table)
    return BronzeFile(path.as_posix(), table.num_rows, first, last, times["min"], times["max"], source)


def _digest(table: Any) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()[:24]
