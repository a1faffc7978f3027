"""How a build is cut: files of records by partitions of the log, partitions into slices, slices into portions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.builds.carry import Slice
from kgctl.pipeline.decode.arrow import Int64s, nulls
from kgctl.pipeline.decode.decode import READ_DICTIONARY
from kgctl.pipeline.store.files import DataFile, StoreLocation, instant_ms, opened
from kgctl.pipeline.store.tables import RAW, from_stored, stored_columns
from kgctl.pipeline.tables.registry import BEGIN_MS, EVER_MS

PORTION_ROWS = 150_000
"""So many records are worked on at a time."""
STATE_BYTES = 4_000_000
"""So large a state is worth a slice of its own."""


@frozen_in_order
class Extent:
    """Records of one partition of the log in a file: those with offsets from ``low`` to ``high``, ends included."""

    path: str
    partition: int
    low: int
    high: int
    rows: int


def extents_of(location: StoreLocation, files: Sequence[DataFile]) -> Iterator[Extent]:
    """What these files have; of files with records of several partitions the offsets are read."""
    for file in files:
        first, last = (bounds["log_partition"] for bounds in (file.low, file.high))
        if first == last:
            yield Extent(file.path, first, file.low["log_offset"], file.high["log_offset"], file.rows)
            continue
        with opened(location, "records", file.path) as source:
            found = source.read(["log_partition", "log_offset"])
        offsets = found.group_by("log_partition").aggregate([("log_offset", each) for each in ("min", "max", "count")])
        for row in offsets.to_pylist():
            yield Extent(file.path, row["log_partition"], *(row[f"log_offset_{each}"] for each in ("min", "max", "count")))


def slices_of(extents: Sequence[Extent], partitions: int, state_bytes: int) -> list[Slice]:
    """The slices of all partitions of the log: of so many records together as one portion has, and of states that are not larger
    than they should be; a partition with more is one by itself."""
    rows = Counter[int]()
    for each in extents:
        rows[each.partition] += each.rows
    share = state_bytes / STATE_BYTES / max(partitions, 1)
    edges, weight = [0], 0.0
    for partition in range(partitions):
        own = rows[partition] / PORTION_ROWS + share
        if weight and weight + own > 1:
            edges.append(partition)
            weight = 0.0
        weight += own
    return [Slice(first, end) for first, end in pairwise([*edges, partitions])]


def portions_of(extents: Sequence[Extent], chosen: Slice) -> list[list[Extent]]:
    """The records of a slice in the order of the log, as many at a time as one portion has; no portion is of some records of a
    partition, and another one of those before them."""
    mine = sorted((each for each in extents if chosen.first <= each.partition < chosen.end), key=lambda each: each.low)
    if sum(each.rows for each in mine) <= PORTION_ROWS or chosen.end - chosen.first > 1:
        return [mine] if mine else []
    edges = _edges(mine)
    found = []
    for low, end in pairwise(edges):
        found.append([_between(each, low, end) for each in mine if each.low < end and each.high >= low])
    return found


def _between(extent: Extent, low: int, end: int) -> Extent:
    """The part of it with offsets from ``low`` on and before ``end``: as many rows as if they lay evenly."""
    low, end = max(extent.low, low), min(extent.high + 1, end)
    before, up_to = (extent.rows * (bound - extent.low) // (extent.high + 1 - extent.low) for bound in (low, end))
    return replace(extent, low=low, high=end - 1, rows=up_to - before)


def _edges(extents: Sequence[Extent]) -> list[int]:
    """Offsets that cut records of a partition into portions, as far as the files tell how many are where."""
    bounds = np.unique([bound for each in extents for bound in (each.low, each.high + 1)])
    rows = np.zeros(len(bounds) - 1)
    for each in extents:
        low, end = np.searchsorted(bounds, [each.low, each.high + 1])
        rows[low:end] += each.rows * np.diff(bounds[low : end + 1]) / (each.high + 1 - each.low)
    total = np.append(0.0, np.cumsum(rows))
    wanted = np.linspace(0, total[-1], int(-(-total[-1] // PORTION_ROWS)) + 1)
    return np.unique(np.interp(wanted, total, bounds).astype(np.int64)).tolist()  # type: ignore[no-any-return]


def read_records(location: StoreLocation, extents: Sequence[Extent]) -> pa.Table:
    """The records (`RAW`, keys as dictionaries), file by file."""
    columns = stored_columns("records", RAW.names)
    found = []
    for path, wanted in _by_path(extents).items():
        with opened(location, "records", path, READ_DICTIONARY) as source:
            rows = from_stored("records", source.read_row_groups(_row_groups(source.metadata, wanted), columns))
        found.append(rows.select(RAW.names).filter(_is_wanted(rows, wanted)))
    return pa.concat_tables(found).unify_dictionaries().combine_chunks() if found else RAW.empty_table()


def later_times(location: StoreLocation, portions: Sequence[Sequence[Extent]]) -> list[int]:
    """Of each of a slice's portions the time before which no record of those that follow is, as far as files tell."""
    firsts = [min((_first_ms(location, *each) for each in _by_path(portion).items()), default=EVER_MS) for portion in portions]
    return [*np.minimum.accumulate(firsts[:0:-1])[::-1].tolist(), EVER_MS]


