"""Finds the record batches in a stretch of log, checks each checksum, unpacks them, and goes on behind what is no batch.

What cannot be read is a `Damage` and never takes a good batch with it. The formats 0 and 1 of before Kafka 0.11 are read, too.
Kafka: clients/src/main/java/org/apache/kafka/common/record.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.store.tables import DAMAGED, DAMAGED_DATA_BYTES, rows_of
from kgctl.serde.crc32c import crc32c
from kgctl.serde.record_batch import HEADER_BYTES


@frozen_in_order
class Damage:
    """``size`` bytes at byte ``position``; ``base_offset`` and ``records`` are what their header says, where one can be read."""

    position: int
    size: int
    reason: str
    base_offset: int | None = None
    records: int | None = None
    data: bytes = field(default=b"", repr=False)

    def describe(self) -> str:
        """Return the damage as one line, without the source's name."""
        count = "" if self.records is None else f", {self.records} records from offset {self.base_offset}"
        return f"at byte {self.position}: {self.reason} ({self.size} bytes{count})"


@frozen_in_order
class LogReport:
    """What there is to say of a stretch of log besides its records. ``error``: the code and message that ended its reading;
    ``span``: the first offset that was asked for, and the one behind the last."""

    batches: int = 0
    torn: int = 0
    damaged: Sequence[Damage] = ()
    error: tuple[str, str] | None = None
    span: tuple[int, int] | None = None

    def text(self) -> str:
        """As JSON, the bytes of what is damaged in base64."""
        damaged = [{**asdict(each), "data": b64encode(each.data).decode()} for each in self.damaged]
        said = {"batches": self.batches, "torn": self.torn, "damaged": damaged, "error": self.error, "span": self.span}
        return json.dumps(said)

    @classmethod
    def parse(cls, text: str) -> LogReport:
        """Read what `text` has written."""
        said = json.loads(text)
        damaged = [Damage(**{**each, "data": b64decode(each["data"])}) for each in said["damaged"]]
        error, span = (said[name] and tuple(said[name]) for name in ("error", "span"))
        return cls(said["batches"], said["torn"], damaged, error, span)


def cut(data: memoryview | bytes) -> bytes:
    """Return as much of the bytes as is kept."""
    return bytes(data[:DAMAGED_DATA_BYTES])


def damaged_table(source: str, partition: int, damaged: Sequence[Damage]) -> Any:
    """Rows of `kgctl.pipeline.store.tables.DAMAGED`."""
    columns: dict[str, list[Any]] = {
        name: [getattr(each, name) for each in damaged]
        for name in ("position", "size", "base_offset", "records", "reason", "data")
    }
    size = len(damaged)
    return rows_of({"source": [source] * size, "partition": [partition] * size, **columns}, DAMAGED)


MOST_BYTES = 1 << 28
"""More than this in one batch is taken for damage: Kafka's own limit for a batch is 1 MiB unless it is raised."""

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class CodecError(ValueError):
    """Raised for bytes that their codec cannot decompress."""


def unpack(codec: int, data: memoryview) -> bytes:
    """The records of a batch, without compression. Raises `CodecError`."""
    unpacker = _UNPACKERS.get(codec)
    if unpacker is None:
        raise CodecError(f"compressed with codec {codec}, which is none of Kafka's")
    try:
        found = unpacker(data)
    except (zlib.error, pa.ArrowException, OSError, IndexError) as error:
        raise CodecError(f"{NAMES[codec]} data that cannot be read: {' '.join(str(error).split())}") from None
    if len(found) > MOST_BYTES:
        raise CodecError(f"more than {MOST_BYTES} bytes in one batch")
    return found


def _gzip(data: memoryview) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    found = stream.decompress(data, MOST_BYTES + 1)
    if not stream.eof and len(found) <= MOST_BYTES:
        raise zlib.error("it is cut off")
    return found


def _snappy(data: memoryview) -> bytes:
    """snappy-java's blocks, as Kafka's own clients write them, or one plain block, as others do."""
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(data)
    blocks, position, total = [], _XERIAL_HEADER_BYTES, 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or position + size > len(data):
            raise IndexError("a block that is cut off")
        blocks.append(_snappy_block(data[position : position + size]))
        position, total = position + size, total + len(blocks[-1])
        if total > MOST_BYTES:
            break
    return b"".join(blocks)


def _snappy_block(data: memoryview) -> bytes:
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise IndexError("no length")
    if size > MOST_BYTES:
        raise IndexError(f"more than {MOST_BYTES} bytes in one block")
    return bytes(pa.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True))


def _frames(name: str) -> Callable[[memoryview], bytes]:
    def read(data: memoryview) -> bytes:
        with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
            return bytes(stream.read(MOST_BYTES + 1))

    return read


_UNPACKERS: Mapping[int, Callable[[memoryview], bytes]] = {1: _gzip, 2: _snappy, 3: _frames("lz4"), 4: _frames("zstd")}


NO_TIMESTAMP_MS = -1
_HEAD = Struct(">qiIBB")
_CRC_STARTS = 16
_LENGTH_AND_OFFSET = 12
_TIMESTAMP = Struct(">q")
_SIZE = Struct(">i")
_MESSAGE_CODEC = 0x07
_LOG_APPEND_TIME = 0x08
_KNOWN_MESSAGE_ATTRIBUTES = 0x10
_LZ4 = 3


