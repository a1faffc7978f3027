"""The rows that later answers look back at, of each table: thinning keeps them of old days, and files note them in their footers.

What held at a moment is told by the last rows before it, wherever these are. So a file of a table that grows with every commit
has, in its footer, those rows of each of its row groups; and the rows of a busy group are cut into row groups by the order of the
log, the others by their names. A question about a moment then reads notes, and of the rows those around the moment alone.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, nulls, order_by, ranked

_LOOKED_BACK = 10
"""So many commits Burrow's rules look back at."""
ROW_GROUP_ROWS = 131_072
BLOCK_ROWS = 65_536
"""A group with more rows in a file has row groups of its own, each of so many rows that follow each other in the log."""
_WORTH = 8
"""Rows are noted where they are no more than one of so many."""
_LEAST_ROWS = 1_000
"""Fewer rows than this are read as quickly as notes of them."""
_KEY = b"kgctl.lookback"
_ORDERS = {"offset_commits": "effect_offset", "lag": "time", "status_changes": "time"}
"""The tables that a group has many rows in, and the column that tells their order in the log."""


def is_last(rows: pa.Table, key: Sequence[str], order: Sequence[str], *, count: int = 1, among: Bools | None = None) -> Bools:
    """Which rows are the last ``count`` of their key, of those ``among``."""
    places = np.arange(rows.num_rows) if among is None else np.flatnonzero(among)
    keys = [_codes(rows.column(name))[places] for name in key]
    found = order_by([*keys, *(_codes(rows.column(name))[places] for name in order)])
    number = _numbered([each[found] for each in keys])
    ends = np.append(np.flatnonzero(np.diff(number)), len(number) - 1)
    is_last = np.zeros(rows.num_rows, np.bool_)
    if len(places):
        is_last[places[found]] = ends[number] - np.arange(len(number)) < count
    return is_last


def _numbered(keys: Sequence[Int64s]) -> Int64s:
    """By row, the number of its key; ``keys`` are sorted."""
    changes = np.zeros(len(keys[0]), np.bool_)
    for each in keys:
        changes[1:] |= each[1:] != each[:-1]
    found: Int64s = np.cumsum(changes)
    return found


def _codes(column: pa.ChunkedArray) -> Int64s:
    """Numbers in the order of a column's values; of bytes, equal where they are."""
    if types.is_string(column.type) or types.is_dictionary(column.type):
        return ranked(column)[0]
    if types.is_binary(column.type):
        encoded = column.combine_chunks().dictionary_encode()
        codes = encoded if isinstance(encoded, pa.DictionaryArray) else encoded.unify_dictionaries().chunk(0)
        filled: Int64s = codes.indices.fill_null(-1).to_numpy().astype(np.int64)
        return filled
    found: Int64s = column.cast(pa.int64()).fill_null(-1).to_numpy()
    return found


def _members(rows: pa.Table) -> Bools:
    """Of each member that has not left: since it joined."""
    key = ["group", "member_id"]
    is_left = pc.equal(rows.column("change"), "left").to_numpy()
    is_joined = pc.equal(rows.column("change"), "joined").to_numpy()
    keys = [_codes(rows.column(name)) for name in key]
    order = order_by([*keys, int64s(rows, "log_offset"), (~is_left).astype(np.int64)])
    number = _numbered([each[order] for each in keys])
    ends = np.append(np.flatnonzero(np.diff(number)), len(number) - 1)
    joined = np.zeros(len(ends), np.int64)
    np.maximum.at(joined, number, np.where(is_joined[order], np.arange(len(order)), 0))
    found = np.zeros(rows.num_rows, np.bool_)
    found[order] = (np.arange(len(order)) >= joined[number]) & ~is_left[order][ends][number]
    return found


def _assignments(rows: pa.Table) -> Bools:
    """Of each member's partitions those that it still has."""
    is_assigned = pc.equal(rows.column("change"), "assigned")
    marked = rows.append_column("is_assigned", is_assigned)
    key = ["group", "topic", "partition", "member_id"]
    found: Bools = is_last(marked, key, ["log_offset", "is_assigned"]) & is_assigned.to_numpy()
    return found


def _lags(rows: pa.Table) -> Bools:
    """Of each partition the last commits, the last row and the last one whose log end is known."""
    is_commit = pc.equal(rows.column("kind"), "commit").to_numpy()
    last = partial(is_last, rows, _SERIES, ["time"])
    return last(count=_LOOKED_BACK, among=is_commit) | last() | last(among=~nulls(rows.column("log_end_offset")))


_SERIES = ["group", "topic", "partition"]
KEPT: Mapping[str, tuple[Sequence[str], Callable[[pa.Table], Bools]]] = {
    "offset_commits": (
        [*_SERIES, "effect_offset", "log_offset"],
        partial(is_last, key=_SERIES, order=["effect_offset", "log_offset"]),
    ),
    "generations": (["group", "log_offset"], partial(is_last, key=["group"], order=["log_offset"])),
    "member_changes": (["group", "member_id", "change", "log_offset"], _members),
    "assignment_changes": ([*_SERIES, "member_id", "change", "log_offset"], _assignments),
    "lag": ([*_SERIES, "time", "kind", "log_end_offset"], _lags),
    "status_changes": ([*_SERIES, "time"], partial(is_last, key=_SERIES, order=["time"])),
    "group_health": (["group", "window_start"], partial(is_last, key=["group"], order=["window_start"])),
}
"""By table the columns that tell which rows of old days stay, and which do; of other tables none does."""
_NOTED: Mapping[str, Callable[[pa.Table], Bools]] = {
    **{name: KEPT[name][1] for name in _ORDERS},
    "samples": partial(is_last, key=["topic", "partition"], order=["time"], count=_LOOKED_BACK),
}
"""The tables whose files have notes, and of which rows, in any order."""


