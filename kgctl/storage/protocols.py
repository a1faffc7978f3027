"""What a store of the coordinator's data must be able to do, and the rows that it hands out.

Three logs, each with an implementation in memory and one in SQLite:

* the **record log** (`RecordLog`): what the coordinator appends, in Kafka's own bytes, partition by partition as
  ``__consumer_offsets`` has it. The coordinator is rebuilt from it by replay, so it is compacted: the newest record of each
  key is enough;
* the **commit log** (`CommitLog`): one row for each committed or deleted offset, with the member that did it. Never compacted: it
  answers who moved which offset when;
* the **topics** (`TopicStore`): what `kgctl serve` claims to have, each partition a log of record batches that nobody here
  looks into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.groups import CoordinatorRecord, TopicMetadata, TopicPartition, TransactionMarker
from kgctl.serde.coordinator_records import decode_record

MAX_PARTITIONS = 1_000_000
"""How many partitions a topic can have here; what works on every partition of a topic must end in time."""

DEFAULT_OFFSETS_PARTITIONS = 50
"""Kafka's ``offsets.topic.num.partitions``."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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

    def end_offset(self, partition: int) -> int:
        """The offset that the partition's next record gets."""
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

    def close(self) -> None:
        """Give files back. Safe to call twice."""
        ...


class CommitLog(Protocol):
    """Who committed what when. Filled by `RecordLog.append`."""

    def read(
        self,
        group: str | None = None,
        *,
        partitions: Collection[TopicPartition] | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        max_entries: int | None = None,
    ) -> Iterator[CommitEntry]:
        """Rows in the order in which they were written, from ``since_ms`` (included) to ``until_ms`` (excluded)."""
        ...

    def offsets_at(self, group: str, timestamp_ms: int) -> Mapping[TopicPartition, CommitEntry]:
        """What the group had committed at that moment, commits of that very millisecond included; sorted by partition."""
        ...


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

    def read_batches(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds ``offset`` on: at least one if there is any, then up to ``max_bytes``."""
        ...

    def log_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (log start offset, log end offset)."""
        ...

    def set_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start forwards, as DeleteRecords does; batches before it go."""
        ...

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record at or after that time; None where there is none.

        In a batch whose codec kgctl does not have, the whole batch counts as one record.
        """
        ...

    def offset_of_max_timestamp(self, partition: TopicPartition) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record with the largest timestamp; None in an empty log."""
        ...

    def close(self) -> None:
        """Give files back. Safe to call twice."""
        ...
