"""The committed offsets of all groups, and those that a transaction still holds back.

Written by replay alone. Kafka: OffsetMetadataManager.Offsets and its open transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import FetchedOffset
from kgctl.model.values import TimelineHashMap, integer_hash

V = TypeVar("V")


@dataclass(slots=True)
class LoggedOffset:
    """An offset record and its place in the log: of two, the one further on counts. ``fetched``: the answer, once asked for."""

    position: int
    value: OffsetCommitValue
    fetched: FetchedOffset | None = None


def fetched_offset(partition: TopicPartition, value: OffsetCommitValue | None) -> FetchedOffset:
    """Return the answer to a fetch of a partition of which this is stored."""
    if value is None:
        return FetchedOffset(partition=partition)
    return FetchedOffset(partition=partition, offset=value.offset, leader_epoch=value.leader_epoch, metadata=value.metadata)


class OffsetTable(dict[str, TimelineHashMap[str, TimelineHashMap[int, V]]]):
    """Group -> topic -> partition -> something, in the order in which Kafka's maps of the same shape iterate."""

    def get_at(self, group_id: str, topic: str, partition: int) -> V | None:
        """Return what is stored for a topic's partition, or None."""
        topics = self.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put_at(self, group_id: str, topic: str, partition: int, value: V) -> None:
        """Store a value for a topic's partition."""
        topics = self.get(group_id)
        if topics is None:
            topics = self[group_id] = TimelineHashMap()
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = TimelineHashMap(hash_of=integer_hash)
        partitions[partition] = value

    def pop_at(self, group_id: str, topic: str, partition: int) -> V | None:
        """Take it out; a topic or a group without anything left goes too."""
        topics = self.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None:
            return None
        value = partitions.pop(partition, None)
        if not partitions:
            del topics[topic]
        if not topics:
            del self[group_id]
        return value

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, V]]:
        """Return everything stored for a group, in the order of Java's maps."""
        for topic in self.topics(group_id):
            yield from self.of_topic(group_id, topic)

    def topics(self, group_id: str) -> list[str]:
        """The topics of a group that something is stored for, in Kafka's order."""
        topics = self.get(group_id)
        return [] if topics is None else topics.java_order()

    def of_topic(self, group_id: str, topic: str) -> Iterator[tuple[TopicPartition, V]]:
        """Everything of a topic that has something, in Kafka's order."""
        partitions = self[group_id][topic]
        for partition in partitions.java_order():
            yield TopicPartition(topic, partition), partitions[partition]