def _noted(name: str, rows: pa.Table) -> Bools:
    """The rows that a file notes of a row group: at the cost of a few passes where they are sorted, as builds write them."""
    changes = np.ones(rows.num_rows, np.bool_)
    changes[1:] = False
    for key in ("group", "topic", "partition"):
        if key in rows.column_names:
            codes = _any_codes(rows.column(key))
            changes[1:] |= codes[1:] != codes[:-1]
    order = int64s(rows, _ORDERS.get(name, "time"))
    if ((order[1:] < order[:-1]) & ~changes[1:]).any():
        return _NOTED[name](rows)
    series = np.cumsum(changes)
    found = _last_places(series, np.arange(rows.num_rows), _LOOKED_BACK if name == "samples" else 1)
    if name == "lag":
        is_commit = pc.equal(rows.column("kind"), "commit").to_numpy()
        found |= _last_places(series, np.flatnonzero(is_commit), _LOOKED_BACK)
        found |= _last_places(series, np.flatnonzero(~nulls(rows.column("log_end_offset"))), 1)
    return found


def _any_codes(column: pa.ChunkedArray) -> Int64s:
    """Numbers that differ where the values do."""
    if not types.is_dictionary(column.type):
        return _codes(column)
    whole = column.unify_dictionaries().combine_chunks()
    array = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    found: Int64s = array.indices.to_numpy()
    return found


def _last_places(series: Int64s, among: Int64s, count: int) -> Bools:
    """Which rows are the last ``count`` of their series, of those at places ``among``, which ascend."""
    is_last = np.ones(len(among), np.bool_)
    numbers = series[among]
    is_last[:-count] = numbers[:-count] != numbers[count:]
    found = np.zeros(len(series), np.bool_)
    found[among[is_last]] = True
    return found


@dataclass(frozen=True)
class Notes:
    """What a file notes of its row groups: ``numbers`` of those that have notes, and the rows, which are read when asked for."""

    numbers: frozenset[int] = frozenset()
    encoded: bytes | memoryview = b""

    @classmethod
    def of(cls, metadata: Mapping[bytes, bytes] | None) -> Notes:
        """Return the notes in a file's footer; none where it has none."""
        said = (metadata or {}).get(_KEY)
        if said is None:
            return cls()
        end = said.index(b"\n")
        return cls(frozenset(json.loads(said[:end])), memoryview(said)[end + 1 :])

    def of_row_groups(self, numbers: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return these columns of what is noted of some row groups."""
        with pa.ipc.open_stream(pa.py_buffer(a2b_base64(self.encoded))) as reader:
            rows = reader.read_all()
        return rows.filter(pc.is_in(rows.column("row_group"), pa.array(numbers, pa.int32()))).select(list(columns))


def footer(name: str, row_groups: Sequence[pa.Table]) -> dict[bytes, bytes]:
    """What a file of table ``name`` with these row groups has in its footer; nothing where notes are not worth it."""
    numbers, noted = [], []
    for number, rows in enumerate(row_groups if name in _NOTED else ()):
        if rows.num_rows < _LEAST_ROWS:
            continue
        is_kept = _noted(name, rows)
        if int(is_kept.sum()) * _WORTH <= rows.num_rows:
            numbers.append(number)
            noted.append(_plain(rows.filter(pa.array(is_kept)), number))
    if not noted:
        return {}
    together = pa.concat_tables(noted).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, together.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(together)
    return {_KEY: json.dumps(numbers).encode() + b"\n" + b2a_base64(sink.getvalue().to_pybytes(), newline=False)}


def _plain(rows: pa.Table, number: int) -> pa.Table:
    """The rows with plain texts, and their ``row_group``."""
    kinds = [each.with_type(pa.string()) if types.is_dictionary(each.type) else each for each in rows.schema]
    numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
    return rows.cast(pa.schema(kinds)).append_column("row_group", numbers)


def row_groups_of(name: str, rows: pa.Table) -> list[pa.Table]:
    """Rows of table ``name`` as the row groups of a file: in their order, but those of a busy group by stretches of the log."""
    if name not in _ORDERS or rows.num_rows <= BLOCK_ROWS:
        return _cut(rows)
    group = _codes(rows.column("group"))
    if (np.diff(group) < 0).any():
        return _cut(rows)
    found, low = [], 0
    for first, end in pairwise([0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), rows.num_rows]):
        if end - first > BLOCK_ROWS:
            found += [*_cut(rows.slice(low, first - low)), *_blocks(rows.slice(first, end - first), _ORDERS[name])]
            low = end
    return found + _cut(rows.slice(low))


def _cut(rows: pa.Table) -> list[pa.Table]:
    return [rows.slice(at, ROW_GROUP_ROWS) for at in range(0, rows.num_rows, ROW_GROUP_ROWS)]


def _blocks(rows: pa.Table, order: str) -> list[pa.Table]:
    """The rows of one group by stretches of the log, each in the order that they had."""
    places = np.argsort(int64s(rows, order), kind="stable")
    return [rows.take(pa.array(np.sort(places[at : at + BLOCK_ROWS]))) for at in range(0, len(places), BLOCK_ROWS)]
