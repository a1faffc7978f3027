"""Record batches, version 2: Kafka's unit of storage and of Produce and Fetch.

A batch that came over the wire is carried as opaque bytes; only its header is read, and its base offset and leader epoch are
overwritten, which its checksum does not cover (`place`). What kgctl writes itself, ``__consumer_offsets``, is built here
(`build_batch`, `build_marker`), uncompressed. Records are read from uncompressed and gzip batches; the other codecs raise
`UnsupportedCompressionError`.

Kafka: clients/src/main/java/org/apache/kafka/common/record, ``DefaultRecordBatch``, ``DefaultRecord``, ``EndTransactionMarker``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.values import frozen_in_order
from kgctl.serde.crc32c import crc32c

NO_TIMESTAMP_MS = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
HEADER_BYTES = 61
_LENGTH_AND_BASE_BYTES = 12
_CRC_STARTS = 17
_ATTRIBUTES_START = 21
_MAGIC = 2
_MAX_PAYLOAD_BYTES = 1 << 28

_HEADER = Struct(">qiibIhiqqqhii")
_PLACE = Struct(">qi")
_AFTER_CRC = Struct(">hiqqqhii")
_BEFORE_CRC = Struct(">qiibI")
_MARKER_KEY = Struct(">hh")
_MARKER_VALUE = Struct(">hi")

_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40
_GZIP = 1
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class CorruptBatchError(ValueError):
    """These bytes are no record batch: too short, a wrong length or checksum, or an older format. Kafka: CORRUPT_MESSAGE."""


class NegativeCountError(CorruptBatchError):
    """A batch whose checksum is right says that it has fewer than no records."""


class UnsupportedCompressionError(ValueError):
    """The batch is compressed with a codec that kgctl does not have (snappy, lz4, zstd); its records cannot be seen."""


@frozen_in_order
class BatchHeader:
    """The 61 bytes before the records. ``batch_length`` does not count the first 12 of them; `size_bytes` is the whole batch."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Return the size of the whole batch, header included."""
        return self.batch_length + _LENGTH_AND_BASE_BYTES

    @property
    def last_offset(self) -> int:
        """The offset of the last record that the batch was written with."""
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> str:
        """``none``, ``gzip``, ``snappy``, ``lz4`` or ``zstd``."""
        code = self.attributes & _COMPRESSION_MASK
        return CODECS[code] if code < len(CODECS) else f"codec {code}"

    @property
    def is_transactional(self) -> bool:
        """Whether a transaction marker decides about these records."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether this holds a marker and no record of a user."""
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and a marker of it may go (KIP-534), once a log cleaner has said so."""
        return self.base_timestamp_ms if self.attributes & _DELETE_HORIZON else None

    @property
    def is_log_append_time(self) -> bool:
        """Whether each record has the batch's ``max_timestamp_ms``."""
        return bool(self.attributes & _LOG_APPEND_TIME)


class Record(NamedTuple):
    """One record of a batch; ``headers`` as the wire has them."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def parse_header(data: bytes, position: int = 0) -> BatchHeader:
    """The header at ``position``; the whole batch must be there. Raises `CorruptBatchError`; the checksum is not looked at."""
    try:
        header = BatchHeader(*_HEADER.unpack_from(data, position))
    except struct_error:
        raise CorruptBatchError(f"{len(data) - position} bytes are too few for a record batch") from None
    if header.magic != _MAGIC:
        raise CorruptBatchError(f"a record batch of format {header.magic}; only format {_MAGIC} is supported")
    if header.size_bytes < HEADER_BYTES or position + header.size_bytes > len(data):
        raise CorruptBatchError(f"a record batch of {header.size_bytes} bytes, {len(data) - position} are there")
    return header


def check_batch(data: bytes) -> BatchHeader:
    """The header of ``data``, which must be exactly one whole batch with the right checksum. Raises `CorruptBatchError`."""
    header = parse_header(data)
    if header.size_bytes != len(data):
        raise CorruptBatchError(f"{len(data) - header.size_bytes} bytes after the record batch")
    if crc32c(data[_ATTRIBUTES_START:]) != header.crc:
        raise CorruptBatchError("the checksum of the record batch is wrong")
    if header.last_offset_delta < 0 or header.record_count < 0:
        raise NegativeCountError("a record batch with a negative count")
    return header


def place(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch at its place in a log: base offset and leader epoch set, all else, checksum included, unchanged."""
    return base_offset.to_bytes(8, "big", signed=True) + data[8:12] + leader_epoch.to_bytes(4, "big", signed=True) + data[16:]


