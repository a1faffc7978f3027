"""What a log cleaner makes of a partition's batches: the newest value of each key stays, tombstones and markers for a while.

Offsets stay as they are, so that a reader sees gaps. A tombstone, and the marker of a transaction of which nothing is left, get a
time at which they may go when they are first seen, and go when they are seen after it (KIP-534). Kafka: ``Cleaner``,
``MemoryRecords#filterTo``. Two things are otherwise: every batch is a segment of its own, and the newest record of the log always
stays, as it does in Kafka's active segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kgctl.serde.record_batch import BatchHeader, Record, iterate_records, parse_header, parse_marker, rebuilt

_Batch = tuple[BatchHeader, bytes]


class Cleaning(NamedTuple):
    """``now_ms`` and the log's ``delete.retention.ms``; batches that reach ``bound`` are not looked at."""

    now_ms: int
    delete_retention_ms: int
    bound: int

    def is_over(self, header: BatchHeader) -> bool:
        """Whether tombstones and a marker in this batch go."""
        return header.delete_horizon_ms is not None and self.now_ms >= header.delete_horizon_ms


class CleanedLog(NamedTuple):
    """What changes: batches by base offset, None for one that goes; and how many ``removed`` records that is, without markers."""

    changes: Mapping[int, bytes | None]
    removed: int


class _Outcomes(NamedTuple):
    """Base offsets of batches: ``aborted`` ones, and markers that are ``alone``, of whose transaction nothing is left."""

    aborted: set[int]
    alone: set[int]


def cleaned(batches: Iterable[bytes], cleaning: Cleaning) -> CleanedLog:
    """Clean the log of a partition, all of whose batches these are.

    Raises `kgctl.serde.record_batch.UnsupportedCompressionError` for snappy, lz4 and zstd, in which no key can be seen.
    """
    log = [(parse_header(batch), batch) for batch in batches]
    outcomes = _outcomes(log)
    cleanable = [(header, batch) for header, batch in log if header.last_offset < cleaning.bound]
    newest = _newest_of_each_key(cleanable, outcomes)
    changes: dict[int, bytes | None] = {}
    removed = 0
    for header, batch in cleanable:
        records = list(iterate_records(batch))
        kept = [each for each in records if _stays(header, each, cleaning, outcomes, newest)]
        if not kept and header is log[-1][0]:
            kept = records[-1:]
        horizon_ms = _horizon_ms(header, kept, cleaning, outcomes)
        if len(kept) < len(records) or horizon_ms != header.delete_horizon_ms:
            changes[header.base_offset] = rebuilt(header, kept, horizon_ms) if kept else None
        removed += 0 if header.is_control else len(records) - len(kept)
    return CleanedLog(changes, removed)


def _outcomes(log: Sequence[_Batch]) -> _Outcomes:
    found, under_way = _Outcomes(set(), set()), dict[int, list[int]]()
    for header, batch in log:
        if header.is_transactional and not header.is_control:
            under_way.setdefault(header.producer_id, []).append(header.base_offset)
        marker = parse_marker(batch) if header.is_control else None
        if marker is None:
            continue
        ended = under_way.pop(header.producer_id, [])
        if not ended:
            found.alone.add(header.base_offset)
        if not marker.committed:
            found.aborted.update(ended)
    return found


def _newest_of_each_key(log: Sequence[_Batch], outcomes: _Outcomes) -> Mapping[bytes, int]:
    counted = (batch for header, batch in log if not header.is_control and header.base_offset not in outcomes.aborted)
    return {each.key: each.offset for batch in counted for each in iterate_records(batch) if each.key is not None}


def _stays(header: BatchHeader, record: Record, cleaning: Cleaning, outcomes: _Outcomes, newest: Mapping[bytes, int]) -> bool:
    """Kafka: Cleaner#shouldRetainRecord; a record without a key is the newest of none."""
    if header.is_control:
        return not cleaning.is_over(header)
    if header.base_offset in outcomes.aborted or record.key is None or newest[record.key] != record.offset:
        return False
    return record.value is not None or not cleaning.is_over(header)


def _horizon_ms(header: BatchHeader, kept: Sequence[Record], cleaning: Cleaning, outcomes: _Outcomes) -> int | None:
    """When what is kept of the batch may go; None where it has no tombstone and is no marker that stands alone."""
    if header.delete_horizon_ms is not None:
        return header.delete_horizon_ms
    may_go = header.base_offset in outcomes.alone if header.is_control else any(each.value is None for each in kept)
    return cleaning.now_ms + cleaning.delete_retention_ms if may_go else None
