"""Questions about one partition's batches that both topic stores answer the same way."""

from __future__ import annotations

from kgctl.serde.record_batch import (
    BatchHeader,
    CorruptBatchError,
    UnsupportedCompressionError,
    check_batch,
    iterate_records,
)

LEADER_EPOCH = 0
"""Nobody else ever leads a partition here."""


def checked_batch(batch: bytes) -> BatchHeader:
    """The header of a batch that may be appended. Raises `kgctl.serde.record_batch.CorruptBatchError`."""
    header = check_batch(batch)
    if header.record_count == 0:
        raise CorruptBatchError("a record batch without records")
    if header.last_offset_delta != header.record_count - 1:
        raise CorruptBatchError("a record batch whose offsets have gaps")
    return header


def first_at_or_after(batch: bytes, header: BatchHeader, timestamp_ms: int, start_offset: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record of the batch at or after that time and at or after ``start_offset``.

    Records under a codec that kgctl does not have cannot be told apart: the first of them stands for all.
    """
    if header.max_timestamp_ms < timestamp_ms:
        return None
    try:
        for record in iterate_records(batch):
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record.offset, record.timestamp_ms
    except (UnsupportedCompressionError, CorruptBatchError):
        return max(header.base_offset, start_offset), header.max_timestamp_ms
    return None
