"""Adding records: each offset once, and never beside another cluster's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.errors import RefusedError
from kgctl.pipeline.decode.columns import each_once
from kgctl.pipeline.store.files import DataFile, opened, read_file, write_files
from kgctl.pipeline.store.location import Location
from kgctl.pipeline.store.raw import RAW, conform
from kgctl.pipeline.store.tables import TABLES, to_stored
from kgctl.pipeline.store.warehouse import Warehouse

_IDENTITY = ("time", "key", "value")
"""What a record never loses; who produced it goes when kgctl's own log is compacted."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Records of one partition that are written and that no commit has named. Times are in milliseconds."""

    partition: int
    rows: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    files: Sequence[DataFile] = field(default_factory=tuple)


@dataclass(frozen=True)
class Known:
    """The records of a cluster that there are already: which files, and the offset behind the last one of each partition.

    Picklable: whoever stages looks into these files and needs no deltalake, which does not outlive a fork.
    """

    location: Location
    cluster: str
    files: Sequence[DataFile]
    highs: Mapping[int, int]

    @classmethod
    def of(cls, warehouse: Warehouse, cluster: str) -> Known:
        """As of now."""
        table = warehouse.table("records")
        files = [file for file in table.files() if file.may_hold("cluster", cluster, cluster)]
        bounds = [(file.low["log_partition"], file.high["log_partition"]) for file in files]
        partitions = {number for low, high in bounds for number in range(low, high + 1)}
        highs = {number: table.number(high_number(cluster, number)) for number in partitions}
        return cls(warehouse.location, cluster, files, {number: high for number, high in highs.items() if high is not None})


def high_number(cluster: str, partition: int) -> str:
    """Under which name the offset behind the last known record of a partition is kept."""
    return f"high/{cluster}/{partition}"


def next_number(cluster: str, partition: int) -> str:
    """Under which name the offset is kept from which the next live collection goes on."""
    return f"next/{cluster}/{partition}"


def next_offset(warehouse: Warehouse, cluster: str, partition: int) -> int | None:
    """Where the next live collection goes on; None before the first."""
    return warehouse.table("records").number(next_number(cluster, partition))


def stage(known: Known, table: pa.Table, source: str) -> Staged | None:
    """Write what is new among records of one partition (`RAW`); None where nothing is.

    Any number of processes may stage at a time; `commit` makes the files count. Raises `RefusedError` where an offset is there
    with another record: then this is another cluster, or the topic was made anew.
    """
    fresh = fresh_records(known, table, source)
    return write(known.location, fresh) if fresh.num_rows else None


def stage_together(known: Known, tables: Sequence[pa.Table], source: str) -> list[Staged]:
    """As `stage`, for tables of a partition each: their rows go into the same files, and each `Staged` but one has none."""
    fresh = [rows for table in tables if (rows := fresh_records(known, table, source)).num_rows]
    if not fresh:
        return []
    files = write_files(known.location, "records", pa.concat_tables(fresh), "")
    return [_staged(rows, files if number == 0 else []) for number, rows in enumerate(fresh)]


def fresh_records(known: Known, table: pa.Table, source: str) -> pa.Table:
    """The rows of table ``records`` that these records of one partition are, without those that it has. Raises as `stage`."""
    once = each_once(conform(table, RAW), "offset")
    rows = to_stored("records", once.append_column("source", pa.repeat(pa.scalar(source), once.num_rows)), known.cluster)
    if not rows.num_rows:
        return rows
    partition, first = rows.column("log_partition")[0].as_py(), rows.column("log_offset")[0].as_py()
    if first >= known.highs.get(partition, 0):
        return rows
    return _without_known(known, partition, known.files, rows)


def write(location: Location, rows: pa.Table) -> Staged:
    """Stage rows of table ``records`` that are new, all of one partition."""
    return _staged(rows, write_files(location, "records", rows, ""))


def _staged(rows: pa.Table, files: Sequence[DataFile]) -> Staged:
    offsets = rows.column("log_offset")
    times = pc.min_max(rows.column("time").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())).as_py()
    partition = rows.column("log_partition")[0].as_py()
    return Staged(partition, rows.num_rows, offsets[0].as_py(), offsets[-1].as_py(), times["min"], times["max"], tuple(files))


class OvertakenError(RefusedError):
    """Another collection has added records of the same partitions since these were staged: stage them again."""


