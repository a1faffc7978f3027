"""What a store of the coordinator's data must be able to do, the rows that it hands out, and what all record logs share.

Three logs, each with an implementation in memory and one in SQLite:

* the **record log** (`RecordLog`): what the coordinator appends, in Kafka's own bytes, partition by partition as
  ``__consumer_offsets`` has it. The coordinator is rebuilt from it by replay, so it is compacted: the newest record of each
  key is enough;
* the **commit log** (`kgctl.storage.sqlite_logs.SqliteCommitLog`, none in memory): one row for each committed or deleted offset,
  with the member that did it. Never compacted: it answers who moved which offset when;
* the **topics** (`TopicStore`): what `kgctl serve` claims to have, each partition a log of record batches that nobody here
  looks into.

Shared by the logs in memory and in SQLite: where each appended record goes, and compaction.

A transactional offset takes effect at its transaction's end, unless the same offset was committed or deleted in the log after it;
`OpenTransactions` keeps the offsets in between, so that a marker can be written to each partition that waits for it and so
that the commit log tells what became committed when. A `AppendPlan` writes nothing; it is applied by the log and then adopted
(`LogLedger.adopt`).

Compaction (`Compactor`): what replay would overwrite anyway goes, in steps so small that commits never wait for long. A cycle has
two phases. The *survey* walks over the part of the log that the last cycle has not seen and notes the newest place of each key.
The *sweep* walks over the whole log from its beginning and removes: records with a newer one of the same key, records of aborted
transactions, markers whose transaction is settled, and tombstones that are older than a day (other readers of the log need time
to see them). A record of a committed transaction that stays becomes a plain one, which is why its marker can go. Nothing at or
after the first record of a transaction that is still open is touched, since its outcome is not known; nor is the newest record
of a partition, which says where the log ends. Each step is one small transaction of the store, and the log means the same after
each of them: a crash in between loses nothing. Kafka: ``LogCleaner``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue, TransactionMarker
from kgctl.model.groups import TopicMetadata, TopicPartition
from kgctl.model.values import frozen_in_order, partition_for
from kgctl.serde.coordinator_records import RecordDecodeError, decode_key, decode_record, encode_record

MAX_PARTITIONS = 1_000_000
"""How many partitions a topic can have here; what works on every partition of a topic must end in time."""

DEFAULT_OFFSETS_PARTITIONS = 50
"""Kafka's ``offsets.topic.num.partitions``."""


@frozen_in_order
class StoredRecord:
    """One entry of the record log, as Kafka's log would hold it.

    ``producer_id`` is None unless the record is part of a transaction; ``commits`` is None for a record, and for a
    transaction marker says whether it commits. A marker has neither key nor value here.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    producer_id: int | None = None
    producer_epoch: int = 0
    commits: bool | None = None
    coordinator_epoch: int = 0

    @property
    def is_marker(self) -> bool:
        """Whether this ends a transaction and holds no record."""
        return self.commits is not None

    def decode(self) -> CoordinatorRecord | TransactionMarker:
        """What to replay. Raises `kgctl.serde.coordinator_records.RecordDecodeError`."""
        if self.commits is not None:
            return TransactionMarker(self.producer_id or 0, self.producer_epoch, self.commits, self.coordinator_epoch)
        return decode_record(self.key or b"", self.value)


@frozen_in_order
class CommitEntry:
    """One row of the commit log. ``offset`` None: the committed offset was deleted (by request, expiry, or with its group).

    ``timestamp_ms`` is when it took effect: for an offset committed in a transaction, the transaction's end. ``member_id`` is
    None where nobody was named (a commit from outside the group, an expiry, a log that Apache Kafka wrote).
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    timestamp_ms: int
    metadata: str = ""
    leader_epoch: int = -1
    member_id: str | None = None


