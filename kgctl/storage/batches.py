"""Record batches: what a topic's partition takes in and looks up, and ``__consumer_offsets`` in Kafka's own format.

The record log is shown to others as batches, and segment files are brought in. Those are copied from a broker's log directory: a
partition's folder is named ``__consumer_offsets-12`` and holds ``00000000000000000000.log`` and so on. Offsets stay as they are,
so the partition count of the data folder must be the one of the cluster. Kafka's partitions have no common order; theirs is put
together from the batches' timestamps, which only matters to transactions that span partitions.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

from kgctl.errors import NotFoundError, RefusedError, StorageError, UsageError
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.values import frozen_in_order, partition_for
from kgctl.serde.coordinator_records import RecordDecodeError, decode_key, older_value
from kgctl.serde.record_batch import (
    CODECS,
    HEADER_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP_MS,
    BatchHeader,
    CorruptBatchError,
    Record,
    UnsupportedCompressionError,
    build_batch,
    build_marker,
    check_batch,
    iterate_records,
    parse_marker,
)
from kgctl.storage.record_log import RecordLog, StoredRecord

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 64 * 1024
MAX_LONG = 2**63 - 1

LEADER_EPOCH = 0
"""Nobody else ever leads a partition here."""


class UnpackedTooLargeError(ValueError):
    """A small batch that unpacks to more than `MAX_UNPACKED_BYTES`."""


class NotUnpackedError(CorruptBatchError):
    """Records that were not compressed as their batch says, or are cut off."""


def checked_batch(batch: bytes) -> BatchHeader:
    """The header of a batch that may be appended. Raises `kgctl.serde.record_batch.CorruptBatchError`."""
    header = check_batch(batch)
    if header.record_count == 0:
        raise CorruptBatchError("a record batch without records")
    if header.last_offset_delta != header.record_count - 1:
        raise CorruptBatchError("a record batch whose offsets have gaps")
    return header


def check_records(
    batch: bytes, header: BatchHeader, earliest_ms: int = -MAX_LONG, latest_ms: int = MAX_LONG
) -> list[tuple[int, int]]:
    """See that the batch holds the records that it says, whole; memory and time are bounded, whatever it unpacks to.

    Returns the places and times of records that are not between these (those without a time are).
    Raises `kgctl.serde.record_batch.CorruptBatchError`
    (`NotUnpackedError`) and `UnpackedTooLargeError`. Codecs that kgctl does not have are let by.
    """
    try:
        records = _Records(_unpacked(batch, header))
    except UnsupportedCompressionError:
        if header.compression not in CODECS:
            raise NotUnpackedError(f"records of {header.compression}, which there is none of") from None
        return []
    base_ms = header.base_timestamp_ms
    found = [
        (place, time_ms)
        for place in range(header.record_count)
        if not earliest_ms <= (time_ms := base_ms + records.next()[0]) <= latest_ms and time_ms != NO_TIMESTAMP_MS
    ]
    if not records.is_at_end():
        raise CorruptBatchError(f"bytes after the {header.record_count} records of a batch")
    return found


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
    """Yield the records' bytes, piece by piece."""
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
        raise NotUnpackedError(f"records that cannot be unpacked: {error}") from None
    if not stream.eof:
        raise NotUnpackedError("records whose compression is cut off")


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
        """Return whether nothing follows."""
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


_RECORDS_IN_A_BATCH = 500
_BYTES_OF_A_RECORD = 16
"""Less than any record of the log takes in a batch."""


