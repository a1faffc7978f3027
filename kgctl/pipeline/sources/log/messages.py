"""Messages of the formats 0 and 1, which brokers before 0.11 wrote; one at a time, for there are few of them left.

::

    offset int64 | size int32 | crc int32 | magic int8 | attributes int8 | timestamp int64 (format 1) | key bytes | value bytes

A compressed message's value holds messages. In format 1 theirs are offsets relative to the last one's, which is the outer one's.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from kgctl.pipeline.sources.log.codecs import CodecError, unpack

NO_TIMESTAMP_MS = -1
_HEAD = Struct(">qiIBB")
_CRC_STARTS = 16
_LENGTH_AND_OFFSET = 12
_TIMESTAMP = Struct(">q")
_SIZE = Struct(">i")
_CODEC = 0x07
_LOG_APPEND_TIME = 0x08
_KNOWN_ATTRIBUTES = 0x10
_LZ4 = 3


@dataclass(frozen=True, slots=True)
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
    if magic > 1 or attributes >= _KNOWN_ATTRIBUTES or offset < 0 or size < 14 or end > len(view):
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
    codec = message.attributes & _CODEC
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
        if message is None or message.attributes & _CODEC:
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