class OffsetStore:
    """Committed offsets by group, topic and partition; pending ones by producer as well."""

    def __init__(self) -> None:
        self._position = 0
        self._count = 0
        self._stored: OffsetTable[LoggedOffset] = OffsetTable()
        self._pending: dict[int, OffsetTable[LoggedOffset]] = {}
        self._open: OffsetTable[dict[int, None]] = OffsetTable()
        """The producers that hold back an offset of the partition; ordered, so that nothing depends on hashing."""

    def __len__(self) -> int:
        return self._count

    def group_ids(self) -> list[str]:
        """The groups that have stored offsets, in the order of their first one."""
        return list(self._stored)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        """Return the committed offset, or None."""
        stored = self._stored.get_at(group_id, topic, partition)
        return None if stored is None else stored.value

    def get_each(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> list[tuple[TopicPartition, OffsetCommitValue | None]]:
        """Return each of these partitions with its committed offset, or None."""
        topics = self._stored.get(group_id)
        if topics is None:
            return [(partition, None) for partition in partitions]
        found: list[tuple[TopicPartition, OffsetCommitValue | None]] = []
        for partition in partitions:
            by_number = topics.get(partition[0])
            stored = None if by_number is None else by_number.get(partition[1])
            found.append((partition, None if stored is None else stored.value))
        return found

    def fetch_each(self, group_id: str, partitions: Iterable[TopicPartition]) -> list[FetchedOffset]:
        """Return the answers to a fetch of these partitions; each is made once, as members fetch the same in every rebalance."""
        topics: Mapping[str, Mapping[int, LoggedOffset]] = self._stored.get(group_id, {})
        found, last = [], None
        by_number: Mapping[int, LoggedOffset] = {}
        for partition in partitions:
            topic, number = partition
            if topic != last:
                last, by_number = topic, topics.get(topic, {})
            stored = by_number.get(number)
            if stored is None:
                found.append(FetchedOffset(partition=partition))
            else:
                if stored.fetched is None:
                    stored.fetched = fetched_offset(partition, stored.value)
                found.append(stored.fetched)
        return found

    def of_group(self, group_id: str) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        """The group's committed offsets in Kafka's order. Do not change the store while iterating."""
        for topic in self.topics(group_id):
            yield from self.of_topic(group_id, topic)

    def count_of(self, group_id: str) -> int:
        """Return how many offsets the group has committed."""
        return sum(map(len, self._stored.get(group_id, {}).values()))

    def has_topic(self, group_id: str, topic: str) -> bool:
        """Whether the group has a committed offset of the topic."""
        return topic in self._stored.get(group_id, {})

    def topics(self, group_id: str) -> list[str]:
        """The topics that the group has committed offsets of, in Kafka's order."""
        return self._stored.topics(group_id)

    def of_topic(self, group_id: str, topic: str) -> list[tuple[TopicPartition, OffsetCommitValue]]:
        """Return the group's committed offsets of one of its `topics`, in Kafka's order."""
        partitions = self._stored[group_id][topic]
        return [(TopicPartition(topic, number), partitions[number].value) for number in partitions.java_order()]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction holds back an offset of this partition."""
        return self._open.get_at(group_id, topic, partition) is not None

    def has_open_transactions(self, group_id: str) -> bool:
        """Whether an open transaction holds back any offset of the group."""
        return group_id in self._open

    def pending_partitions(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions that open transactions hold back, in the order of Java's maps."""
        return [partition for partition, _ in self._open.of_group(group_id)]

    def pending(self) -> Iterator[tuple[str, TopicPartition, OffsetCommitValue]]:
        """Everything that transactions hold back, producer by producer. Do not change the store while iterating."""
        for held in self._pending.values():
            for group_id in held:
                for partition, stored in held.of_group(group_id):
                    yield group_id, partition, stored.value

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Store a committed offset."""
        self._position += 1
        self._store(key.group, key.topic, key.partition, LoggedOffset(self._position, value))

    def put_pending(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """An offset that counts once the producer's transaction is committed."""
        self._position += 1
        held = self._pending.setdefault(producer_id, OffsetTable())
        held.put_at(key.group, key.topic, key.partition, LoggedOffset(self._position, value))
        producers = self._open.get_at(key.group, key.topic, key.partition)
        if producers is None:
            self._open.put_at(key.group, key.topic, key.partition, {producer_id: None})
        else:
            producers[producer_id] = None

    def remove(self, key: OffsetCommitKey) -> None:
        """A tombstone: the committed offset and all pending ones of the partition are gone."""
        self._position += 1
        if self._stored.pop_at(key.group, key.topic, key.partition) is not None:
            self._count -= 1
        for producer_id in self._open.pop_at(key.group, key.topic, key.partition) or ():
            self._drop_pending(producer_id, key.group, key.topic, key.partition)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Commit or drop what the producer's transaction held back. A newer committed offset stays."""
        held = self._pending.pop(producer_id, None) or OffsetTable[LoggedOffset]()
        for group_id in held:
            for (topic, partition), pending in held.of_group(group_id):
                self._close(producer_id, group_id, topic, partition)
                stored = self._stored.get_at(group_id, topic, partition)
                if committed and (stored is None or stored.position < pending.position):
                    self._store(group_id, topic, partition, pending)

    def forget_group(self, group_id: str) -> None:
        """Drop everything of a group, what transactions hold back included."""
        self._count -= sum(map(len, (self._stored.pop(group_id, None) or {}).values()))
        self._open.pop(group_id, None)
        for producer_id, held in list(self._pending.items()):
            held.pop(group_id, None)
            if not held:
                del self._pending[producer_id]

    def take_group(self, group_id: str, other: OffsetStore) -> None:
        """Move what another store has of a group here, where it has nothing; places in the log stay in their order."""
        self._position = max(self._position, other._position)
        for mine, found in ((self._stored, other._stored), (self._open, other._open)):
            if group_id in found:
                mine[group_id] = found.pop(group_id)  # type: ignore[assignment]
        self._count += sum(map(len, self._stored.get(group_id, {}).values()))
        for producer_id, held in other._pending.items():
            if group_id in held:
                self._pending.setdefault(producer_id, OffsetTable())[group_id] = held.pop(group_id)

    def durable(self) -> object:
        """Return everything that is stored, without positions in the log, as a value to compare."""
        stored = {(g, *p): s.value for g in self._stored for p, s in self._stored.of_group(g)}
        pending = {(i, g, *p): s.value for i, table in self._pending.items() for g in table for p, s in table.of_group(g)}
        return stored, pending

    def _store(self, group_id: str, topic: str, partition: int, offset: LoggedOffset) -> None:
        if self._stored.get_at(group_id, topic, partition) is None:
            self._count += 1
        self._stored.put_at(group_id, topic, partition, offset)

    def _close(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        producers = self._open.get_at(group_id, topic, partition)
        if producers is not None:
            producers.pop(producer_id, None)
            if not producers:
                self._open.pop_at(group_id, topic, partition)

    def _drop_pending(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        held = self._pending[producer_id]
        held.pop_at(group_id, topic, partition)
        if not held:
            del self._pending[producer_id]
