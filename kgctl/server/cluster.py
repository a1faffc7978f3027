"""The brokers that the server plays and the topics that it claims to have, with the image of them that the coordinator gets.

With one broker every question has one answer. With several, each has listeners of its own, a group belongs to the broker that
its partition of ``__consumer_offsets`` falls to, and a topic's partitions go round the brokers: enough for clients and tools to
be tried for routing and for partial failures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from kgctl.errors import UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicMetadata, TopicPartition, topic_name_problem
from kgctl.model.requests import TopicsChanged
from kgctl.model.values import partition_for
from kgctl.server.listeners import Endpoint
from kgctl.server.runtime import EVENT_ID
from kgctl.storage.record_log import TopicStore

OFFSETS_TOPIC = "__consumer_offsets"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state", "__share_group_state"})
"""What clients may not write to. Kafka: Topic#isInternal."""
OFFSETS_TOPIC_ID = uuid5(NAMESPACE_URL, "kgctl:__consumer_offsets")
"""The same in every cluster: the topic is a view of the coordinator's log."""


@dataclass(slots=True)
class Broker:
    """One broker. ``endpoints``: one for each of the cluster's listeners. ``is_up`` False: it was stopped, nobody reaches it."""

    node_id: int
    endpoints: Sequence[Endpoint]
    is_up: bool = True

    def at(self, listener: str) -> Endpoint:
        """Where it is found by whoever came in by this listener, of whatever broker."""
        return next((each for each in self.endpoints if each.listener.name == listener), self.endpoints[0])


class Cluster:
    """The brokers, and which of them leads what."""

    def __init__(self, brokers: list[Broker], offsets_partitions: int, cluster_id: str) -> None:
        self.brokers = brokers
        self.cluster_id = cluster_id
        self.offsets_partitions = offsets_partitions
        self._placed: dict[TopicPartition, tuple[int, ...]] = {}
        """The replicas of partitions that were moved, the preferred leader first; not kept."""

    @property
    def controller(self) -> Broker:
        """The broker that administers topics: the first one that is up."""
        return next((broker for broker in self.brokers if broker.is_up), self.brokers[0])

    def live_brokers(self) -> list[Broker]:
        return [broker for broker in self.brokers if broker.is_up]

    def leader(self, topic: str, partition: int) -> Broker:
        """The broker that leads this partition; of one that was moved, its first replica that is up."""
        if len(self.brokers) == 1:
            return self.brokers[0]
        if self._placed and (placed := self._placed.get(TopicPartition(topic, partition))):
            brokers = [broker for node_id in placed for broker in self.brokers if broker.node_id == node_id]
            return next((broker for broker in brokers if broker.is_up), brokers[0])
        start = 0 if topic == OFFSETS_TOPIC else sum(topic.encode())
        return self.brokers[(start + partition) % len(self.brokers)]

    def replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """The nodes that have this partition, the preferred leader first."""
        return self._placed.get(TopicPartition(topic, partition)) or (self.leader(topic, partition).node_id,)

    @property
    def has_moved(self) -> bool:
        """Whether any partition was moved."""
        return bool(self._placed)

    def is_up(self, node_id: int) -> bool:
        return any(broker.is_up for broker in self.brokers if broker.node_id == node_id)

    def place(self, partition: TopicPartition, node_ids: Sequence[int]) -> None:
        """Move a partition to these nodes, the preferred leader first."""
        if tuple(node_ids) != self.replicas(*partition):
            self._placed[partition] = tuple(node_ids)

    def forget(self, topic: str) -> None:
        """What is made under this name again goes where it would have gone."""
        self._placed = {partition: placed for partition, placed in self._placed.items() if partition.topic != topic}

    def offsets_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, partition_for(group_id, self.offsets_partitions))

    def coordinator(self, group_id: str) -> Broker:
        if len(self.brokers) == 1:
            return self.brokers[0]
        return self.leader(*self.offsets_partition(group_id))

    def is_coordinator(self, broker: Broker, group_id: str) -> bool:
        return len(self.brokers) == 1 or self.coordinator(group_id) is broker


MAX_RECORDS_OF_A_CHANGE = 10_000
"""What one request may make of topics, configs and partitions (Kafka: QuorumController.MAX_RECORDS_PER_USER_OP)."""


