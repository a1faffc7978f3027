"""Rows of some groups out of a table, reading only files and row groups that can have them; of many rows the last of each key."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from kgctl.pipeline.store.delta import Table
    from kgctl.pipeline.store.files import DataFile


DICTIONARIES = ("group", "topic", "member_id")
"""Columns whose few values are repeated many times: read as dictionaries."""
_SLICE = re.compile(r".*/[bp](\d+)-(\d+)-[0-9a-f]+\.parquet")


def files_of(table: Table, cluster: str, groups: Collection[str] | None, homes: Mapping[str, int]) -> list[DataFile]:
    """The files that can have rows of these groups, or of all, of a cluster. ``homes``: each group's partition of the log."""
    files = table.files(cluster)
    if groups is None:
        return files
    return [file for file in files if any(_may_hold(file, group, homes.get(group)) for group in groups)]


def _may_hold(file: DataFile, group: str, home: int | None) -> bool:
    match = None if home is None else _SLICE.fullmatch(file.path)
    return file.may_hold("group", group, group) and (match is None or int(match[1]) <= (home or 0) <= int(match[2]))


def read_rows(
    table: Table,
    file: DataFile,
    columns: Sequence[str],
    groups: Collection[str] | None = None,
    span: tuple[int, int] | None = None,
) -> pa.Table:
    """These columns of a file; of these groups, or of all; of stretches that may have a time of ``span``, ends included.

    Raises `StorageError` where the file is damaged.
    """
    from kgctl.pipeline.store.files import opened

    with opened(table.location, table.name, file.path, [name for name in columns if name in DICTIONARIES]) as source:
        chosen = None if groups is None else ("group", groups)
        numbers = _row_groups(source.metadata, chosen)
        if span is not None:
            bounds = _Bounds(source.metadata, table.stored.time)
            numbers = [number for number in numbers if bounds.meets(number, *span)]
        return _read(source, numbers, columns, chosen)


def read_lookback(
    table: Table,
    file: DataFile,
    columns: Sequence[str],
    chosen: Chosen | None,
    at_ms: int,
    *,
    with_later: bool = False,
) -> list[pa.Table]:
    """Of a file's chosen rows up to a moment at least those that `kgctl.pipeline.store.lookback` keeps; ``with_later``: and of
    each key that has later ones, one of these. What else is there is not read where the file's notes spare it.

    Raises `StorageError` where the file is damaged.
    """
    from kgctl.pipeline.store.files import opened
    from kgctl.pipeline.store.lookback import Notes

    with opened(table.location, table.name, file.path, [name for name in columns if name in DICTIONARIES]) as source:
        bounds = _Bounds(source.metadata, table.stored.time)
        wanted = [n for n in _row_groups(source.metadata, chosen) if with_later or bounds.may_begin_by(n, at_ms)]
        notes = Notes.of(source.metadata.metadata) if wanted else Notes()
        noted = [n for n in wanted if n in notes.numbers and not bounds.straddles(n, at_ms)]
        found = [_read(source, [n for n in wanted if n not in noted], columns, chosen)] if len(noted) < len(wanted) else []
        if noted:
            rows = _chosen(notes.of_row_groups(noted, _with_key(columns, chosen)), chosen)
            found.append(_with_dictionaries(rows.select(list(columns))))
        return found


Chosen: TypeAlias = tuple[str, Collection[str]]
"""A column of texts, and which of them are asked for."""


_FEW = 4
"""So many row groups are read sooner, and with less work, by one thread."""


def _read(source: Any, numbers: Sequence[int], columns: Sequence[str], chosen: Chosen | None) -> pa.Table:
    if chosen is None:
        return source.read_row_groups(numbers, list(columns), use_threads=len(numbers) > _FEW)
    parts = [source.read_row_groups([number], _with_key(columns, chosen), use_threads=False) for number in numbers]
    found = [_chosen(part, chosen).select(list(columns)) for part in parts]
    return pa.concat_tables(found) if found else source.read_row_groups([], list(columns))


def _with_key(columns: Sequence[str], chosen: Chosen | None) -> list[str]:
    return list(columns if chosen is None else dict.fromkeys([*columns, chosen[0]]))


def _with_dictionaries(rows: pa.Table) -> pa.Table:
    texts = pa.dictionary(pa.int32(), pa.string())
    kinds = [each.with_type(texts) if each.name in DICTIONARIES else each for each in rows.schema]
    return rows.cast(pa.schema(kinds))


