"""The bytes of a binary Arrow column, read by numpy at many places at once: big-endian integers, varints, text.

Every reader trusts its positions: callers have checked them against ``ends`` first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

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
        """The bytes at these positions."""
        found: npt.NDArray[np.uint8] = self.data[at]
        return found

    def int16s(self, at: Int64s) -> npt.NDArray[np.int16]:
        """The int16 at each position."""
        return self._read(at, ">i2").astype(np.int16)

    def int32s(self, at: Int64s) -> Int32s:
        """The int32 at each position."""
        return self._read(at, ">i4").astype(np.int32)

    def int64s(self, at: Int64s) -> Int64s:
        """The int64 at each position."""
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