def new_topic_id() -> UUID:
    return uuid4()


def _shape(name: str) -> str:
    return name.replace(".", "_")


class Catalog:
    """Topics by name and by id. Changes go to the store first, then to the coordinator; they may come from any thread.

    ``__consumer_offsets`` is always there: it shows the coordinator's log and can be neither written nor changed.
    """

    def __init__(self, store: TopicStore, offsets_partitions: int) -> None:
        self._store = store
        self._offsets = TopicMetadata(OFFSETS_TOPIC, OFFSETS_TOPIC_ID, offsets_partitions)
        self._version = 0
        self.on_change: Callable[[TopicsChanged], None] = lambda _: None
        self.image = MetadataImage()
        self._by_id: dict[UUID, TopicMetadata] = {}
        self.ids: dict[str, UUID] = {}
        """Topic name to id."""
        self._shapes: dict[str, str] = {}
        self._refreshing = threading.Lock()
        self.refresh()

    def refresh(self) -> None:
        """Take the store's topics as they are now, and tell the coordinator."""
        with self._refreshing:
            self._version += 1
            topics: dict[str, TopicMetadata] = dict(self._store.topics())
            topics[OFFSETS_TOPIC] = self._offsets
            self.image = MetadataImage(topics, self._version)
            self._by_id = {topic.topic_id: topic for topic in topics.values()}
            self.ids = {topic.name: topic.topic_id for topic in topics.values()}
            self._shapes = {_shape(name): name for name in topics if "." in name or "_" in name}
            self.on_change(TopicsChanged(request_id=EVENT_ID, image=self.image))

    @property
    def topics(self) -> Mapping[str, TopicMetadata]:
        return self.image.topics

    def get(self, name: str) -> TopicMetadata | None:
        return self.image.topics.get(name)

    def by_id(self, topic_id: UUID | None) -> TopicMetadata | None:
        return None if topic_id is None else self._by_id.get(topic_id)

    def find(self, name: str | None, topic_id: UUID | None) -> TopicMetadata | None:
        """By id where one is given, as newer versions do, else by name."""
        return self.by_id(topic_id) if topic_id is not None else self.get(name or "")

    def has_partition(self, partition: TopicPartition) -> bool:
        topic = self.get(partition.topic)
        return topic is not None and 0 <= partition.partition < topic.partition_count

    def create(self, counts: Mapping[str, int]) -> None:
        """Make topics with these partition counts, all or none. The caller has asked `creation_error`.

        Raises `kgctl.errors.StorageError`, and `UsageError` for more partitions than a topic can have, or a name that collides.
        """
        for name in counts:
            if (existing := self.collides_with(name)) is not None:
                raise UsageError(f"topic '{name}' collides with '{existing}': a broker takes '.' and '_' for the same here")
        self._store.create_topics([TopicMetadata(name, new_topic_id(), count) for name, count in counts.items()])
        self.refresh()

    def creation_error(self, name: str, partition_count: int) -> ErrorCode:
        """Return why a topic cannot be made, or NONE."""
        if topic_name_problem(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if name in self.topics or name in self.oversized():
            return ErrorCode.TOPIC_ALREADY_EXISTS
        if self.collides_with(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return ErrorCode.NONE if partition_count > 0 else ErrorCode.INVALID_PARTITIONS

    def collides_with(self, name: str) -> str | None:
        """Return a topic that differs in "." and "_" alone: a broker does not make it. Kafka: Topic#unifyCollisionChars."""
        return None if name in self.topics else self._shapes.get(_shape(name))

    def oversized(self) -> Mapping[str, int]:
        """Topics that the folder has with more partitions than a topic can have; they can only be deleted."""
        return self._store.oversized_topics()

    def delete(self, names: Collection[str]) -> None:
        """Remove topics with their records; the coordinator drops the offsets committed for them. Raises `StorageError`."""
        self._store.delete_topics(names)
        self.refresh()

    def grow(self, counts: Mapping[str, int]) -> None:
        """Give topics more partitions, all or none. Raises as `create` does."""
        self._store.set_partition_counts(counts)
        self.refresh()
