"""The topology of a Streams application, as its members declare it to the coordinator of a streams group (KIP-1071).

The names are those of StreamsGroupHeartbeat and of the record StreamsGroupTopologyValue; the lists stand in their order.
"""

from __future__ import annotations

from enum import IntEnum

from kgctl.model.values import frozen_in_order, quick_enum

TopicConfigs = tuple[tuple[str, str], ...]
"""(setting, value)."""


@frozen_in_order
class TopicInfo:
    """An internal topic. ``partitions`` 0: as many as follows from others; ``replication_factor`` 0: the broker's default."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: TopicConfigs = ()


@frozen_in_order
class CopartitionGroup:
    """Sources that must have the same number of partitions: indexes into the lists of their subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@frozen_in_order
class DeclaredSubtopology:
    """A part of a topology, whose sources one task reads together."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    def sources(self) -> tuple[str, ...]:
        """Return the topics that it reads, those of others and those that the application writes itself."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


@frozen_in_order
class StreamsTopology:
    """What a member declares: the subtopologies, and an epoch that grows with every change of them."""

    epoch: int
    subtopologies: tuple[DeclaredSubtopology, ...] = ()


@frozen_in_order
class CreatableTopic:
    """A topic that is to be made. ``replication_factor`` -1: the broker's default."""

    name: str
    num_partitions: int
    replication_factor: int = -1
    configs: TopicConfigs = ()


@quick_enum
class StreamsStatus(IntEnum):
    """What keeps a member of a streams group from its work. Kafka: StreamsGroupHeartbeatResponse.Status."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
