"""Finds the record batches in a stretch of log, checks each checksum, and goes on behind what is no batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Any

import numpy as np
from crc32c import crc32c

from kgctl.pipeline.sources.log.damage import Damage, cut
from kgctl.pipeline.sources.log.messages import Message, message_at
from kgctl.serde.record_batch import HEADER_BYTES

HEADER: Any = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_LENGTH_TO_CRC = Struct(">i4xBI").unpack_from
_BASE_OFFSET = Struct(">q").unpack_from
_COUNT = Struct(">i").unpack_from
_LENGTH_AT = 8
_MAGIC_AT = 16
_ATTRIBUTES_AT = 21
_COUNT_AT = 57
_LENGTH_AND_BASE = 12
_SHORTEST = HEADER_BYTES - _LENGTH_AND_BASE
_SHORTEST_MESSAGE = 14
_MAGIC = 2
_LONGEST_BATCH = 1 << 30
_KNOWN_ATTRIBUTES = 0x80
_CODEC = 0x07
_FIRST_WINDOW = 1 << 16
_LARGEST_WINDOW = 1 << 22


@dataclass(slots=True)
class Found:
    """``starts`` and ``ends`` of the batches with a right checksum, in order; what else was there.

    ``torn`` is how many bytes at the end begin a batch that is not all there.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    torn: int = 0


def find_batches(view: memoryview) -> Found:
    """All batches of format 2, messages of the formats 0 and 1, damage, and the torn end."""
    found = Found()
    starts, ends, size = found.starts, found.ends, len(view)
    position = 0
    while position + HEADER_BYTES <= size:
        length, magic, crc = _LENGTH_TO_CRC(view, position + _LENGTH_AT)
        end = position + _LENGTH_AND_BASE + length
        is_whole = magic == _MAGIC and length >= _SHORTEST and end <= size
        if is_whole and crc32c(view[position + _ATTRIBUTES_AT : end]) == crc:
            starts.append(position)
            ends.append(end)
            position = end
        else:
            position = _something_else(view, position, found)
    while position < size:
        position = _something_else(view, position, found)
    return found


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches in ``buffer`` (uint8): one entry each in ``starts``, ``ends`` and ``headers`` (of `HEADER`)."""

    buffer: Any
    starts: Any
    ends: Any
    headers: Any

    @classmethod
    def of(cls, buffer: Any, found: Found) -> Batches:
        """Those that were found, with their headers."""
        starts = np.array(found.starts, np.int64)
        everywhere: Any = np.ndarray((len(buffer) - HEADER_BYTES + 1,), HEADER, buffer, strides=(1,))  # a header at each byte
        return cls(buffer, starts, np.array(found.ends, np.int64), everywhere[starts])

    def part(self, which: slice) -> Batches:
        """Some of them."""
        return Batches(self.buffer, self.starts[which], self.ends[which], self.headers[which])

    @property
    def codecs(self) -> Any:
        """The number of each one's codec; 0 is none."""
        return self.headers["attributes"] & _CODEC

    def payload(self, number: int) -> memoryview:
        """The bytes behind the header."""
        return memoryview(self.buffer[int(self.starts[number]) + HEADER_BYTES : int(self.ends[number])])

    def damage(self, number: int, reason: str) -> Damage:
        """One of them as damage."""
        start, end = int(self.starts[number]), int(self.ends[number])
        base, count = int(self.headers["base_offset"][number]), int(self.headers["count"][number])
        return Damage(start, end - start, reason, base, max(count, 0), cut(self.buffer[start:end].data))


def _something_else(view: memoryview, position: int, found: Found) -> int:
    """An old message, the unwritten end of a file, a batch that is cut off, or damage; where to go on."""
    message = message_at(view, position)
    if message is not None:
        found.messages.append(message)
        return message.end
    size = len(view)
    following = min(_next_batch(view, position + 1), _next_message(view, position))
    if following < size:
        found.damaged += _damages(view, position, following)
    elif _is_blank(view, position):
        pass
    elif _is_torn(view, position):
        found.torn = size - position
    else:
        found.damaged += _damages(view, position, size)
    return following