class RecordLog(Protocol):
    """The coordinator's log."""

    @property
    def partition_count(self) -> int:
        """How many partitions ``__consumer_offsets`` has; fixed when the log was created."""
        ...

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        """Append all of these or none; durable when it returns. Each goes to the partition of its group.

        A transaction marker goes to each partition where its producer has offsets pending. The commit log gets its rows in
        the same transaction. Raises `kgctl.errors.StorageError` (nothing was appended, the log is as before) and
        `kgctl.serde.coordinator_records.RecordEncodeError`.
        """
        ...

    def write(self, records: Sequence[StoredRecord]) -> None:
        """Append records that have their places already (a log that Apache Kafka wrote); offsets ascend in each partition.

        Raises `ValueError` where they do not, and its `RecordDecodeError` for a record that cannot be read; nothing is appended.
        """
        ...

    def read(self, partition: int | None = None, start_offset: int = 0, max_records: int | None = None) -> Iterator[StoredRecord]:
        """One partition's records from ``start_offset`` on, or those of all partitions in the order of their appending."""
        ...

    def read_newest(self) -> Iterator[StoredRecord]:
        """What a replay needs of all partitions, in the order of its appending: the log without what compaction may remove."""
        ...

    def end_offset(self, partition: int) -> int:
        """The offset that the partition's next record gets."""
        ...

    def groups_of_transaction(self, producer_id: int) -> Collection[str]:
        """The groups that an open transaction of this producer holds offsets back of."""
        ...

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        """A small piece of compaction (at most so many records looked at); True while there is more to do."""
        ...

    def compact(self, now_ms: int | None = None) -> int:
        """Keep only the newest record of each key, and drop tombstones that are older than a day; how many records went.

        Without ``now_ms`` the log's newest timestamp is the time. Safe to interrupt at any moment; nothing of a transaction
        that is still open is touched, and the newest record of a partition always stays.
        """
        ...


def records_of_groups(log: RecordLog, group_ids: Collection[str]) -> Iterator[StoredRecord]:
    """Yield what the log holds of these groups, in its order, and the markers of transactions between.

    Reads the groups' partitions whole. Raises what `RecordLog.read` raises.
    """
    for partition in sorted({partition_for(group_id, log.partition_count) for group_id in group_ids}):
        for stored in log.read(partition):
            if stored.is_marker or decode_key(stored.key or b"").group in group_ids:
                yield stored


