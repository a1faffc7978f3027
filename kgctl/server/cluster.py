"""The brokers that the server plays. With one broker every question has one answer.

With several, each has a listener of its own, a group belongs to the broker that its partition of ``__consumer_offsets`` falls
to, and a topic's partitions go round the brokers: enough for clients and tools to be tried for routing and for partial
failures.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from kgctl.coordinator.config import partition_for
from kgctl.model.groups import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_TOPIC_ID = uuid5(NAMESPACE_URL, "kgctl:__consumer_offsets")
"""The same in every cluster: the topic is a view of the coordinator's log."""


@dataclass(slots=True)
class Broker:
    """One listener. ``is_up`` False: it was stopped and nobody can reach it."""

    node_id: int
    host: str
    port: int
    is_up: bool = True

    @property
    def address(self) -> str:
        """``HOST:PORT`` as clients take it: IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Cluster:
    """Who leads what."""

    def __init__(self, brokers: list[Broker], offsets_partitions: int, cluster_id: str) -> None:
        self.brokers = brokers
        self.cluster_id = cluster_id
        self.offsets_partitions = offsets_partitions

    @property
    def controller(self) -> Broker:
        """The broker that administers topics: the first one that is up."""
        return next((broker for broker in self.brokers if broker.is_up), self.brokers[0])

    def live_brokers(self) -> list[Broker]:
        return [broker for broker in self.brokers if broker.is_up]

    def leader(self, topic: str, partition: int) -> Broker:
        if len(self.brokers) == 1:
            return self.brokers[0]
        start = 0 if topic == OFFSETS_TOPIC else sum(topic.encode())
        return self.brokers[(start + partition) % len(self.brokers)]

    def offsets_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, partition_for(group_id, self.offsets_partitions))

    def coordinator(self, group_id: str) -> Broker:
        if len(self.brokers) == 1:
            return self.brokers[0]
        return self.leader(*self.offsets_partition(group_id))

    def is_coordinator(self, broker: Broker, group_id: str) -> bool:
        return len(self.brokers) == 1 or self.coordinator(group_id) is broker