def stamped(data: bytes, now_ms: int) -> bytes:
    """The batch with the log's own time instead of its records'. Kafka: DefaultRecordBatch#setMaxTimestamp."""
    header = parse_header(data)
    rest = bytearray(data[_ATTRIBUTES_START:])
    rest[:2] = (header.attributes | _LOG_APPEND_TIME).to_bytes(2, "big", signed=True)
    rest[14:22] = now_ms.to_bytes(8, "big", signed=True)
    return data[:_CRC_STARTS] + crc32c(bytes(rest)).to_bytes(4, "big") + bytes(rest)


def iterate_batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of one batch after the other. Raises `CorruptBatchError` at the first that is not whole."""
    position = 0
    while position < len(data):
        header = parse_header(data, position)
        yield position, header
        position += header.size_bytes


def iterate_records(data: bytes, position: int = 0) -> Iterator[Record]:
    """The records of the batch at ``position``, a marker's own included.

    Raises `CorruptBatchError`, or `UnsupportedCompressionError` for snappy, lz4 and zstd.
    """
    header = parse_header(data, position)
    payload = _payload(data, position, header)
    walker = _Walker(payload)
    try:
        for _ in range(header.record_count):
            yield walker.record(header)
    except (IndexError, UnicodeDecodeError):
        raise CorruptBatchError(f"a record that is cut off in the batch at offset {header.base_offset}") from None


def parse_marker(data: bytes, position: int = 0) -> TransactionMarker | None:
    """The transaction marker that a control batch holds; None for a control batch of another kind (a leader change)."""
    header = parse_header(data, position)
    record = next(iterate_records(data, position), None)
    if record is None or record.key is None or len(record.key) < _MARKER_KEY.size:
        raise CorruptBatchError(f"a control batch without a marker at offset {header.base_offset}")
    kind = _MARKER_KEY.unpack_from(record.key)[1]
    if kind not in (0, 1):
        return None
    if record.value is None or len(record.value) < _MARKER_VALUE.size:
        raise CorruptBatchError(f"a marker without its epoch at offset {header.base_offset}")
    epoch = _MARKER_VALUE.unpack_from(record.value)[1]
    return TransactionMarker(header.producer_id, header.producer_epoch, kind == 1, epoch)


def build_batch(
    records: Sequence[Record],
    *,
    leader_epoch: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """One uncompressed batch of these records, at least one; their offsets ascend (gaps are allowed, as after compaction)."""
    base = records[0]
    attributes = (_TRANSACTIONAL if is_transactional else 0) | (_CONTROL if is_control else 0)
    newest_ms = max(record.timestamp_ms for record in records)
    last_delta = records[-1].offset - base.offset
    return _assembled(base, records, leader_epoch, (attributes, last_delta, newest_ms), (producer_id, producer_epoch, -1))


def rebuilt(header: BatchHeader, records: Sequence[Record], delete_horizon_ms: int | None) -> bytes:
    """Return the batch with these of its records, at least one, uncompressed; its producer and range of offsets stay.

    Kafka: MemoryRecords#buildRetainedRecordsInto.
    """
    base_ms = records[0].timestamp_ms if delete_horizon_ms is None else delete_horizon_ms
    attributes = header.attributes & ~(_COMPRESSION_MASK | _DELETE_HORIZON) | (
        0 if delete_horizon_ms is None else _DELETE_HORIZON
    )
    newest_ms = max(record.timestamp_ms for record in records)
    producer = (header.producer_id, header.producer_epoch, header.base_sequence)
    base = Record(header.base_offset, base_ms, None, None)
    return _assembled(base, records, header.leader_epoch, (attributes, header.last_offset_delta, newest_ms), producer)


def _assembled(
    base: Record, records: Sequence[Record], leader_epoch: int, range_: tuple[int, int, int], producer: tuple[int, int, int]
) -> bytes:
    """``range_``: attributes, last offset delta and newest time; ``producer``: id, epoch and base sequence."""
    body = bytearray()
    for record in records:
        _append_record(body, record, base)
    attributes, last_delta, newest_ms = range_
    rest = _AFTER_CRC.pack(attributes, last_delta, base.timestamp_ms, newest_ms, *producer, len(records)) + body
    length = _CRC_STARTS + 4 - _LENGTH_AND_BASE_BYTES + len(rest)
    return _BEFORE_CRC.pack(base.offset, length, leader_epoch, _MAGIC, crc32c(rest)) + rest


def build_marker(marker: TransactionMarker, offset: int, timestamp_ms: int, *, leader_epoch: int = 0) -> bytes:
    """Return the control batch that ends a producer's transaction."""
    key = _MARKER_KEY.pack(0, 1 if marker.committed else 0)
    record = Record(offset, timestamp_ms, key, _MARKER_VALUE.pack(0, marker.coordinator_epoch))
    return build_batch(
        [record],
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def _payload(data: bytes, position: int, header: BatchHeader) -> bytes:
    raw = data[position + HEADER_BYTES : position + header.size_bytes]
    codec = header.attributes & _COMPRESSION_MASK
    if codec == 0:
        return raw
    if codec != _GZIP:
        raise UnsupportedCompressionError(f"records compressed with {header.compression} cannot be read")
    import zlib

    stream = zlib.decompressobj(wbits=31)
    try:
        payload = stream.decompress(raw, _MAX_PAYLOAD_BYTES)
    except zlib.error as error:
        raise CorruptBatchError(f"gzip data of the batch at offset {header.base_offset}: {error}") from None
    if stream.unconsumed_tail:
        raise CorruptBatchError(f"more than {_MAX_PAYLOAD_BYTES} bytes in the batch at offset {header.base_offset}")
    return payload


class _Walker:
    """Steps through the records of one batch. IndexError where they end too early."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def record(self, header: BatchHeader) -> Record:
        size = self._varint()
        end = self.position + size
        self.position += 1  # attributes, unused
        timestamp = header.base_timestamp_ms + self._varint()
        offset = header.base_offset + self._varint()
        key, value = self._bytes(), self._bytes()
        count = self._varint()
        if count < 0 or count > len(self.data) - self.position:
            raise IndexError
        headers = tuple(self._header() for _ in range(count))
        if size < 0 or self.position != end:
            raise IndexError
        return Record(offset, header.max_timestamp_ms if header.is_log_append_time else timestamp, key, value, headers)

    def _header(self) -> tuple[str, bytes | None]:
        return (self._bytes() or b"").decode(), self._bytes()

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise IndexError

    def _bytes(self) -> bytes | None:
        size = self._varint()
        if size < 0:
            return None
        end = self.position + size
        if end > len(self.data):
            raise IndexError
        taken = self.data[self.position : end]
        self.position = end
        return taken


def _append_record(out: bytearray, record: Record, base: Record) -> None:
    body = bytearray(1)  # attributes, unused
    _append_varint(body, record.timestamp_ms - base.timestamp_ms)
    _append_varint(body, record.offset - base.offset)
    _append_bytes(body, record.key)
    _append_bytes(body, record.value)
    _append_varint(body, len(record.headers))
    for name, value in record.headers:
        _append_bytes(body, name.encode())
        _append_bytes(body, value)
    _append_varint(out, len(body))
    out += body


def record_size(key_bytes: int, value_bytes: int, offset_delta: int) -> int:
    """How many bytes a record takes in an uncompressed batch that has its timestamp, without headers."""
    lengths = _varint_size(offset_delta) + _varint_size(key_bytes) + _varint_size(value_bytes)
    body = 3 + lengths + key_bytes + value_bytes  # attributes, timestamp delta, header count: a byte each
    return _varint_size(body) + body


def _varint_size(value: int) -> int:
    return max(1, ((value << 1).bit_length() + 6) // 7)


def _append_bytes(out: bytearray, value: bytes | None) -> None:
    _append_varint(out, -1 if value is None else len(value))
    if value is not None:
        out += value


def _append_varint(out: bytearray, value: int) -> None:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    while zigzag > 0x7F:
        out.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    out.append(zigzag)
