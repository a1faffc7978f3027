"""Topics in memory."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from kgctl.errors import NotFoundError, RefusedError, UsageError
from kgctl.model.partitions import TopicMetadata, TopicPartition
from kgctl.serde.record_batch import parse_header, place
from kgctl.storage.partition_log import LEADER_EPOCH, checked_batch, first_at_or_after


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
    """See `kgctl.storage.protocols.TopicStore`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._topics: dict[str, TopicMetadata] = {}
        self._logs: dict[TopicPartition, _Log] = {}

    def topics(self) -> Mapping[str, TopicMetadata]:
        """All topics, sorted by name."""
        with self._lock:
            return dict(sorted(self._topics.items()))

    def create_topic(self, name: str, partitions: int, topic_id: UUID) -> TopicMetadata:
        """Create a topic."""
        with self._lock:
            if name in self._topics:
                raise RefusedError(f"topic {name} exists already", topic=name)
            topic = TopicMetadata(name, topic_id, check_partition_count(name, partitions))
            self._topics[name] = topic
            self._add_logs(topic)
            return topic

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records."""
        with self._lock:
            topic = self._topic(name)
            del self._topics[name]
            for number in range(topic.partition_count):
                del self._logs[TopicPartition(name, number)]

    def set_partition_count(self, name: str, partitions: int) -> TopicMetadata:
        """More partitions."""
        with self._lock:
            topic = self._topic(name)
            check_growth(topic, partitions)
            grown = self._topics[name] = replace(topic, partition_count=partitions)
            self._add_logs(grown)
            return grown

    def append_batch(
        self,
        partition: TopicPartition,
        batch: bytes,
        now_ms: int,  # noqa: ARG002 - CreateTime
        *,
        at: int | None = None,
    ) -> int:
        """Append one batch."""
        header = checked_batch(batch)
        with self._lock:
            log = self._log(partition)
            base = max(log.end, at or 0)
            log.bases.append(base)
            log.batches.append(place(batch, base, LEADER_EPOCH))
            log.end = base + header.last_offset_delta + 1
            return base

    def read_batches(self, partition: TopicPartition, offset: int, max_bytes: int) -> bytes:
        """Batches from ``offset`` on."""
        with self._lock:
            log = self._log(partition)
            found = bytearray()
            for batch in log.batches[log.index_of(offset) :] if offset < log.end else ():
                if found and len(found) + len(batch) > max_bytes:
                    break
                found += batch
            return bytes(found)

    def log_offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """(log start offset, log end offset)."""
        with self._lock:
            log = self._log(partition)
            return log.start, log.end

    def set_log_start(self, partition: TopicPartition, offset: int) -> None:
        """Move the log start forwards."""
        with self._lock:
            log = self._log(partition)
            log.start = max(log.start, min(offset, log.end))
            keep = log.index_of(log.start) if log.start < log.end else len(log.batches)
            del log.bases[:keep], log.batches[:keep]

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> tuple[int, int] | None:
        """The first record at or after that time."""
        with self._lock:
            log = self._log(partition)
            for batch in log.batches:
                found = first_at_or_after(batch, parse_header(batch), timestamp_ms, log.start)
                if found is not None:
                    return found
            return None

    def offset_of_max_timestamp(self, partition: TopicPartition) -> tuple[int, int] | None:
        """The first record with the largest timestamp."""
        with self._lock:
            batches = self._log(partition).batches
            newest = max((parse_header(batch).max_timestamp_ms for batch in batches), default=None)
        return None if newest is None else self.offset_for_timestamp(partition, newest)

    def close(self) -> None:
        """Nothing to give back."""

    def _topic(self, name: str) -> TopicMetadata:
        try:
            return self._topics[name]
        except KeyError:
            raise unknown_topic(name) from None

    def _log(self, partition: TopicPartition) -> _Log:
        try:
            return self._logs[partition]
        except KeyError:
            raise unknown_partition(partition) from None

    def _add_logs(self, topic: TopicMetadata) -> None:
        for number in range(topic.partition_count):
            self._logs.setdefault(TopicPartition(topic.name, number), _Log())


def check_partition_count(name: str, partitions: int) -> int:
    """``partitions``, which must be at least 1."""
    if partitions < 1:
        raise UsageError(f"topic {name}: {partitions} partitions; a topic has at least one", topic=name)
    return partitions


def check_growth(topic: TopicMetadata, partitions: int) -> None:
    """Raise `kgctl.errors.UsageError` where a topic would shrink."""
    if partitions < topic.partition_count:
        raise UsageError(
            f"topic {topic.name} has {topic.partition_count} partitions; they cannot become {partitions}", topic=topic.name
        )


def unknown_topic(name: str) -> NotFoundError:
    """The error for a topic that does not exist."""
    return NotFoundError(f"topic {name} does not exist", code="UNKNOWN_TOPIC_OR_PARTITION", topic=name)


def unknown_partition(partition: TopicPartition) -> NotFoundError:
    """The error for a partition that does not exist."""
    return NotFoundError(
        f"partition {partition} does not exist",
        code="UNKNOWN_TOPIC_OR_PARTITION",
        topic=partition.topic,
        partition=partition.partition,
    )