def _next_batch(view: memoryview, start: int) -> int:
    """Where the next batch with a right checksum begins; the end where there is none."""
    buffer = np.frombuffer(view, np.uint8)
    size, window = len(view), _FIRST_WINDOW
    last = size - HEADER_BYTES
    while start <= last:
        stop = min(last + 1, start + window)
        candidates = start + np.flatnonzero(buffer[start + _MAGIC_AT : stop + _MAGIC_AT] == _MAGIC)
        for candidate in candidates[_is_plausible(buffer, candidates)]:
            if _is_batch(view, int(candidate)):
                return int(candidate)
        start, window = stop, min(window * 2, _LARGEST_WINDOW)
    return size


def _next_message(view: memoryview, position: int) -> int:
    """Where a message of an old format follows a damaged one, by the length of that; the end where none does."""
    if position + HEADER_BYTES <= len(view):
        length, magic, _ = _LENGTH_TO_CRC(view, position + _LENGTH_AT)
        end: int = position + _LENGTH_AND_BASE + length
        if magic < _MAGIC and position < end and message_at(view, end) is not None:
            return end
    return len(view)


def _is_plausible(buffer: Any, starts: Any) -> Any:
    """Which of these places may begin a batch: offset, attributes and length are of this world."""
    lengths = sum(buffer[starts + _LENGTH_AT + i].astype(np.int64) << (24 - 8 * i) for i in range(4))
    fits = (lengths >= _SHORTEST) & (starts + _LENGTH_AND_BASE + lengths <= len(buffer))
    known = (buffer[starts + _ATTRIBUTES_AT] == 0) & (buffer[starts + _ATTRIBUTES_AT + 1] < _KNOWN_ATTRIBUTES)
    return fits & known & (buffer[starts] < 0x80)


def _is_batch(view: memoryview, position: int) -> bool:
    length, _, crc = _LENGTH_TO_CRC(view, position + _LENGTH_AT)
    return bool(crc32c(view[position + _ATTRIBUTES_AT : position + _LENGTH_AND_BASE + length]) == crc)


def _is_blank(view: memoryview, position: int) -> bool:
    """Whether nothing but zeros follows: a file with room that was not written yet (``log.preallocate``)."""
    return not np.frombuffer(view, np.uint8)[position:].any()


def _is_torn(view: memoryview, position: int) -> bool:
    """Whether a batch begins here and its end is missing, and not something else."""
    if len(view) - position < HEADER_BYTES:
        return len(view) - position <= _MAGIC_AT or view[position + _MAGIC_AT] <= _MAGIC
    length, magic, _ = _LENGTH_TO_CRC(view, position + _LENGTH_AT)
    return magic <= _MAGIC and len(view) - position - _LENGTH_AND_BASE < length < _LONGEST_BATCH and view[position] < 0x80


def _damages(view: memoryview, start: int, end: int) -> list[Damage]:
    """The stretch as batches, where their lengths lead from one to the next; the rest of it in one piece."""
    found = []
    while start < end:
        length, magic = 0, -1
        if end - start >= HEADER_BYTES:
            length, magic, _ = _LENGTH_TO_CRC(view, start + _LENGTH_AT)
        stop = start + _LENGTH_AND_BASE + length
        if magic < 0 or length < (_SHORTEST if magic >= _MAGIC else _SHORTEST_MESSAGE) or stop > end:
            found.append(Damage(start, end - start, "no record batch", data=cut(view[start:end])))
            return found
        found.append(_damaged_batch(view, start, stop, magic))
        start = stop
    return found


def _damaged_batch(view: memoryview, start: int, stop: int, magic: int) -> Damage:
    (base_offset,), (count,) = _BASE_OFFSET(view, start), _COUNT(view, start + _COUNT_AT)
    if magic > _MAGIC:
        reason = f"a record batch of format {magic}; formats up to {_MAGIC} can be read"
        return Damage(start, stop - start, reason, base_offset, data=cut(view[start:stop]))
    if magic < _MAGIC:
        return Damage(start, stop - start, f"a damaged message of format {magic}", base_offset, data=cut(view[start:stop]))
    return Damage(start, stop - start, "wrong checksum", base_offset, count if count >= 0 else None, cut(view[start:stop]))
