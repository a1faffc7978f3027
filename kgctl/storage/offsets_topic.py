"""``__consumer_offsets`` as a topic that others can read: the record log, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from kgctl.model.records import TransactionMarker
from kgctl.serde.older_values import older_value
from kgctl.serde.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record, build_batch, build_marker
from kgctl.storage.protocols import RecordLog, StoredRecord

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
    for batch in _batches(records):
        if found and len(found) + len(batch) > max_bytes:
            break
        found += batch
    return bytes(found)


def _batches(records: Iterable[StoredRecord]) -> Iterator[bytes]:
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