class _Bounds:
    """The first and the last time in each row group, where the file has them."""

    def __init__(self, metadata: Any, time: str) -> None:
        self._metadata = metadata
        self._column = _column_of(metadata, time)

    def _of(self, number: int) -> tuple[int, int] | None:
        from kgctl.pipeline.store.files import instant_ms

        statistics = self._metadata.row_group(number).column(self._column).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        return instant_ms(statistics.min), instant_ms(statistics.max)

    def meets(self, number: int, first_ms: int, last_ms: int) -> bool:
        """Whether it may have a row from one time to another."""
        found = self._of(number)
        return found is None or (found[0] <= last_ms and found[1] >= first_ms)

    def may_begin_by(self, number: int, at_ms: int) -> bool:
        """Whether it may have a row up to a moment."""
        found = self._of(number)
        return found is None or found[0] <= at_ms

    def straddles(self, number: int, at_ms: int) -> bool:
        """Whether it may have rows up to a moment, and others behind it."""
        found = self._of(number)
        return found is None or found[0] <= at_ms < found[1]


def _column_of(metadata: Any, name: str) -> int:
    return next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name)


def _row_groups(metadata: Any, chosen: Chosen | None) -> list[int]:
    """The row groups that may hold one of the texts, by the lowest and highest one in each; all, if nothing is chosen."""
    if chosen is None:
        return list(range(metadata.num_row_groups))
    column, texts = _column_of(metadata, chosen[0]), sorted(chosen[1])
    found = []
    for place in range(metadata.num_row_groups):
        statistics = metadata.row_group(place).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            found.append(place)
            continue
        at = bisect_left(texts, statistics.min)
        if at < len(texts) and texts[at] <= statistics.max:
            found.append(place)
    return found


def _chosen(table: pa.Table, chosen: Chosen | None) -> pa.Table:
    import pyarrow.compute as pc

    if chosen is None:
        return table
    return table.filter(pc.is_in(table.column(chosen[0]), value_set=pa.array(sorted(chosen[1]), pa.string())))


Numbers: TypeAlias = np.ndarray[Any, Any]

_MOST = 2**62


def last_of_each(table: pa.Table, keys: Sequence[str], order: Sequence[str] = ()) -> pa.Table:
    """Of the rows with the same ``keys`` the highest by ``order``, its first column weighing most; without it, any one of them.

    Quick where the table is sorted so already.
    """
    if not table.num_rows:
        return table
    key = _one_number([_numbers(table.column(name)) for name in keys])
    ranks = [_numbers(table.column(name)) for name in order]
    if not _is_sorted(key, ranks):
        places = np.lexsort([*ranks[::-1], key])
        table, key = taken(table, places), key[places]
    return taken(table, np.flatnonzero(np.append(key[1:] != key[:-1], True)))


def taken(table: pa.Table, places: Numbers) -> pa.Table:
    """The rows at these places. Unlike ``take`` with an array of numpy's it loads nothing of numpy's masked arrays."""
    numbers = np.ascontiguousarray(places, np.int64)
    return table.take(pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)]))


def by_group(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each group, in their order; group by group in the order of their first rows."""
    if not table.num_rows:
        return
    codes = _numbers(table.column("group"))
    places = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.append(codes[places][1:] != codes[places][:-1], True)) + 1
    sorted_rows = taken(table, places)
    for begin, end in pairwise([0, *ends.tolist()]):
        yield sorted_rows.column("group")[begin].as_py(), sorted_rows.slice(begin, end - begin)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    """A column as numbers that are equal where its values are; in their order if they are numbers."""
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        return np.asarray(column.to_numpy())
    codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = codes.unify_dictionaries().combine_chunks()
    return np.asarray((whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole).indices)


def _one_number(columns: Sequence[Numbers]) -> Numbers:
    """One number for each row, equal where all columns are."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        lowest, size = int(column.min()), int(column.max()) - int(column.min()) + 1
        if int(key.max()) * size >= _MOST:
            key = np.unique(key, return_inverse=True)[1]
        key = key * size + (column.astype(np.int64) - lowest)
    return key


def _is_sorted(key: Numbers, ranks: Sequence[Numbers]) -> bool:
    """Whether rows of one key are neighbours and ascend by ``ranks``."""
    is_same = key[1:] == key[:-1]
    starts = np.sort(key[np.append(True, ~is_same)])  # numpy's `unique` loads its masked arrays first: 20 ms
    if (starts[1:] == starts[:-1]).any():
        return False
    for rank in ranks:
        if (is_same & (rank[:-1] > rank[1:])).any():
            return False
        is_same &= rank[:-1] == rank[1:]
    return True


def times_of_each(table: pa.Table, keys: Sequence[str]) -> list[tuple[dict[str, Any], list[int]]]:
    """Each of the ``keys`` with its values of ``time_ms``, ascending. Unlike ``group_by`` it loads nothing more of pyarrow."""
    if not table.num_rows:
        return []
    key = _one_number([_numbers(table.column(name)) for name in keys])
    time_ms = np.asarray(table.column("time_ms").to_numpy())
    places = np.lexsort([time_ms, key])
    ends = np.flatnonzero(np.append(key[places][1:] != key[places][:-1], True)) + 1
    rows = taken(table.select(list(keys)), places[ends - 1]).to_pylist()
    return list(zip(rows, (part.tolist() for part in np.split(time_ms[places], ends[:-1])), strict=True))