def _first_ms(location: StoreLocation, path: str, wanted: Sequence[Extent]) -> int:
    with opened(location, "records", path) as source:
        found = [_bounds(source.metadata, number, "time") for number in _row_groups(source.metadata, wanted)]
    return min((BEGIN_MS if each is None else instant_ms(each[0]) for each in found), default=EVER_MS)


def row_groups_between(metadata: pa.parquet.FileMetaData, from_ms: int, to_ms: int) -> list[int]:
    """The row groups of a file that may have rows from one time on and before another."""
    found = enumerate(_bounds(metadata, number, "time") for number in range(metadata.num_row_groups))
    return [at for at, each in found if each is None or (instant_ms(each[0]) < to_ms and instant_ms(each[1]) >= from_ms)]


def _by_path(extents: Sequence[Extent]) -> dict[str, list[Extent]]:
    found: dict[str, list[Extent]] = {}
    for each in extents:
        found.setdefault(each.path, []).append(each)
    return found


def _row_groups(metadata: pa.parquet.FileMetaData, wanted: Sequence[Extent]) -> list[int]:
    """The row groups of a file that may have some of these records."""
    return [number for number in range(metadata.num_row_groups) if _meets(metadata, number, wanted)]


def _meets(metadata: pa.parquet.FileMetaData, number: int, wanted: Sequence[Extent]) -> bool:
    partitions, offsets = (_bounds(metadata, number, name) for name in ("log_partition", "log_offset"))
    if partitions is None or offsets is None:
        return True
    (first, last), (low, high) = partitions, offsets
    return any(first <= each.partition <= last and low <= each.high and each.low <= high for each in wanted)


def _bounds(metadata: pa.parquet.FileMetaData, number: int, name: str) -> tuple[Any, Any] | None:
    """The smallest and the greatest value of a column in a row group, if it says so."""
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name)
    statistics = metadata.row_group(number).column(column).statistics
    return None if statistics is None or not statistics.has_min_max else (statistics.min, statistics.max)


def _is_wanted(rows: pa.Table, wanted: Sequence[Extent]) -> pa.Array:
    partition, offset = (rows.column(name).to_numpy() for name in ("partition", "offset"))
    found = np.zeros(rows.num_rows, np.bool_)
    for each in wanted:
        found |= (partition == each.partition) & (offset >= each.low) & (offset <= each.high)
    return pa.array(found)


PLACE_BITS = 47
_MASK = (1 << PLACE_BITS) - 1
_MOST_PARTITIONS = 1 << 16


def placed(raw: pa.Table) -> tuple[pa.Table, int]:
    """(records with places for offsets, how many are left out because no log is that long); sorted by place, each once."""
    partition, offset = raw.column("partition").to_numpy().astype(np.int64), raw.column("offset").to_numpy()
    fine = (offset >= 0) & (offset <= _MASK) & (partition >= 0) & (partition < _MOST_PARTITIONS)
    left_out = int((~fine).sum())
    if left_out:
        raw, partition, offset = raw.filter(pa.array(fine)), partition[fine], offset[fine]
    place = (partition << PLACE_BITS) | offset
    producer = raw.column("producer_id")
    missing = nulls(producer)
    producers = (partition << PLACE_BITS) | (producer.fill_null(0).to_numpy() & _MASK)
    columns = {name: raw.column(name) for name in RAW.names}
    columns["offset"] = pa.chunked_array([pa.array(place)])
    columns["producer_id"] = pa.chunked_array([pa.array(producers, mask=missing if missing.any() else None)])
    table = pa.table(columns)
    if (np.diff(place) <= 0).any():
        table = table.take(pa.array(np.unique(place, return_index=True)[1]))
    return table, left_out


def by_partition(place: Int64s) -> Iterator[tuple[int, int, int]]:
    """(partition, first row, row behind the last) of places that ascend."""
    partition = place >> PLACE_BITS
    edges = [0, *(np.flatnonzero(np.diff(partition)) + 1).tolist(), len(place)]
    return ((int(partition[low]), low, high) for low, high in pairwise(edges) if low < high)


def placed_runs(coverage: pa.Table) -> pa.Table:
    """Return the runs of offsets that were read, with their places."""
    shift = pa.array(coverage.column("log_partition").to_numpy().astype(np.int64) << PLACE_BITS)
    found = coverage
    for name in ("first_offset", "last_offset"):
        found = found.set_column(found.schema.get_field_index(name), found.schema.field(name), pc.add(found.column(name), shift))
    return found


def unplaced(table: pa.Table) -> pa.Table:
    """The rows with ``log_partition`` and ``log_offset`` as they are, instead of places."""
    if "log_offset" not in table.column_names:
        return table
    place = table.column("log_offset").to_numpy()
    columns = {name: table.column(name) for name in table.column_names}
    columns["log_partition"] = pa.array((place >> PLACE_BITS).astype(np.int32))
    columns["log_offset"] = pa.array(place & _MASK)
    if "effect_offset" in columns:
        columns["effect_offset"] = pa.array(table.column("effect_offset").to_numpy() & _MASK)
    return pa.table(columns)
