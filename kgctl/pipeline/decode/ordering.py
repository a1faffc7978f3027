"""Rows in the order of their natural key, quickly: texts become ranks, ranks and row numbers one integer, integers are sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.cells import Int64s

_BITS = 63


def ranked(column: pa.ChunkedArray) -> tuple[Int64s, pa.Array]:
    """(each row's rank, -1 for null; the distinct texts that occur, ascending by their UTF-8 bytes) of a text column."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    array = pa.chunked_array([encoded]) if isinstance(encoded, pa.Array) else encoded
    array = array.unify_dictionaries().combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    codes = array.indices.fill_null(-1).to_numpy().astype(np.int64)
    used = np.zeros(len(array.dictionary) + 1, np.bool_)
    used[codes] = True
    order = pc.sort_indices(array.dictionary).to_numpy()
    order = order[used[order]]
    ranks = np.full(len(used), -1, np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[codes], array.dictionary.take(pa.array(order))


def text_column(ranks: Int64s, texts: pa.Array) -> pa.DictionaryArray:
    """The other way round: dictionary-encoded texts."""
    missing = ranks < 0
    indices = pa.array(ranks.astype(np.int32), mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(indices, texts)


def only_used(ranks: Int64s, texts: pa.Array) -> tuple[Int64s, pa.Array]:
    """The same rows, without texts that no row has. Ranks stay in order, -1 stays null."""
    used = np.zeros(len(texts) + 1, np.bool_)
    used[ranks] = True
    if used[:-1].all():
        return ranks, texts
    renumbered = np.append(np.cumsum(used[:-1]) - 1, -1)
    return renumbered[ranks], texts.filter(pa.array(used[:-1]))


def order_by(columns: Sequence[Int64s]) -> Int64s:
    """The stable order of rows by these columns, the first being the most significant."""
    rows = len(columns[0])
    keys, width = packed(columns)
    row_bits = rows.bit_length()
    if width + row_bits > _BITS:
        order: Int64s = np.lexsort(tuple(reversed(columns)))
        return order
    if not (keys[1:] < keys[:-1]).any():
        return np.arange(rows)
    together = keys << row_bits | np.arange(rows)
    together.sort()
    return together & ((1 << row_bits) - 1)


def packed(columns: Sequence[Int64s]) -> tuple[Int64s, int]:
    """(one integer a row that sorts as these columns do, its width in bits); a width over 63 bits: the integers are worthless."""
    width, keys = 0, np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        bits = (high - low).bit_length()
        width += bits
        if width > _BITS:
            break
        keys = keys << bits | (column - low)
    return keys, width