def read_batches(log: RecordLog, partition: int, offset: int, max_bytes: int, *, older_values: bool = False) -> bytes:
    """Record batches with the partition's records from ``offset`` on, at least one if there is any, then up to ``max_bytes``.

    Offsets that compaction has removed are gaps. Records of transactions are in transactional batches, markers in control
    batches. ``older_values`` writes commits as Kafka 4.0 did.
    """
    records: Iterable[StoredRecord] = log.read(partition, offset, max_bytes // _BYTES_OF_A_RECORD + 1)
    if older_values:
        records = (replace(record, value=older_value(record.key, record.value)) for record in records)
    found = bytearray()
    for batch in _runs(records):
        if found and len(found) + len(batch) > max_bytes:
            break
        found += batch
    return bytes(found)


def _runs(records: Iterable[StoredRecord]) -> Iterator[bytes]:
    for _, run in groupby(_numbered(records), key=lambda item: item[0]):
        yield _batch([record for _, record in run])


def _numbered(records: Iterable[StoredRecord]) -> Iterator[tuple[int, StoredRecord]]:
    """Each record with the number of the batch that it belongs to."""
    number = size = 0
    last: StoredRecord | None = None
    for record in records:
        size += 1
        if last is None or size > _RECORDS_IN_A_BATCH or _stands_apart(last, record):
            number, size = number + 1, 1
        last = record
        yield number, record


def _stands_apart(last: StoredRecord, record: StoredRecord) -> bool:
    if last.is_marker or record.is_marker:
        return True
    return (last.producer_id, last.producer_epoch) != (record.producer_id, record.producer_epoch)


def _batch(run: list[StoredRecord]) -> bytes:
    first = run[0]
    if first.commits is not None:
        marker = TransactionMarker(first.producer_id or 0, first.producer_epoch, first.commits, first.coordinator_epoch)
        return build_marker(marker, first.offset, first.timestamp_ms)
    records = [Record(record.offset, record.timestamp_ms, record.key, record.value) for record in run]
    if first.producer_id is None:
        return build_batch(records, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
    return build_batch(records, producer_id=first.producer_id, producer_epoch=first.producer_epoch, is_transactional=True)


_PARTITION_FOLDER = re.compile(r"__consumer_offsets-(\d+)")
_RECORDS_AT_A_TIME = 5_000


@frozen_in_order
class ImportSummary:
    """What an import brought in."""

    partitions: int
    records: int


def import_segments(source: Path, log: RecordLog) -> ImportSummary:
    """Append what is in ``source``, one partition's folder or a folder of such, to the log.

    A batch that is cut off at the end of a partition's last file is left out, as Kafka does when it recovers; the same
    anywhere else, a wrong checksum or an unknown format raises `kgctl.errors.StorageError` with file and position. Raises
    `NotFoundError` where there is no such folder, `UsageError` where the groups show another partition count, and
    `RefusedError` where a partition is not empty. Nothing is appended before everything has been read once and found good.
    """
    folders = partition_folders(source)
    for number in folders:
        if number >= log.partition_count:
            raise UsageError(f"{source}: partition {number}, but this data folder has {log.partition_count} partitions")
        if log.end_offset(number) > 0:
            raise RefusedError(f"partition {number} of this data folder has records already; import into a new folder")
    total = sum(1 for record in _merged(folders) if _belongs_here(source, record, log.partition_count))
    records = _merged(folders)
    while chunk := list(islice(records, _RECORDS_AT_A_TIME)):
        log.write(chunk)
    return ImportSummary(len(folders), total)


def partition_folders(source: Path) -> dict[int, Path]:
    """Partition -> its folder. Raises `kgctl.errors.NotFoundError` where there is none."""
    candidates = [source, *(sorted(source.iterdir()) if source.is_dir() else ())]
    found = {int(match[1]): path for path in candidates if path.is_dir() and (match := _PARTITION_FOLDER.fullmatch(path.name))}
    if not found:
        raise NotFoundError(f"{source}: no folder of a partition (__consumer_offsets-0 and so on)")
    return dict(sorted(found.items()))


def read_partition(folder: Path, partition: int) -> Iterator[StoredRecord]:
    """The records of one partition's segment files, in order."""
    files = sorted(folder.glob("*.log"))
    for file in files:
        data = file.read_bytes()
        for position, header in _batches(file, data, is_last=file == files[-1]):
            yield from _records(file, data[position : position + header.size_bytes], partition, header, position)


def _merged(folders: dict[int, Path]) -> Iterator[StoredRecord]:
    streams = (_timed(read_partition(folder, partition)) for partition, folder in folders.items())
    return (record for _, _, record in heapq.merge(*streams, key=lambda item: item[:2]))


def _timed(records: Iterable[StoredRecord]) -> Iterator[tuple[int, int, StoredRecord]]:
    """Each record with the latest time so far in its partition, so that merging keeps a partition's order."""
    latest = 0
    for record in records:
        latest = max(latest, record.timestamp_ms)
        yield latest, record.partition, record


def _batches(file: Path, data: bytes, *, is_last: bool) -> Iterator[tuple[int, BatchHeader]]:
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + 12
        if is_last and (len(data) - position < HEADER_BYTES or size > len(data) - position or not any(data[position:])):
            return
        try:
            yield position, check_batch(data[position : position + max(size, 0)])
        except CorruptBatchError as error:
            raise StorageError(f"{file}: at byte {position}: {error}") from error
        position += size


def _records(file: Path, batch: bytes, partition: int, header: BatchHeader, position: int) -> Iterator[StoredRecord]:
    producer = header.producer_id if header.is_transactional else None
    try:
        if header.is_control:
            marker = parse_marker(batch)
            if marker is not None:
                yield StoredRecord(
                    partition,
                    header.base_offset,
                    header.max_timestamp_ms,
                    None,
                    None,
                    marker.producer_id,
                    marker.producer_epoch,
                    marker.committed,
                    marker.coordinator_epoch,
                )
            return
        for record in iterate_records(batch):
            epoch = header.producer_epoch if producer is not None else 0
            yield StoredRecord(partition, record.offset, record.timestamp_ms, record.key, record.value, producer, epoch)
    except (CorruptBatchError, UnsupportedCompressionError) as error:
        raise StorageError(f"{file}: at byte {position}: {error}") from error


def _belongs_here(source: Path, record: StoredRecord, partition_count: int) -> bool:
    """True; raises where the record's group would be on another partition, or where the record cannot be read."""
    if record.is_marker:
        return True
    try:
        group = decode_key(record.key or b"").group
        record.decode()
    except RecordDecodeError as error:
        place = f"offset {record.offset} of partition {record.partition}"
        raise StorageError(f"{source}: the record at {place} cannot be read: {error}") from error
    if group is not None and partition_for(group, partition_count) != record.partition:
        raise UsageError(
            f"{source}: group {group} is on partition {record.partition}, which it would not be among the {partition_count} "
            "partitions of this data folder; the cluster has another number of them"
        )
    return True
