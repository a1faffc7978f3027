"""What stays of days that were thinned: of records what Kafka's cleaner keeps, of the tables what later answers look back at.

Both are made file by file: one that loses nothing stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, nulls, order_by, ranked
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile, buckets_of, is_provisional, prefix_of, write_files
from kgctl.pipeline.store.warehouse import COMPACTED, Warehouse

DAY_MS = 86_400_000
_LOOKED_BACK = 10
"""So many commits Burrow's rules look back at."""


@dataclass(frozen=True)
class Thinned:
    """``gone``: the files of a table that lose rows; ``kept``: files with what stays of them."""

    gone: Sequence[DataFile] = ()
    kept: Sequence[DataFile] = ()

    @property
    def rows(self) -> int:
        """Return how many rows go."""
        return sum(file.rows for file in self.gone) - sum(file.rows for file in self.kept)


def day_of(time_ms: int) -> str:
    """Return the day of a moment, in UTC, as folders are named."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()


def next_pruned(before: int | None, until_ms: int) -> int:
    """The number that tells of one more thinning of what is older than the day of ``until_ms``: that day's first millisecond, or
    an earlier thinning's where that took later days, and how often before."""
    day_ms = until_ms // DAY_MS * DAY_MS
    return day_ms if before is None or before < day_ms else before + 1


def pruned_until_ms(number: int | None) -> int:
    """The time before which only the last commits are kept, by that number; 0 where nothing was thinned."""
    return 0 if number is None else max(number, 0) // DAY_MS * DAY_MS


def thinned_records(table: Table, old: Sequence[DataFile]) -> Thinned:
    """Of the files of ``records`` of old days: the last record of each key, and all of transactions.

    The new files count as built, as the old ones do.
    """
    columns = ["cluster", "log_partition", "log_offset", "key", "producer_id"]
    return _thinned(table, old, columns, _last_records, lambda _: f"{COMPACTED}-")


def thinned_rows(warehouse: Warehouse, name: str, cluster: str, until_ms: int) -> Thinned:
    """Of a built table's days before ``until_ms`` what answers from then on look back at; rows that may still change stay."""
    table, day = warehouse.table(name), day_of(until_ms)
    old = [file for file in table.files(cluster) if file.date < day and not is_provisional(file)]
    if not old or name not in _KEPT:
        return Thinned(old)
    columns, kept = _KEPT[name]
    return _thinned(table, old, columns, kept, lambda file: prefix_of(*buckets_of(file), is_provisional=False))


def _thinned(
    table: Table,
    files: Sequence[DataFile],
    columns: Sequence[str],
    kept: Callable[[pa.Table], Bools],
    prefix: Callable[[DataFile], str],
) -> Thinned:
    parts = [table.rows([file], columns) for file in files]
    is_kept = kept(pa.concat_tables(parts)) if parts else np.zeros(0, np.bool_)
    gone, new, at = [], [], 0
    for file, part in zip(files, parts, strict=True):
        mine = is_kept[at : at + part.num_rows]
        at += part.num_rows
        if not mine.all():
            gone.append(file)
            rows = table.rows([file]).filter(pa.array(mine)) if mine.any() else table.stored.schema.empty_table()
            new += write_files(table.location, table.name, rows, prefix(file))
    return Thinned(gone, new)


def _last_records(rows: pa.Table) -> Bools:
    is_plain = pc.and_(pc.is_valid(rows.column("key")), pc.is_null(rows.column("producer_id"))).to_numpy()
    found: Bools = ~is_plain | _is_last(rows, ["cluster", "log_partition", "key"], ["log_offset"], among=is_plain)
    return found


def _is_last(rows: pa.Table, key: Sequence[str], order: Sequence[str], *, count: int = 1, among: Bools | None = None) -> Bools:
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
    if types.is_string(column.type):
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
    found: Bools = _is_last(marked, key, ["log_offset", "is_assigned"]) & is_assigned.to_numpy()
    return found


def _lags(rows: pa.Table) -> Bools:
    """Of each partition the last commits, the last row and the last one whose lag is known."""
    is_commit = pc.equal(rows.column("kind"), "commit").to_numpy()
    last = partial(_is_last, rows, _SERIES, ["time"])
    return last(count=_LOOKED_BACK, among=is_commit) | last() | last(among=~nulls(rows.column("lag")))


_SERIES = ["group", "topic", "partition"]
_KEPT: Mapping[str, tuple[Sequence[str], Callable[[pa.Table], Bools]]] = {
    "offset_commits": (
        [*_SERIES, "effect_offset", "log_offset"],
        partial(_is_last, key=_SERIES, order=["effect_offset", "log_offset"]),
    ),
    "generations": (["group", "log_offset"], partial(_is_last, key=["group"], order=["log_offset"])),
    "member_changes": (["group", "member_id", "change", "log_offset"], _members),
    "assignment_changes": ([*_SERIES, "member_id", "change", "log_offset"], _assignments),
    "lag": ([*_SERIES, "time", "kind", "lag"], _lags),
    "status_changes": ([*_SERIES, "time"], partial(_is_last, key=_SERIES, order=["time"])),
    "group_health": (["group", "window_start"], partial(_is_last, key=["group"], order=["window_start"])),
}
"""By table the columns that tell which rows of old days stay, and which do; of other tables none does."""
