"""A topology that has been laid out on the topics of the cluster. Kafka: ConfiguredTopology, ConfiguredSubtopology."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kgctl.assignors.task_spec import SubtopologySize
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.topology.known import java_sorted, sorted_topics
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.streams_topology import CreatableTopic, DeclaredSubtopology, StreamsStatus, TopicInfo
from kgctl.model.values import copied_set_capacity, copied_set_order, frozen_in_order, grown_capacity, hash_map_order

InternalTopics = Mapping[str, TopicInfo]
"""By name: the number of partitions is decided."""


@frozen_in_order
class TopicConfigurationProblem:
    """What keeps a group's members from their work, for the answer to their heartbeats."""

    status: StreamsStatus
    message: str


@frozen_in_order
class ConfiguredSubtopology:
    """A subtopology with as many tasks as the source with the most partitions has of those."""

    number_of_tasks: int
    source_topics: tuple[str, ...]
    repartition_source_topics: InternalTopics
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: InternalTopics

    def sources(self) -> list[str]:
        """Return the topics that it reads, in the order of the ``HashSet`` of an answer about endpoints."""
        first = copied_set_order(self.source_topics)
        topics = dict.fromkeys([*first, *self.repartition_source_topics])
        return hash_map_order(topics, capacity=grown_capacity(len(topics), copied_set_capacity(len(first))))


@frozen_in_order
class ConfiguredTopology:
    """``subtopologies``: sorted as Java does, None where the topics are not as they must be.

    ``internal_topics_to_create``: in the order of their ``HashMap``. ``metadata_hash``: of the topics that all this was made of.
    """

    topology_epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    internal_topics_to_create: tuple[CreatableTopic, ...] = ()
    problem: TopicConfigurationProblem | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.problem is None

    def described(self) -> tuple[DeclaredSubtopology, ...]:
        """Return the subtopologies as StreamsGroupDescribe shows them, with numbers of partitions; () where there are none."""
        return tuple(
            DeclaredSubtopology(
                subtopology_id=key,
                source_topics=java_sorted(each.source_topics),
                state_changelog_topics=sorted_topics(each.state_changelog_topics.values()),
                repartition_sink_topics=java_sorted(each.repartition_sink_topics),
                repartition_source_topics=sorted_topics(each.repartition_source_topics.values()),
            )
            for key, each in (self.subtopologies or {}).items()
        )


def sizes(subtopologies: Mapping[str, ConfiguredSubtopology]) -> tuple[SubtopologySize, ...]:
    """Return what a task assignor has to know of the subtopologies. Kafka: TopologyMetadata."""
    return tuple(
        SubtopologySize(key, each.number_of_tasks, is_stateful=bool(each.state_changelog_topics))
        for key, each in subtopologies.items()
    )


TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]


def partitions_of_tasks(
    tasks: Mapping[str, Collection[int]], subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> TopicPartitions:
    """(topic, partitions) that these tasks read, for those who ask the member's endpoint. Kafka: EndpointToPartitionsManager.

    A topic with fewer partitions than there are tasks has them all listed; else the tasks' numbers, whether it has them or not.

    Raises:
        Refusal: a topic is gone (for Kafka, a failure of its own).
    """
    return tuple(
        (topic, _listed(numbers, image, topic)) for key, numbers in tasks.items() for topic in subtopologies[key].sources()
    )


def _listed(numbers: Collection[int], image: MetadataImage, topic: str) -> tuple[int, ...]:
    found = image.topics.get(topic)
    if found is None:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return tuple(numbers) if found.partition_count >= len(numbers) else tuple(sorted(numbers)[: found.partition_count])
