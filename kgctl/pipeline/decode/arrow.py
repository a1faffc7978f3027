"""Arrow columns as numpy: their integers, orders of their rows, and bytes read at many places at once.

Every reader trusts its positions: callers have checked them against ``ends`` first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@contextmanager
def plain_memory() -> Iterator[None]:
    """Take Arrow's memory from the C library meanwhile: Arrow's own pool gives large pieces back to the system and asks for them
    anew, which costs a fifth of the processor time of work on many large arrays."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


_GATHER_BYTES = 1 << 22
_VARINT_BYTES = 5


class Cells:
    """Where each cell of a binary array begins and ends, in ``data``. A null cell is empty."""

    def __init__(self, array: pa.Array) -> None:
        bounds, data = array.buffers()[1:3]
        first, count = array.offset, len(array)
        edges = np.frombuffer(bounds, np.int32, first + count + 1)[first:] if count else np.zeros(1, np.int32)
        self.data = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        self.starts: Int64s = edges[:-1].astype(np.int64)
        self.ends: Int64s = edges[1:].astype(np.int64)
        if array.null_count:
            missing = array.is_null().to_numpy(zero_copy_only=False)
            self.ends[missing] = self.starts[missing]

    def int8s(self, at: Int64s) -> npt.NDArray[np.uint8]:
        """Return the bytes at these positions."""
        found: npt.NDArray[np.uint8] = self.data[at]
        return found

    def int16s(self, at: Int64s) -> npt.NDArray[np.int16]:
        """Return the int16 at each position."""
        return self._read(at, ">i2").astype(np.int16)

    def int32s(self, at: Int64s) -> Int32s:
        """Return the int32 at each position."""
        return self._read(at, ">i4").astype(np.int32)

    def int64s(self, at: Int64s) -> Int64s:
        """Return the int64 at each position."""
        return self._read(at, ">i8").astype(np.int64)

    def _read(self, at: Int64s, layout: str) -> npt.NDArray[Any]:
        kind = np.dtype(layout)
        places = max(len(self.data) - kind.itemsize + 1, 0)
        everywhere: npt.NDArray[Any] = np.ndarray((places,), kind, self.data.data, strides=(1,)) if places else np.zeros(0, kind)
        return everywhere[at]

    def varints(self, at: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
        """(values, positions behind them) of unsigned varints of up to five bytes; value -1 where one is cut off or longer."""
        values, after = np.zeros(len(at), np.int64), at.copy()
        going = np.arange(len(at))
        for index in range(_VARINT_BYTES):
            here = after[going]
            inside = here < ends[going]
            values[going[~inside]] = -1
            going, here = going[inside], here[inside]
            byte = self.data[here].astype(np.int64)
            values[going] |= (byte & 0x7F) << (7 * index)
            after[going] += 1
            going = going[byte > 0x7F]
        values[going] = -1
        return values, after

    def texts(self, at: Int64s, lengths: Int64s) -> tuple[pa.Array, Bools]:
        """(the strings at these places, which of them are UTF-8); one that is not is empty."""
        valid = np.ones(len(at), np.bool_)
        try:
            return self._strings(at, lengths), valid
        except pa.ArrowInvalid:
            for index in np.flatnonzero(lengths):
                start = at[index]
                valid[index] = _is_text(self.data[start : start + lengths[index]].tobytes())
        return self._strings(at, np.where(valid, lengths, 0)), valid

    def _strings(self, at: Int64s, lengths: Int64s) -> pa.Array:
        edges = np.zeros(len(at) + 1, np.int64)
        np.cumsum(lengths, out=edges[1:])
        gathered = np.empty(edges[-1], np.uint8)
        first = 0
        while first < len(at):
            last = max(int(np.searchsorted(edges, edges[first] + _GATHER_BYTES, "right")) - 1, first + 1)
            begin, end = int(edges[first]), int(edges[last])
            shift = np.repeat(at[first:last] - edges[first:last], lengths[first:last])
            gathered[begin:end] = self.data[np.arange(begin, end) + shift]
            first = last
        buffers = [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(gathered)]
        strings = pa.Array.from_buffers(pa.string(), len(at), buffers)
        strings.validate(full=True)
        return strings


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def int64s(table: pa.Table, name: str, null: int = 0) -> Int64s:
    """A column of whole numbers or booleans, with ``null`` for null."""
    column = table.column(name).cast(pa.int64())
    found: Int64s = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def nulls(column: pa.Array | pa.ChunkedArray) -> Bools:
    """Return which rows are null."""
    if column.null_count == 0:
        return np.zeros(len(column), np.bool_)
    found: Bools = column.is_null().to_numpy(zero_copy_only=False)
    return found


def each_once(table: pa.Table, name: str) -> pa.Table:
    """The rows in the order of a column of whole numbers, the first one of each number."""
    numbers = table.column(name).to_numpy()
    if (np.diff(numbers) > 0).all():
        return table
    _, first = np.unique(numbers, return_index=True)
    return table.take(pa.array(first))


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