def commit(
    warehouse: Warehouse, before: Known, staged: Sequence[Staged], *, positions: Mapping[int, int] | None = None
) -> dict[int, list[Staged]]:
    """From now on the staged records count, in one step; what two have in common is kept once. By partition, what came.

    ``before``: what the records were staged against. ``positions`` are kept in the same step: where the next live collection
    goes on. Raises `RefusedError` where two hold different records of one offset, and `OvertakenError`.
    """
    cluster = before.cluster
    fresh: dict[int, list[Staged]] = {}
    known = Known(warehouse.location, cluster, (), {})
    for each in sorted(staged, key=lambda each: (each.partition, each.first_offset, each.last_offset)):
        here = fresh.setdefault(each.partition, [])
        whole = _unlike(known, here, each)
        if whole is not None:
            here.append(whole)
    records = warehouse.table("records")
    numbers = {}
    for partition, found in fresh.items():
        name = high_number(cluster, partition)
        numbers[name] = max(each.last_offset + 1 for each in found)
        numbers[name] = max(numbers[name], records.number(name) or 0)
    for partition, position in (positions or {}).items():
        numbers[next_number(cluster, partition)] = position
    files = [file for found in fresh.values() for each in found for file in each.files]
    if files or numbers:
        records.commit(files, numbers=numbers, check=partial(_require_not_overtaken, warehouse, before, fresh))
    return fresh


def _require_not_overtaken(warehouse: Warehouse, before: Known, partitions: Iterable[int]) -> None:
    now = Known.of(warehouse, before.cluster).highs
    moved = [partition for partition in partitions if now.get(partition) != before.highs.get(partition)]
    if moved:
        raise OvertakenError(
            f"cluster '{before.cluster}': another collection has added records of {len(moved)} partition(s) meanwhile "
            f"(__consumer_offsets-{moved[0]} is one); nothing of this one was added: run it again"
        )


def _unlike(known: Known, fresh: Sequence[Staged], each: Staged) -> Staged | None:
    """``each``, or one with what of it is in none of the others, or None."""
    overlapping = [other for other in fresh if each.first_offset <= other.last_offset and other.first_offset <= each.last_offset]
    if not overlapping:
        return each
    schema = TABLES["records"].schema
    rows = pa.concat_tables([read_file(known.location, "records", file.path).cast(schema) for file in each.files])
    others = [file for other in overlapping for file in other.files]
    rows = _without_known(known, each.partition, others, rows.sort_by("log_offset"))
    if rows.num_rows == each.rows:
        return each
    return write(known.location, rows) if rows.num_rows else None


def _without_known(known: Known, partition: int, files: Sequence[DataFile], rows: pa.Table) -> pa.Table:
    """The rows whose offset is in none of these files. Raises `RefusedError` where one is there with another record."""
    for file in files:
        if not rows.num_rows:
            break
        offsets = rows.column("log_offset").to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        if not (
            file.may_hold("cluster", known.cluster, known.cluster)
            and file.may_hold("log_partition", partition, partition)
            and file.may_hold("log_offset", first, last)
        ):
            continue
        there = _read(known, file, partition)
        is_known = np.isin(offsets, there.column("log_offset").to_numpy(), assume_unique=True)
        if is_known.any():
            mine = rows.filter(pa.array(is_known))
            theirs = there.filter(pc.is_in(there.column("log_offset"), mine.column("log_offset").combine_chunks()))
            _require_same(known.cluster, partition, mine, theirs.sort_by("log_offset"))
            rows = rows.filter(pa.array(~is_known))
    return rows


def _read(known: Known, file: DataFile, partition: int) -> pa.Table:
    columns = ["cluster", "log_partition", "log_offset", *_IDENTITY]
    schema = pa.schema([TABLES["records"].schema.field(name) for name in columns])
    with opened(known.location, "records", file.path) as source:
        found = source.read(columns).cast(schema)
    is_here = pc.and_(pc.equal(found.column("cluster"), known.cluster), pc.equal(found.column("log_partition"), partition))
    return found.filter(is_here)


def _require_same(cluster: str, partition: int, mine: pa.Table, known: pa.Table) -> None:
    for column in _IDENTITY:
        left, right = mine.column(column).combine_chunks(), known.column(column).combine_chunks()
        if left.equals(right):
            continue
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        is_same = pc.fill_null(pc.or_(both_null, pc.equal(left, right)), fill_value=False)
        offset = mine.column("log_offset")[pc.index(is_same, value=False).as_py()].as_py()
        raise RefusedError(
            f"partition {partition} of cluster '{cluster}': offset {offset} is in the warehouse with another record. "
            "Another cluster has this name here (--cluster NAME tells them apart), or __consumer_offsets was made anew"
        )