@frozen_in_order
class Message:
    """One message of a log, at ``start`` to ``end``; ``magic`` 0 or 1."""

    start: int
    end: int
    magic: int
    attributes: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None = field(repr=False)


def message_at(view: memoryview | bytes, position: int) -> Message | None:
    """The message of format 0 or 1 there, checksum and all; None where there is none."""
    if position + _HEAD.size > len(view):
        return None
    offset, size, crc, magic, attributes = _HEAD.unpack_from(view, position)
    end = position + _LENGTH_AND_OFFSET + size
    if magic > 1 or attributes >= _KNOWN_MESSAGE_ATTRIBUTES or offset < 0 or size < 14 or end > len(view):
        return None
    if zlib.crc32(view[position + _CRC_STARTS : end]) != crc:
        return None
    at, timestamp_ms = position + _HEAD.size, NO_TIMESTAMP_MS
    if magic == 1:
        (timestamp_ms,), at = _TIMESTAMP.unpack_from(view, at), at + 8
    key, at = _bytes(view, at, end)
    value, at = _bytes(view, at, end)
    return Message(position, end, magic, attributes, offset, timestamp_ms, key, value) if at == end else None


def expanded(message: Message) -> list[Message]:
    """The messages in a compressed one, in order; the message itself where it is not compressed. Raises `CodecError`."""
    codec = message.attributes & _MESSAGE_CODEC
    if codec == 0:
        return [message]
    if message.value is None:
        raise CodecError("a compressed message without content")
    if codec == _LZ4 and message.magic == 0:
        raise CodecError("lz4 in a message of format 0, whose framing is not that of lz4")
    data = unpack(codec, memoryview(message.value))
    inner = list(_inner(data))
    if message.magic == 0 or not inner:
        return inner
    shift = message.offset - inner[-1].offset
    own_time = not message.attributes & _LOG_APPEND_TIME
    return [
        Message(
            message.start,
            message.end,
            each.magic,
            each.attributes,
            each.offset + shift,
            each.timestamp_ms if own_time else message.timestamp_ms,
            each.key,
            each.value,
        )
        for each in inner
    ]


def _inner(data: bytes) -> Iterator[Message]:
    position = 0
    while position < len(data):
        message = message_at(data, position)
        if message is None or message.attributes & _MESSAGE_CODEC:
            raise CodecError(f"no message at byte {position} of a compressed one")
        yield message
        position = message.end


def _bytes(view: memoryview | bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """A field with its length before it, and where it ends; behind ``end`` where it is cut off."""
    if at + _SIZE.size > end:
        return None, end + 1
    (size,) = _SIZE.unpack_from(view, at)
    at += _SIZE.size
    if size < 0:
        return None, at
    return (bytes(view[at : at + size]), at + size) if at + size <= end else (None, end + 1)


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
class FoundBatches:
    """``starts`` and ``ends`` of the batches with a right checksum, in order; what else was there.

    ``torn`` is how many bytes at the end begin a batch that is not all there.
    """

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    torn: int = 0


def find_batches(view: memoryview) -> FoundBatches:
    """All batches of format 2, messages of the formats 0 and 1, damage, and the torn end."""
    found = FoundBatches()
    starts, ends, size = found.starts, found.ends, len(view)
    position = 0
    while position + HEADER_BYTES <= size:
        length, magic, crc = _LENGTH_TO_CRC(view, position + _LENGTH_AT)
        end = position + _LENGTH_AND_BASE + length
        is_whole = magic == _MAGIC and length >= _SHORTEST and end <= size
        if is_whole and crc32c(view[position + _ATTRIBUTES_AT : end].tobytes()) == crc:
            starts.append(position)
            ends.append(end)
            position = end
        else:
            position = _something_else(view, position, found)
    while position < size:
        position = _something_else(view, position, found)
    return found


@frozen_in_order
class Batches:
    """Batches in ``buffer`` (uint8): one entry each in ``starts``, ``ends`` and ``headers`` (of `HEADER`)."""

    buffer: Any
    starts: Any
    ends: Any
    headers: Any

    @classmethod
    def of(cls, buffer: Any, found: FoundBatches) -> Batches:
        """Return the batches that were found, with their headers."""
        starts = np.array(found.starts, np.int64)
        everywhere: Any = np.ndarray((len(buffer) - HEADER_BYTES + 1,), HEADER, buffer, strides=(1,))  # a header at each byte
        return cls(buffer, starts, np.array(found.ends, np.int64), everywhere[starts])

    def part(self, which: slice) -> Batches:
        """Return a slice of the batches."""
        return Batches(self.buffer, self.starts[which], self.ends[which], self.headers[which])

    @property
    def codecs(self) -> Any:
        """Return the number of each batch's codec; 0 is none."""
        return self.headers["attributes"] & _CODEC

    def payload(self, number: int) -> memoryview:
        """Return the bytes behind a batch's header."""
        return memoryview(self.buffer[int(self.starts[number]) + HEADER_BYTES : int(self.ends[number])])

    def damage(self, number: int, reason: str) -> Damage:
        """Return a batch as damage."""
        start, end = int(self.starts[number]), int(self.ends[number])
        base, count = int(self.headers["base_offset"][number]), int(self.headers["count"][number])
        return Damage(start, end - start, reason, base, max(count, 0), cut(self.buffer[start:end].data))


def _something_else(view: memoryview, position: int, found: FoundBatches) -> int:
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
    return bool(crc32c(view[position + _ATTRIBUTES_AT : position + _LENGTH_AND_BASE + length].tobytes()) == crc)


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
