"""What partitions hold: topics from the store, ``__consumer_offsets`` from the coordinator's log."""

from __future__ import annotations

from kgctl.model.partitions import TopicPartition
from kgctl.model.records import TransactionMarker
from kgctl.serde.record_batch import BatchHeader, build_marker
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.producers.index import AbortedTransaction, TransactionIndex
from kgctl.server.signals import DataSignal
from kgctl.storage.offsets_topic import read_batches
from kgctl.storage.protocols import RecordLog, TopicStore

LEADER_EPOCH = 0
"""Nobody is ever elected here."""

INDEXED_BYTES = 1 << 20

OffsetAndTimestamp = tuple[int, int]


class PartitionData:
    """Reads and writes partition logs; the caller has checked that the partition exists.

    ``older_values`` shows commits in ``__consumer_offsets`` as Kafka 4.0 wrote them.
    """

    def __init__(self, topics: TopicStore, record_log: RecordLog, *, older_values: bool = False) -> None:
        self._topics = topics
        self._log = record_log
        self._older_values = older_values
        self.signal = DataSignal()
        self._transactions: dict[TopicPartition, TransactionIndex] = {}

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """Log start offset and log end offset."""
        if partition.topic == OFFSETS_TOPIC:
            return 0, self._log.end_offset(partition.partition)
        return self._topics.log_offsets(partition)

    def append(self, partition: TopicPartition, batch: bytes, header: BatchHeader, now_ms: int) -> int:
        """Append one record batch; its base offset. Whoever waits for data is told."""
        base_offset = self._topics.append_batch(partition, batch, now_ms)
        if header.is_transactional:
            self._transactions.setdefault(partition, TransactionIndex()).wrote(header, base_offset)
        self.signal.notify(partition)
        return base_offset

    def append_marker(self, partition: TopicPartition, marker: TransactionMarker, now_ms: int) -> None:
        """End the producer's transaction in this partition; nothing happens where it has none open."""
        index = self._transactions.get(partition)
        if index is not None and marker.producer_id in index.open:
            batch = build_marker(marker, 0, now_ms, leader_epoch=LEADER_EPOCH)
            index.ended(marker, self._topics.append_batch(partition, batch, now_ms))
            self.signal.notify(partition)

    def stable_offset(self, partition: TopicPartition, end_offset: int) -> int:
        """The end of what no open transaction can still change."""
        index = self._transactions.get(partition)
        return end_offset if index is None else index.stable_offset(end_offset)

    def aborted_between(self, partition: TopicPartition, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records among these offsets."""
        index = self._transactions.get(partition)
        return [] if index is None else index.aborted_between(start, end)

    def index_transactions(self, partition: TopicPartition) -> None:
        """Go through the log of a partition that has transactional records, as a start has to."""
        index = self._transactions[partition] = TransactionIndex()
        offset: int | None = self.bounds(partition)[0]
        while offset is not None:
            offset = index.read(self._topics.read_batches(partition, offset, INDEXED_BYTES))

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        for partition in [partition for partition in self._transactions if partition.topic == topic]:
            del self._transactions[partition]
        self.signal.notify_all()

    def read(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Whole batches from ``offset`` on: at least one where there is any, then as many as fit."""
        if partition.topic == OFFSETS_TOPIC:
            return read_batches(self._log, partition.partition, offset, max_bytes, older_values=self._older_values)
        return self._topics.read_batches(partition, offset, max_bytes)

    def offsets_appended(self, partitions: int) -> None:
        """The coordinator wrote to its log: wake who reads it."""
        if self.signal.is_watched:
            for partition in range(partitions):
                self.signal.notify(TopicPartition(OFFSETS_TOPIC, partition))

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start up to ``offset``."""
        self._topics.set_log_start(partition, offset)

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """The first record that is not older than ``timestamp_ms``."""
        if partition.topic != OFFSETS_TOPIC:
            return self._topics.offset_for_timestamp(partition, timestamp_ms)
        found = (record for record in self._log.read(partition.partition) if record.timestamp_ms >= timestamp_ms)
        return next(((record.offset, record.timestamp_ms) for record in found), None)

    def offset_of_max_timestamp(self, partition: TopicPartition) -> OffsetAndTimestamp | None:
        """The first record that has the highest timestamp."""
        if partition.topic != OFFSETS_TOPIC:
            return self._topics.offset_of_max_timestamp(partition)
        newest = max(self._log.read(partition.partition), key=lambda record: (record.timestamp_ms, -record.offset), default=None)
        return None if newest is None else (newest.offset, newest.timestamp_ms)
