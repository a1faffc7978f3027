"""Of many rows the last one of each key, or those of each group; vectorised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
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
        table, key = table.take(places), key[places]
    return table.take(np.flatnonzero(np.append(key[1:] != key[:-1], True)))


def by_group(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each group, in their order; group by group in the order of their first rows."""
    if not table.num_rows:
        return
    codes = _numbers(table.column("group"))
    places = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.append(codes[places][1:] != codes[places][:-1], True)) + 1
    sorted_rows = table.take(places)
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
    starts = key[np.append(True, ~is_same)]
    if len(np.unique(starts)) != len(starts):
        return False
    for rank in ranks:
        if (is_same & (rank[:-1] > rank[1:])).any():
            return False
        is_same &= rank[:-1] == rank[1:]
    return True
