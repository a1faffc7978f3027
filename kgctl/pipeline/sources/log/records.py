"""The records of many batches at once.

A record's place follows from the lengths of those before it in its batch, but batches do not depend on each other: the i-th
record of all batches is one step for numpy. Where few batches have an i-th record, their rest is walked one by one, so that
uneven batches cost no more. Once all places are known, the fields of all records are read together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SHORTEST_RECORD = 7
_NARROW = 192
"""Steps over fewer batches than this cost more than walking their records one by one."""

_AT_A_TIME = 65_536
_MOST = 1 << 31


class Places(NamedTuple):
    """First byte and last byte + 1, one entry each."""

    begin: Any
    end: Any


class Fields(NamedTuple):
    """One entry a record. A length of -1 is null; ``is_bad`` records do not keep to the format, their fields mean nothing."""

    timestamp_delta: Any
    offset_delta: Any
    key_start: Any
    key_length: Any
    value_start: Any
    value_length: Any
    is_bad: Any


def record_places(buffer: Any, batches: Places, counts: Any) -> tuple[Places, Any]:
    """Where each record is, behind its length, batch by batch; and which batches' records do not end where the batch does.

    Those of a batch that is cut off are empty places.
    """
    first = np.cumsum(counts) - counts
    begin = np.zeros(int(counts.sum()), np.int64)
    length = np.zeros(len(begin), np.int64)
    order = np.argsort(-counts, kind="stable")
    position, steps = batches.begin[order].astype(np.int64), counts[order]
    step, active = 0, int((steps > 0).sum())
    while active >= _NARROW:
        size, behind = varint(buffer, position[:active])
        np.clip(size, 0, _MOST, out=size)
        place = first[order[:active]] + step
        begin[place], length[place] = behind, size
        position[:active] = np.minimum(behind + size, len(buffer))
        step += 1
        active = int(np.searchsorted(-steps, -step, side="left"))
    data = buffer.tobytes() if active else b""
    for row, batch in enumerate(order[:active].tolist()):
        begins, sizes = _walk(data, int(position[row]), int(counts[batch]) - step)
        rows = slice(first[batch] + step, first[batch] + step + len(begins))
        begin[rows], length[rows] = begins, sizes
    end = begin + length
    is_cut = np.zeros(len(counts), bool)
    filled = np.flatnonzero(counts > 0)
    is_cut[filled] = end[(first + counts - 1)[filled]] != batches.end[filled]
    is_cut |= (counts == 0) & (batches.begin != batches.end)
    if is_cut.any():
        rows_cut = np.repeat(is_cut, counts)
        begin[rows_cut] = end[rows_cut] = 0
    return Places(begin, end), is_cut


def _walk(data: bytes, position: int, count: int) -> tuple[list[int], list[int]]:
    """Where the next ``count`` records of a batch begin, and their sizes; fewer where the data ends before."""
    begins: list[int] = []
    sizes: list[int] = []
    try:
        for _ in range(count):
            size = data[position]
            position += 1
            if size > 0x7F:
                size, position = _longer(data, size, position)
            begins.append(position)
            sizes.append(size >> 1)
            position += size >> 1
    except IndexError:
        del begins[len(sizes) :]
    return begins, sizes


def _longer(data: bytes, first: int, position: int) -> tuple[int, int]:
    value, shift = first & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 35:
            raise IndexError


def read_fields(buffer: Any, records: Places) -> Fields:
    """The fields of the records at these places."""
    parts = [
        _read_fields(buffer, records.begin[at : at + _AT_A_TIME], records.end[at : at + _AT_A_TIME])
        for at in range(0, max(len(records.begin), 1), _AT_A_TIME)
    ]
    return Fields(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _read_fields(buffer: Any, begin: Any, end: Any) -> Fields:
    timestamp_delta, position = varint(buffer, begin + 1)  # behind the attributes, which mean nothing
    offset_delta, position = varint(buffer, position)
    key_length, key_start = varint(buffer, position)
    np.clip(key_length, -2, _MOST, out=key_length)
    value_length, value_start = varint(buffer, key_start + np.maximum(key_length, 0))
    np.clip(value_length, -2, _MOST, out=value_length)
    headers, position = varint(buffer, value_start + np.maximum(value_length, 0))
    is_bad = (key_length < -1) | (value_length < -1) | (position > end) | (headers < 0) | ((headers == 0) & (position != end))
    return Fields(timestamp_delta, offset_delta, key_start, key_length, value_start, value_length, is_bad)


def varint(buffer: Any, position: Any) -> tuple[Any, Any]:
    """The zigzag numbers at these places, and the places behind them. Behind the buffer's end its last byte repeats."""
    byte = buffer.take(position, mode="clip")
    value = (byte & 0x7F).astype(np.uint64)
    behind = position + 1
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while more.size and shift < 70:
        byte = buffer.take(behind[more], mode="clip")
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        behind[more] += 1
        more = more[byte > 0x7F]
        shift += 7
    signed = (value >> np.uint64(1)).view(np.int64)
    signed ^= -(value & np.uint64(1)).view(np.int64)
    return signed, behind
