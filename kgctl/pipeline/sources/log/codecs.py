"""Kafka's four codecs, each in the framing that Kafka gives it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import pyarrow as pa

MOST_BYTES = 1 << 28
"""More than this in one batch is taken for damage: Kafka's own limit for a batch is 1 MiB unless it is raised."""

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class CodecError(ValueError):
    """These bytes are not what their codec makes."""


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
