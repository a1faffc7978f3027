"""Cutting the work by groups: a bucket is ``crc32(group) % N``, a slice some buckets that follow each other.

All commits and records of a group are in one partition of ``__consumer_offsets``, and a busy partition has many groups: so one
busy partition is spread, and small ones share a slice. Rows of several partitions meet in a slice, so that an offset there is a
place: the partition in the high bits, the offset in the low ones. A place of one partition is behind those of all before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.cells import Int64s
from kgctl.pipeline.decode.columns import nulls
from kgctl.pipeline.store.raw import RAW

PLACE_BITS = 47
_MASK = (1 << PLACE_BITS) - 1
_MOST_PARTITIONS = 1 << 16
_GROUP_AT = 4
ROWS_IN_SLICE = 150_000


class Slice(NamedTuple):
    """The buckets from ``first`` on and before ``end``."""

    first: int
    end: int


def slices_of(rows: int, buckets: int) -> list[Slice]:
    """As many slices as so many rows are worth."""
    return slices_into(max(rows // ROWS_IN_SLICE, 1), buckets)


def slices_into(count: int, buckets: int) -> list[Slice]:
    """So many slices, or one for each bucket."""
    count = min(count, buckets)
    edges = [buckets * number // count for number in range(count + 1)]
    return [Slice(first, end) for first, end in pairwise(edges)]


def bucket_of(group: str, buckets: int) -> int:
    """The bucket of a group."""
    return zlib.crc32(group.encode()) % buckets


def cut(raw: pa.Table, slices: list[Slice], buckets: int) -> Iterator[pa.Table]:
    """The records (`RAW`) of each slice; markers, which have no key, are in all of them."""
    if len(slices) == 1:
        yield raw
        return
    bucket = _buckets_of_keys(raw.column("key"), buckets)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], [0, *(each.end for each in slices)])
    markers = np.flatnonzero(bucket < 0)
    for number in range(len(slices)):
        rows = np.sort(np.concatenate([markers, order[edges[number] : edges[number + 1]]]))
        yield raw.take(pa.array(rows))


def _buckets_of_keys(keys: pa.ChunkedArray, buckets: int) -> Int64s:
    """Each row's bucket; -1 without a key. A key that names no group is in bucket 0."""
    encoded = keys.dictionary_encode().unify_dictionaries().combine_chunks() if keys.num_chunks != 1 else keys.dictionary_encode()
    array = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    found = np.array([_bucket_of_key(key, buckets) for key in array.dictionary.to_pylist()] + [-1], np.int64)
    buckets_of_rows: Int64s = found[array.indices.fill_null(len(array.dictionary)).to_numpy()]
    return buckets_of_rows


def _bucket_of_key(key: bytes, buckets: int) -> int:
    """Every key begins with a type and a group: int16, then a text with its length before it as int16."""
    if len(key) < _GROUP_AT:
        return 0
    size = int.from_bytes(key[2:_GROUP_AT], "big", signed=True)
    return zlib.crc32(key[_GROUP_AT : _GROUP_AT + max(size, 0)]) % buckets


def placed(raw: pa.Table) -> tuple[pa.Table, int]:
    """(records with places for offsets, how many are left out because no log is that long); sorted by place."""
    partition, offset = raw.column("partition").to_numpy().astype(np.int64), raw.column("offset").to_numpy()
    fine = (offset >= 0) & (offset <= _MASK) & (partition >= 0) & (partition < _MOST_PARTITIONS)
    left_out = int((~fine).sum())
    if left_out:
        raw, partition, offset = raw.filter(pa.array(fine)), partition[fine], offset[fine]
    place = (partition << PLACE_BITS) | offset
    producer = raw.column("producer_id").to_numpy(zero_copy_only=False) if raw.column("producer_id").null_count == 0 else None
    if producer is None:
        filled = raw.column("producer_id").fill_null(0).to_numpy()
        producers = pa.array((partition << PLACE_BITS) | (filled & _MASK), mask=nulls(raw.column("producer_id")))
    else:
        producers = pa.array((partition << PLACE_BITS) | (producer & _MASK))
    columns = {name: raw.column(name) for name in RAW.names}
    columns["offset"], columns["producer_id"] = pa.chunked_array([pa.array(place)]), pa.chunked_array([producers])
    table = pa.table(columns)
    if (np.diff(place) < 0).any():
        table = table.take(pa.array(np.argsort(place, kind="stable")))
    return table, left_out


def placed_runs(coverage: pa.Table) -> pa.Table:
    """Runs with places for offsets."""
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
