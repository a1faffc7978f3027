"""Where each appended record goes, and what the commit log says about it: the part of appending that memory and SQLite share.

A transactional offset takes effect at its transaction's end, unless the same offset was committed or deleted in the log after it;
`OpenTransactions` keeps the offsets in between, so that a marker can be written to each partition that waits for it and so
that the commit log tells what became committed when. Nothing here writes; a `Plan` is applied by the log and then adopted
(`Ledger.adopt`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from kgctl.coordinator.config import partition_for
from kgctl.coordinator.effects import AppendRecord
from kgctl.model.records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue, TransactionMarker
from kgctl.serde.coordinator_records import RecordDecodeError, encode_record
from kgctl.storage.protocols import CommitEntry, StoredRecord


@dataclass(slots=True)
class OpenTransactions:
    """The offsets that wait for a marker: producer id -> partitions it wrote to, and (producer id, key) -> the entry to be."""

    partitions: dict[int, dict[int, None]] = field(default_factory=dict)
    entries: dict[int, dict[OffsetCommitKey, CommitEntry]] = field(default_factory=dict)

    def copy(self) -> OpenTransactions:
        """An independent copy."""
        return OpenTransactions(
            {producer: dict(found) for producer, found in self.partitions.items()},
            {producer: dict(found) for producer, found in self.entries.items()},
        )

    def add(self, producer_id: int, partition: int, key: OffsetCommitKey | None, entry: CommitEntry | None) -> None:
        """A record of an open transaction was appended to ``partition``."""
        self.partitions.setdefault(producer_id, {})[partition] = None
        if key is not None and entry is not None:
            self.entries.setdefault(producer_id, {})[key] = entry

    def overtake(self, key: OffsetCommitKey) -> None:
        """The offset was committed or deleted outside a transaction: what is pending below it will not count any more."""
        for pending in self.entries.values():
            pending.pop(key, None)

    def end(self, producer_id: int) -> tuple[Sequence[int], Sequence[CommitEntry]]:
        """The partitions where this producer's transaction was open, and what it would commit."""
        partitions = tuple(self.partitions.pop(producer_id, ()))
        return partitions, tuple(self.entries.pop(producer_id, {}).values())


@dataclass(slots=True)
class Plan:
    """What one append comes to. ``members``: who committed a record that waits for its marker, by its place in ``records``."""

    records: list[StoredRecord]
    members: dict[int, str]
    commits: list[CommitEntry]
    end_offsets: dict[int, int]
    transactions: OpenTransactions


class Ledger:
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

    def plan(self, effects: Sequence[AppendRecord], now_ms: int) -> Plan:
        """Give each record its place. Raises `kgctl.serde.coordinator_records.RecordEncodeError`; nothing changes here."""
        plan = self._blank()
        for effect in effects:
            if isinstance(effect.record, TransactionMarker):
                self._plan_marker(plan, effect.record, now_ms)
            else:
                self._plan_record(plan, effect, effect.record, now_ms)
        return plan

    def plan_placed(self, records: Sequence[StoredRecord]) -> Plan:
        """The same for records that have their places. `ValueError` where an offset does not ascend."""
        plan = self._blank()
        for record in records:
            if record.offset < plan.end_offsets.get(record.partition, 0):
                raise ValueError(f"offset {record.offset} of partition {record.partition} is in the log already")
            plan.records.append(record)
            plan.end_offsets[record.partition] = record.offset + 1
            _track(plan.transactions, plan.commits, record, None)
        return plan

    def adopt(self, plan: Plan) -> None:
        """The plan is durable now."""
        self._end_offsets = plan.end_offsets
        self._transactions = plan.transactions

    def _blank(self) -> Plan:
        return Plan([], {}, [], dict(self._end_offsets), self._transactions.copy())

    def _resume(self, record: StoredRecord, member_id: str | None) -> None:
        """A damaged record keeps its transaction open; that it is damaged is for the load to say."""
        try:
            _track(self._transactions, [], record, member_id)
        except RecordDecodeError:
            self._transactions.add(record.producer_id or 0, record.partition, None, None)

    def _plan_record(self, plan: Plan, effect: AppendRecord, record: CoordinatorRecord, now_ms: int) -> None:
        key, value = encode_record(record)
        partition = self._partition_of(record.key.group or "")
        offset = _take_offset(plan, partition)
        stored = StoredRecord(partition, offset, now_ms, key, value, effect.producer_id, effect.producer_epoch)
        if effect.producer_id is not None and effect.member_id:
            plan.members[len(plan.records)] = effect.member_id
        plan.records.append(stored)
        _track_record(plan.transactions, plan.commits, stored, record, effect.member_id)

    def _plan_marker(self, plan: Plan, marker: TransactionMarker, now_ms: int) -> None:
        partitions, entries = plan.transactions.end(marker.producer_id)
        for partition in partitions:
            plan.records.append(_marker_record(marker, partition, _take_offset(plan, partition), now_ms))
        if marker.committed:
            plan.commits += (replace(entry, timestamp_ms=now_ms) for entry in entries)


def _take_offset(plan: Plan, partition: int) -> int:
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
    """Follow a record that has its place already."""
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
