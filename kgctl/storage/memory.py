"""The logs in memory: `kgctl serve` without a data folder, and the yardstick that the SQLite implementation is tested against."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import NotFoundError, RefusedError, UsageError
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import parse_header, place
from kgctl.storage.batches import LEADER_EPOCH, checked_batch, first_at_or_after
from kgctl.storage.record_log import (
    DEFAULT_OFFSETS_PARTITIONS,
    MAX_PARTITIONS,
    AppendPlan,
    Compactor,
    LogLedger,
    LogRow,
    StoredRecord,
)


class MemoryRecordLog:
    """The record log as a dict in the order of appending; no commit log, which would grow for ever. From several threads."""

    def __init__(self, partition_count: int = DEFAULT_OFFSETS_PARTITIONS) -> None:
        self._lock = threading.RLock()
        self._ledger = LogLedger(partition_count)
        self._records: dict[int, StoredRecord] = {}
        self._places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._sequence = 0
        self._cleaned_until = 0
        self._compactor = Compactor(_MemoryTarget(self))

    @property
    def partition_count(self) -> int:
        return self._ledger.partition_count

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        with self._lock:
            self._apply(self._ledger.plan(effects, now_ms))

    def write(self, records: Sequence[StoredRecord]) -> None:
        with self._lock:
            self._apply(self._ledger.plan_placed(records))

    def read(self, partition: int | None = None, start_offset: int = 0, max_records: int | None = None) -> Iterator[StoredRecord]:
        with self._lock:
            if partition is None:
                found = list(self._records.values())
            else:
                places = self._places[partition]
                found = [
                    self._records[sequence]
                    for _, sequence in places[bisect_left(places, (start_offset, 0)) :]
                    if sequence in self._records
                ]
        return iter(found[:max_records])

    def read_newest(self) -> Iterator[StoredRecord]:
        return self.read()

    def end_offset(self, partition: int) -> int:
        return self._ledger.end_offset(partition)

    def groups_of_transaction(self, producer_id: int) -> Collection[str]:
        return self._ledger.groups_of_transaction(producer_id)

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        with self._lock:
            return self._compactor.step(now_ms, max_records)

    def compact(self, now_ms: int | None = None) -> int:
        with self._lock:
            newest = max((record.timestamp_ms for record in self._records.values()), default=0)
            before = self._compactor.removed
            while self._compactor.step(newest if now_ms is None else now_ms, len(self._records) + 1, force=True):
                pass
            return self._compactor.removed - before

    def close(self) -> None:
        """Do nothing: there are no files."""

    def _apply(self, plan: AppendPlan) -> None:
        for record in plan.records:
            self._sequence += 1
            self._records[self._sequence] = record
            self._places[record.partition].append((record.offset, self._sequence))
        self._ledger.adopt(plan)


class _MemoryTarget:
    """What compaction does to a `MemoryRecordLog`."""

    def __init__(self, log: MemoryRecordLog) -> None:
        self._log = log
        self._sequences: list[int] = []

    def last_sequence(self) -> int:
        return self._log._sequence

    def cleaned_until(self) -> int:
        return self._log._cleaned_until

    def set_cleaned_until(self, sequence: int) -> None:
        self._log._cleaned_until = sequence
        self._log._places = defaultdict(list)
        for number, record in self._log._records.items():
            self._log._places[record.partition].append((record.offset, number))

    def rows(self, after_sequence: int, max_rows: int) -> Sequence[LogRow]:
        records = self._log._records
        if after_sequence == 0 or not self._sequences:
            self._sequences = list(records)
        start = bisect_left(self._sequences, after_sequence + 1)
        chunk = self._sequences[start : start + max_rows]
        return [_row(number, records[number]) for number in chunk if number in records]

    def transactional_rows(self) -> Iterator[LogRow]:
        self._sequences = list(self._log._records)
        return (_row(number, r) for number, r in self._log._records.items() if r.producer_id is not None)

    def newest_of_each_partition(self) -> Collection[int]:
        return {places[-1][1] for places in self._log._places.values() if places}

    def rewrite(self, removed: Sequence[int], settled: Sequence[int]) -> None:
        for number in removed:
            del self._log._records[number]
        for number in settled:
            self._log._records[number] = replace(self._log._records[number], producer_id=None, producer_epoch=0)


def _row(sequence: int, record: StoredRecord) -> LogRow:
    is_tombstone = record.value is None and record.commits is None
    return LogRow(sequence, record.partition, record.timestamp_ms, record.key, is_tombstone, record.producer_id, record.commits)


@dataclass(slots=True)
class _Log:
    """One partition. ``bases`` are the base offsets of ``batches``."""

    start: int = 0
    end: int = 0
    bases: list[int] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)

    def index_of(self, offset: int) -> int:
        """Where the batch is that holds ``offset``, or the next one."""
        index = max(bisect_right(self.bases, offset) - 1, 0)
        if index < len(self.batches) and parse_header(self.batches[index]).last_offset < offset:
            index += 1
        return index


class MemoryTopicStore:
    """See `kgctl.storage.record_log.TopicStore`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._topics: dict[str, TopicMetadata] = {}
        self._logs: dict[TopicPartition, _Log] = {}

    def topics(self) -> Mapping[str, TopicMetadata]:
        with self._lock:
            return dict(sorted(self._topics.items()))

    def oversized_topics(self) -> Mapping[str, int]:
        return {}

    def create_topics(self, topics: Sequence[TopicMetadata]) -> None:
        with self._lock:
            self._topics.update(checked_new_topics(topics, self._topics))

    def delete_topics(self, names: Collection[str]) -> None:
        with self._lock:
            gone = {self._topic(name).name for name in names}
            for name in gone:
                del self._topics[name]
            self._logs = {place: log for place, log in self._logs.items() if place.topic not in gone}

    def set_partition_counts(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._topics.update(checked_growth({name: self._topic(name) for name in counts}, counts))

    def append_batch(
        self,
        partition: TopicPartition,
        batch: bytes,
        now_ms: int,  # noqa: ARG002 - CreateTime
        *,
        at: int | None = None,
    ) -> int:
        header = checked_batch(batch)
        with self._lock:
            log = self._log(partition)
            base = max(log.end, at or 0)
            log.bases.append(base)
            log.batches.append(place(batch, base, LEADER_EPOCH))
            log.end = base + header.last_offset_delta + 1
            return base

    def flush(self) -> None:
        """Nothing outlives the process anyway."""

    def read_batches(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Return batches from ``offset`` on."""
        with self._lock:
            log = self._log(partition)
            found = bytearray()
            for batch in log.batches[log.index_of(offset) :] if offset < log.end else ():
                if found and len(found) + len(batch) > max_bytes:
                    break
                found += batch
            return bytes(found)

    def log_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (log start offset, log end offset)."""
        with self._lock:
            log = self._log(partition)
            return log.start, log.end

    def log_size(self, partition: TopicPartition) -> int:
        """Return how many bytes its batches have."""
        with self._lock:
            return sum(map(len, self._log(partition).batches))

    def set_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start forwards."""
        with self._lock:
            log = self._log(partition)
            log.start = max(log.start, min(offset, log.end))
            keep = log.index_of(log.start) if log.start < log.end else len(log.batches)
            del log.bases[:keep], log.batches[:keep]

    def written_partitions(self, topic: str) -> Sequence[TopicPartition]:
        """Return the partitions that have a log, in order."""
        with self._lock:
            return sorted(partition for partition, log in self._logs.items() if partition.topic == topic and log.end)

    def rewrite_batches(self, partition: TopicPartition, changes: Mapping[int, bytes | None]) -> None:
        """Put other batches of the same offsets in place of these, or none."""
        with self._lock:
            log = self._log(partition)
            pairs = [(base, changes.get(base, batch)) for base, batch in zip(log.bases, log.batches, strict=True)]
            kept = [(base, batch) for base, batch in pairs if batch is not None]
            log.bases, log.batches = [base for base, _ in kept], [batch for _, batch in kept]

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """Return the first record at or after that time."""
        with self._lock:
            log = self._log(partition)
            for batch in log.batches:
                found = first_at_or_after(batch, parse_header(batch), timestamp_ms, log.start)
                if found is not None:
                    return found
            return None

    def offset_of_max_timestamp(self, partition: TopicPartition) -> tuple[int, int] | None:
        """Return the first record with the largest timestamp."""
        with self._lock:
            batches = self._log(partition).batches
            newest = max((parse_header(batch).max_timestamp_ms for batch in batches), default=None)
        return None if newest is None else self.offset_for_timestamp(partition, newest)

    def _topic(self, name: str) -> TopicMetadata:
        try:
            return self._topics[name]
        except KeyError:
            raise unknown_topic(name) from None

    def _log(self, partition: TopicPartition) -> _Log:
        """The partition's log, made when it is first asked for: a topic of many partitions costs nothing."""
        topic = self._topics.get(partition.topic)
        if topic is None or not 0 <= partition.partition < topic.partition_count:
            raise unknown_partition(partition)
        return self._logs.setdefault(partition, _Log())


def checked_new_topics(topics: Sequence[TopicMetadata], known: Collection[str]) -> dict[str, TopicMetadata]:
    """Return these topics by name. Raises what `kgctl.storage.record_log.TopicStore.create_topics` raises."""
    found: dict[str, TopicMetadata] = {}
    for topic in topics:
        if topic.name in known or topic.name in found:
            raise RefusedError(f"topic {topic.name} exists already", topic=topic.name)
        if not 1 <= topic.partition_count <= MAX_PARTITIONS:
            raise _no_such_count(topic.name, topic.partition_count)
        found[topic.name] = topic
    return found


def checked_growth(topics: Mapping[str, TopicMetadata], counts: Mapping[str, int]) -> dict[str, TopicMetadata]:
    """The topics with these partition counts. Raises `kgctl.errors.UsageError` where one would shrink or become too large."""
    for name, count in counts.items():
        if count < topics[name].partition_count:
            has = topics[name].partition_count
            raise UsageError(f"topic {name} has {has} partitions; they cannot become {count}", topic=name)
        if count > MAX_PARTITIONS:
            raise _no_such_count(name, count)
    return {name: replace(topics[name], partition_count=count) for name, count in counts.items()}


def _no_such_count(name: str, partitions: int) -> UsageError:
    return UsageError(f"topic {name}: {partitions} partitions; a topic has at least one and at most {MAX_PARTITIONS}", topic=name)


def unknown_topic(name: str) -> NotFoundError:
    """Return the error for a topic that does not exist."""
    return NotFoundError(f"topic {name} does not exist", code="UNKNOWN_TOPIC_OR_PARTITION", topic=name)


def unknown_partition(partition: TopicPartition) -> NotFoundError:
    """The error for a partition that does not exist."""
    return NotFoundError(
        f"partition {partition} does not exist",
        code="UNKNOWN_TOPIC_OR_PARTITION",
        topic=partition.topic,
        partition=partition.partition,
    )