class TopicStore(Protocol):
    """Topics and their partitions' logs. A name that is not there raises `kgctl.errors.NotFoundError`."""

    def topics(self) -> Mapping[str, TopicMetadata]:
        """Return all topics, sorted by name."""
        ...

    def oversized_topics(self) -> Mapping[str, int]:
        """Topics with more than `MAX_PARTITIONS`, which `topics` leaves out, and their partition counts; they can be deleted."""
        ...

    def create_topics(self, topics: Sequence[TopicMetadata]) -> None:
        """Create all of these, under the ids that the caller made up, or none.

        Raises `kgctl.errors.RefusedError` where a name is taken and `UsageError` for a partition count that no topic can have.
        """
        ...

    def delete_topics(self, names: Collection[str]) -> None:
        """Remove these topics with their records, all or none."""
        ...

    def set_partition_counts(self, counts: Mapping[str, int]) -> None:
        """Give topics more partitions, all or none; `kgctl.errors.UsageError` for fewer than there are, or for too many."""
        ...

    def append_batch(self, partition: TopicPartition, batch: bytes, now_ms: int, *, at: int | None = None) -> int:
        """Append one whole record batch of format 2 and answer its base offset.

        That is the log's end, or ``at``, if that lies behind: then the records between are gone, as after compaction.
        Raises `kgctl.serde.record_batch.CorruptBatchError`. Base offset and leader epoch are overwritten, the rest stays as
        it came.
        """
        ...

    def flush(self) -> None:
        """Make what was appended survive a power cut. Raises `kgctl.errors.StorageError`."""
        ...

    def read_batches(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds ``offset`` on: at least one if there is any, then up to ``max_bytes``."""
        ...

    def log_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (log start offset, log end offset)."""
        ...

    def log_size(self, partition: TopicPartition) -> int:
        """Return how many bytes its batches have."""
        ...

    def set_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start forwards, as DeleteRecords does; batches before it go."""
        ...

    def written_partitions(self, topic: str) -> Sequence[TopicPartition]:
        """Those of the topic to which anything was ever written, in order."""
        ...

    def rewrite_batches(self, partition: TopicPartition, changes: Mapping[int, bytes | None]) -> None:
        """Put other batches of the same offsets in place of those with these base offsets, or none; all or nothing.

        The newest batch may not go. One that is not there any more is passed over.
        """
        ...

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record at or after that time; None where there is none.

        In a batch whose codec kgctl does not have, the whole batch counts as one record.
        """
        ...

    def offset_of_max_timestamp(self, partition: TopicPartition) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record with the largest timestamp; None in an empty log."""
        ...


@dataclass(slots=True)
class OpenTransactions:
    """The offsets that wait for a marker: producer id -> partitions it wrote to, and (producer id, key) -> the entry to be."""

    partitions: dict[int, dict[int, None]] = field(default_factory=dict)
    entries: dict[int, dict[OffsetCommitKey, CommitEntry]] = field(default_factory=dict)
    groups: dict[int, dict[str, None]] = field(default_factory=dict)
    """Producer id -> groups that it holds offsets back of."""

    def copy(self) -> OpenTransactions:
        """Return an independent copy."""
        return OpenTransactions(
            {producer: dict(found) for producer, found in self.partitions.items()},
            {producer: dict(found) for producer, found in self.entries.items()},
            {producer: dict(found) for producer, found in self.groups.items()},
        )

    def add(self, producer_id: int, partition: int, key: OffsetCommitKey | None, entry: CommitEntry | None) -> None:
        """A record of an open transaction was appended to ``partition``."""
        self.partitions.setdefault(producer_id, {})[partition] = None
        if key is not None and entry is not None:
            self.entries.setdefault(producer_id, {})[key] = entry
            self.groups.setdefault(producer_id, {})[key.group] = None

    def overtake(self, key: OffsetCommitKey) -> None:
        """The offset was committed or deleted outside a transaction: what is pending below it will not count any more."""
        for pending in self.entries.values():
            pending.pop(key, None)

    def end(self, producer_id: int) -> tuple[Sequence[int], Sequence[CommitEntry]]:
        """The partitions where this producer's transaction was open, and what it would commit."""
        partitions = tuple(self.partitions.pop(producer_id, ()))
        self.groups.pop(producer_id, None)
        return partitions, tuple(self.entries.pop(producer_id, {}).values())


@dataclass(slots=True)
class AppendPlan:
    """What one append comes to. ``members``: who committed a record that waits for its marker, by its place in ``records``."""

    records: list[StoredRecord]
    members: dict[int, str]
    commits: list[CommitEntry]
    end_offsets: dict[int, int]
    transactions: OpenTransactions


class LogLedger:
    """The end of each partition's log and its open transactions."""

    def __init__(
        self,
        partition_count: int,
        end_offsets: Mapping[int, int] | None = None,
        open_records: Iterable[StoredRecord] = (),
        members: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        """``open_records`` of a log that exists already, in its order: transactions', markers, and others of their keys.

        ``members`` names who committed the pending ones, by (partition, offset).
        """
        self.partition_count = partition_count
        self._partition_of = lru_cache(maxsize=10_000)(partial(partition_for, partition_count=partition_count))
        self._end_offsets = dict(end_offsets or {})
        self._transactions = OpenTransactions()
        for record in open_records:
            self._resume(record, (members or {}).get((record.partition, record.offset)))

    def end_offset(self, partition: int) -> int:
        """The offset that the partition's next record gets."""
        return self._end_offsets.get(partition, 0)

    def groups_of_transaction(self, producer_id: int) -> Collection[str]:
        """Return the groups that the producer's open transaction holds offsets back of."""
        return tuple(self._transactions.groups.get(producer_id, ()))

    def plan(self, effects: Sequence[AppendRecord], now_ms: int) -> AppendPlan:
        """Give each record its place. Raises `kgctl.serde.coordinator_records.RecordEncodeError`; nothing changes here."""
        plan = self._blank()
        for effect in effects:
            if isinstance(effect.record, TransactionMarker):
                self._plan_marker(plan, effect.record, now_ms)
            else:
                self._plan_record(plan, effect, effect.record, now_ms)
        return plan

    def plan_placed(self, records: Sequence[StoredRecord]) -> AppendPlan:
        """Plan to append records that have their places. Raises ValueError where an offset does not ascend."""
        plan = self._blank()
        for record in records:
            if record.offset < plan.end_offsets.get(record.partition, 0):
                raise ValueError(f"offset {record.offset} of partition {record.partition} is in the log already")
            plan.records.append(record)
            plan.end_offsets[record.partition] = record.offset + 1
            _track(plan.transactions, plan.commits, record, None)
        return plan

    def adopt(self, plan: AppendPlan) -> None:
        """Take over a plan that is durable now."""
        self._end_offsets = plan.end_offsets
        self._transactions = plan.transactions

    def _blank(self) -> AppendPlan:
        return AppendPlan([], {}, [], dict(self._end_offsets), self._transactions.copy())

    def _resume(self, record: StoredRecord, member_id: str | None) -> None:
        """A damaged record keeps its transaction open; that it is damaged is for the load to say."""
        try:
            _track(self._transactions, [], record, member_id)
        except RecordDecodeError:
            self._transactions.add(record.producer_id or 0, record.partition, None, None)

    def _plan_record(self, plan: AppendPlan, effect: AppendRecord, record: CoordinatorRecord, now_ms: int) -> None:
        key, value = encode_record(record)
        partition = self._partition_of(record.key.group or "")
        offset = _take_offset(plan, partition)
        stored = StoredRecord(partition, offset, now_ms, key, value, effect.producer_id, effect.producer_epoch)
        if effect.producer_id is not None and effect.member_id:
            plan.members[len(plan.records)] = effect.member_id
        plan.records.append(stored)
        _track_record(plan.transactions, plan.commits, stored, record, effect.member_id)

    def _plan_marker(self, plan: AppendPlan, marker: TransactionMarker, now_ms: int) -> None:
        partitions, entries = plan.transactions.end(marker.producer_id)
        for partition in partitions:
            plan.records.append(_marker_record(marker, partition, _take_offset(plan, partition), now_ms))
        if marker.committed:
            plan.commits += (replace(entry, timestamp_ms=now_ms) for entry in entries)


def _take_offset(plan: AppendPlan, partition: int) -> int:
    offset = plan.end_offsets.get(partition, 0)
    plan.end_offsets[partition] = offset + 1
    return offset


def _marker_record(marker: TransactionMarker, partition: int, offset: int, now_ms: int) -> StoredRecord:
    return StoredRecord(
        partition,
        offset,
        now_ms,
        None,
        None,
        marker.producer_id,
        marker.producer_epoch,
        marker.committed,
        marker.coordinator_epoch,
    )


def _track(transactions: OpenTransactions, commits: list[CommitEntry], stored: StoredRecord, member_id: str | None) -> None:
    """Take note of a record that has its place in the log already."""
    decoded = stored.decode()
    if isinstance(decoded, CoordinatorRecord):
        _track_record(transactions, commits, stored, decoded, member_id)
        return
    _, entries = transactions.end(decoded.producer_id)
    if decoded.committed:
        commits += (replace(entry, timestamp_ms=stored.timestamp_ms) for entry in entries)


def _track_record(
    transactions: OpenTransactions,
    commits: list[CommitEntry],
    stored: StoredRecord,
    record: CoordinatorRecord,
    member_id: str | None,
) -> None:
    key = record.key if isinstance(record.key, OffsetCommitKey) else None
    entry = None if key is None else _entry(key, record, stored.timestamp_ms, member_id)
    if stored.producer_id is not None:
        transactions.add(stored.producer_id, stored.partition, key, entry)
    elif key is not None and entry is not None:
        transactions.overtake(key)
        commits.append(entry)


def _entry(key: OffsetCommitKey, record: CoordinatorRecord, timestamp_ms: int, member_id: str | None) -> CommitEntry:
    value = record.value
    if not isinstance(value, OffsetCommitValue):
        return CommitEntry(key.group, key.topic, key.partition, None, timestamp_ms)
    return CommitEntry(
        key.group, key.topic, key.partition, value.offset, timestamp_ms, value.metadata, value.leader_epoch, member_id or None
    )


DELETE_RETENTION_MS = 86_400_000
"""Kafka's ``delete.retention.ms``: how long a tombstone stays."""

_MIN_DIRTY_RECORDS = 10_000
_MAX_KEYS = 1_000_000


class LogRow(NamedTuple):
    """What compaction needs to know of a record. ``sequence`` is its place in the whole log, over all partitions."""

    sequence: int
    partition: int
    timestamp_ms: int
    key: bytes | None
    is_tombstone: bool
    producer_id: int | None
    commits: bool | None


class Compactable(Protocol):
    """A log that can be compacted."""

    def last_sequence(self) -> int:
        """The sequence of the newest record; 0 for an empty log."""
        ...

    def cleaned_until(self) -> int:
        """The last sequence that a finished cycle has surveyed."""
        ...

    def set_cleaned_until(self, sequence: int) -> None:
        """Store that a cycle of compaction has finished."""
        ...

    def rows(self, after_sequence: int, max_rows: int) -> Sequence[LogRow]:
        """Return the next rows, ascending."""
        ...

    def transactional_rows(self) -> Iterator[LogRow]:
        """All markers and all records of transactions, ascending."""
        ...

    def newest_of_each_partition(self) -> Collection[int]:
        """The sequence of each partition's newest record."""
        ...

    def rewrite(self, removed: Sequence[int], settled: Sequence[int]) -> None:
        """Remove some records, and make some records of transactions plain ones, both or none."""
        ...


class Compactor:
    """Steps through one cycle after the other. Keeps what a survey found in memory, up to a million keys."""

    def __init__(self, log: Compactable) -> None:
        self._log = log
        self.removed = 0
        self._phase: Callable[[int, int], bool] = self._begin
        self._position = 0
        self._bound = 0
        self._newest: dict[tuple[int, bytes], int] = {}
        self._aborted: set[int] = set()
        self._keep: Collection[int] = ()

    def step(self, now_ms: int, max_records: int, *, force: bool = False) -> bool:
        """One step; True while there is more to do. A cycle begins by itself once enough has been appended, or with ``force``."""
        if self._phase == self._begin and not (force or self._is_worth_it()):
            return False
        return self._phase(now_ms, max_records)

    def _is_worth_it(self) -> bool:
        end, cleaned = self._log.last_sequence(), self._log.cleaned_until()
        return end - cleaned >= max(_MIN_DIRTY_RECORDS, cleaned // 2)

    def _begin(self, _now_ms: int, _max_records: int) -> bool:
        self._newest.clear()
        self._aborted.clear()
        first_open = self._find_outcomes()
        self._bound = self._log.last_sequence() if first_open is None else first_open - 1
        self._position = self._log.cleaned_until()
        self._phase = self._survey
        return True

    def _find_outcomes(self) -> int | None:
        """Note the records of aborted transactions; the first record of one that is open, or None."""
        waiting: dict[int, list[int]] = {}
        for row in self._log.transactional_rows():
            producer = row.producer_id or 0
            if row.commits is None:
                waiting.setdefault(producer, []).append(row.sequence)
                continue
            ended = waiting.pop(producer, [])
            if not row.commits:
                self._aborted.update(ended)
        return min((sequences[0] for sequences in waiting.values()), default=None)

    def _survey(self, _now_ms: int, max_records: int) -> bool:
        rows = [row for row in self._log.rows(self._position, max_records) if row.sequence <= self._bound]
        for row in rows:
            if row.key is not None and row.sequence not in self._aborted:
                self._newest[row.partition, row.key] = row.sequence
        if rows:
            self._position = rows[-1].sequence
        if len(self._newest) > _MAX_KEYS:
            self._bound = self._position
        if not rows or self._position >= self._bound:
            self._keep = self._log.newest_of_each_partition()
            self._position = 0
            self._phase = self._sweep
        return True

    def _sweep(self, now_ms: int, max_records: int) -> bool:
        rows = [row for row in self._log.rows(self._position, max_records) if row.sequence <= self._bound]
        if not rows:
            return self._finish()
        removed = [row.sequence for row in rows if row.sequence not in self._keep and self._is_obsolete(row, now_ms)]
        gone = set(removed)
        settled = [r.sequence for r in rows if r.producer_id is not None and r.commits is None and r.sequence not in gone]
        settled = [sequence for sequence in settled if sequence not in self._aborted]
        if removed or settled:
            self._log.rewrite(removed, settled)
        self.removed += len(removed)
        self._position = rows[-1].sequence
        return True

    def _is_obsolete(self, row: LogRow, now_ms: int) -> bool:
        if row.commits is not None or row.sequence in self._aborted:
            return True
        if self._newest.get((row.partition, row.key or b""), 0) > row.sequence:
            return True
        return row.is_tombstone and row.timestamp_ms + DELETE_RETENTION_MS < now_ms

    def _finish(self) -> bool:
        self._log.set_cleaned_until(self._bound)
        self._newest.clear()
        self._phase = self._begin
        return False
