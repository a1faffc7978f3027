"""Questions about one partition's batches that both topic stores answer the same way."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from kgctl.serde.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatchError,
    UnsupportedCompressionError,
    check_batch,
)

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 64 * 1024

LEADER_EPOCH = 0
"""Nobody else ever leads a partition here."""


class UnpackedTooLargeError(ValueError):
    """A small batch that unpacks to more than `MAX_UNPACKED_BYTES`."""


def checked_batch(batch: bytes) -> BatchHeader:
    """The header of a batch that may be appended. Raises `kgctl.serde.record_batch.CorruptBatchError`."""
    header = check_batch(batch)
    if header.record_count == 0:
        raise CorruptBatchError("a record batch without records")
    if header.last_offset_delta != header.record_count - 1:
        raise CorruptBatchError("a record batch whose offsets have gaps")
    return header


def check_records(batch: bytes, header: BatchHeader) -> None:
    """See that the batch holds the records that it says, whole; memory and time are bounded, whatever it unpacks to.

    Raises `kgctl.serde.record_batch.CorruptBatchError` and `UnpackedTooLargeError`. Codecs that kgctl does not have are let by.
    """
    try:
        records = _Records(_unpacked(batch, header))
    except UnsupportedCompressionError:
        return
    for _ in range(header.record_count):
        records.next()
    if not records.is_at_end():
        raise CorruptBatchError(f"bytes after the {header.record_count} records of a batch")


def first_at_or_after(batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record of the batch at or after that time and at or after ``start_offset``.

    Records under a codec that kgctl does not have cannot be told apart: the first of them stands for all.
    """
    if header.max_timestamp_ms < timestamp_ms:
        return None
    try:
        records = _Records(_unpacked(batch, header))
        for _ in range(header.record_count):
            time_delta, offset_delta = records.next()
            time = header.max_timestamp_ms if header.is_log_append_time else header.base_timestamp_ms + time_delta
            if time >= timestamp_ms and header.base_offset + offset_delta >= start_offset:
                return header.base_offset + offset_delta, time
    except (UnsupportedCompressionError, UnpackedTooLargeError, CorruptBatchError):
        return max(header.base_offset, start_offset), header.max_timestamp_ms
    return None


def _unpacked(batch: bytes, header: BatchHeader) -> Iterator[bytes]:
    """The records' bytes, piece by piece."""
    if header.compression not in ("none", "gzip"):
        raise UnsupportedCompressionError(f"records compressed with {header.compression} cannot be read")
    raw = batch[HEADER_BYTES : header.size_bytes]
    return iter((raw,)) if header.compression == "none" else _gunzipped(raw)


def _gunzipped(raw: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj(wbits=31)
    total, left = 0, raw
    try:
        while not stream.eof:
            piece = stream.decompress(left, _PIECE_BYTES)
            left = stream.unconsumed_tail
            total += len(piece)
            if total > MAX_UNPACKED_BYTES:
                raise UnpackedTooLargeError(f"a batch of {len(raw)} bytes unpacks to more than {MAX_UNPACKED_BYTES}")
            if not piece and not left:
                break
            yield piece
    except zlib.error as error:
        raise CorruptBatchError(f"records that cannot be unpacked: {error}") from None
    if not stream.eof:
        raise CorruptBatchError("records whose compression is cut off")


class _Records:
    """Steps over records without keeping them. `CorruptBatchError` where one is not whole."""

    __slots__ = ("_data", "_passed", "_pieces", "_position")

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._data = b""
        self._passed = 0
        self._position = 0

    def next(self) -> tuple[int, int]:
        """(timestamp delta, offset delta) of the next record. Kafka: DefaultRecord#readFrom."""
        size = self._varint()
        if size < 0:
            raise CorruptBatchError(f"a record of {size} bytes")
        end = size + self._spent()
        self._skip(1)
        time_delta, offset_delta = self._varint(), self._varint()
        self._skip(max(self._varint(), 0))
        self._skip(max(self._varint(), 0))
        headers = self._varint()
        if not 0 <= headers <= size:
            raise CorruptBatchError(f"a record of {size} bytes with {headers} headers")
        for _ in range(headers):
            self._skip(self._varint())
            self._skip(max(self._varint(), 0))
        if self._spent() != end:
            raise CorruptBatchError("a record that is longer or shorter than it says")
        return time_delta, offset_delta

    def is_at_end(self) -> bool:
        """Whether nothing follows."""
        return self._position >= len(self._data) and not self._more()

    def _varint(self) -> int:
        value = shift = 0
        while True:
            if self._position >= len(self._data) and not self._more():
                raise CorruptBatchError("a record that is cut off")
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise CorruptBatchError("a number that does not end")

    def _skip(self, size: int) -> None:
        if size < 0:
            raise CorruptBatchError(f"a field of {size} bytes")
        self._position += size
        while self._position > len(self._data):
            if not self._more():
                raise CorruptBatchError("a record that is cut off")

    def _more(self) -> bool:
        """Take the next piece in place of what was passed."""
        piece = next(self._pieces, b"")
        self._passed += len(self._data)
        self._position -= len(self._data)
        self._data = piece
        return bool(piece)

    def _spent(self) -> int:
        return self._passed + self._position
