"""A topology is laid out on the topics that there are: the tasks, and the topics to be made. Kafka: InternalTopicManager."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.topology.configured import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopics,
    TopicConfigurationProblem,
)
from kgctl.coordinator.streams.topology.known import KnownTopology, java_sorted
from kgctl.coordinator.streams.topology.partition_counts import PartitionCounts, TopicConfigurationError, decide_counts
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, topic_name_problem
from kgctl.model.streams_topology import CreatableTopic, DeclaredSubtopology, StreamsStatus, TopicInfo
from kgctl.model.values import HashMap, copied_set_order, hash_map_order

_MOST_SHOWN = 3


def configure_topics(topology: KnownTopology, image: MetadataImage, metadata_hash: int) -> ConfiguredTopology:
    """The topology on these topics; where they are not as it needs them, the answer says so.

    Raises:
        Refusal: there are no topics with which it could be; UNKNOWN_SERVER_ERROR for what Kafka takes for a failure of its own.
    """
    copartitioned = {key: _copartition_groups(each) for key, each in topology.subtopologies.items()}
    try:
        _check_sources(topology, image)
        counts = decide_counts(topology, image, copartitioned)
        configured = {key: _configured(each, counts) for key, each in topology.subtopologies.items()}
        subtopologies = {key: configured[key] for key in java_sorted(configured)}
        missing = _missing_topics(subtopologies, topology, image)
    except TopicConfigurationError as error:
        return ConfiguredTopology(
            topology.epoch, metadata_hash, None, problem=TopicConfigurationProblem(error.status, error.message)
        )
    return ConfiguredTopology(topology.epoch, metadata_hash, subtopologies, missing, _missing_problem(missing))


def _missing_problem(missing: Collection[CreatableTopic]) -> TopicConfigurationProblem | None:
    if not missing:
        return None
    words = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
    return TopicConfigurationProblem(StreamsStatus.MISSING_INTERNAL_TOPICS, words)


def _copartition_groups(subtopology: DeclaredSubtopology) -> list[list[str]]:
    return [
        hash_map_order(
            dict.fromkeys(
                [
                    *_picked(subtopology.source_topics, group.source_topics),
                    *_picked([topic.name for topic in subtopology.repartition_source_topics], group.repartition_source_topics),
                ]
            )
        )
        for group in subtopology.copartition_groups
    ]


def _picked(topics: Collection[str], indexes: Iterable[int]) -> list[str]:
    by_index = dict(enumerate(topics))
    try:
        return [by_index[index] for index in indexes]
    except KeyError:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _check_sources(topology: KnownTopology, image: MetadataImage) -> None:
    sources = {topic for each in topology.subtopologies.values() for topic in each.source_topics}
    missing = java_sorted(sources - image.topics.keys())
    if missing:
        raise TopicConfigurationError(StreamsStatus.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


def _summary(topics: Collection[str]) -> str:
    shown = ", ".join(list(topics)[:_MOST_SHOWN])
    return f"{shown} and {len(topics) - _MOST_SHOWN} additional topics" if len(topics) > _MOST_SHOWN else shown


def _configured(subtopology: DeclaredSubtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    number_of_tasks = max(map(counts.of, subtopology.sources()))
    found = ConfiguredSubtopology(
        number_of_tasks,
        tuple(copied_set_order(subtopology.source_topics)),
        _internal_topics(subtopology.repartition_source_topics, counts),
        tuple(copied_set_order(subtopology.repartition_sink_topics)),
        _internal_topics(subtopology.state_changelog_topics, counts),
    )
    if number_of_tasks < 1:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return found


def _internal_topics(topics: Iterable[TopicInfo], counts: PartitionCounts) -> InternalTopics:
    found: dict[str, TopicInfo] = {}
    for topic in topics:
        internal = _internal_topic(topic, counts)
        if topic.name in found:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        found[topic.name] = internal
    return found


def _internal_topic(topic: TopicInfo, counts: PartitionCounts) -> TopicInfo:
    """A topic with its number of partitions; what has been decided is not looked at where the topology says one."""
    configs = dict(topic.topic_configs)
    partitions = topic.partitions or counts.decided.get(topic.name)
    if partitions is None or len(configs) < len(topic.topic_configs):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    problem = topic_name_problem(topic.name)
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if partitions < 1:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    ordered = tuple((name, configs[name]) for name in hash_map_order(configs))
    return TopicInfo(topic.name, partitions, topic.replication_factor, ordered)


def _missing_topics(
    subtopologies: Mapping[str, ConfiguredSubtopology], topology: KnownTopology, image: MetadataImage
) -> tuple[CreatableTopic, ...]:
    wanted: HashMap[str, TopicInfo] = HashMap()
    for each in subtopologies.values():
        for topic in (*each.repartition_source_topics.values(), *each.state_changelog_topics.values()):
            wanted[topic.name] = topic
    for name in topology.required_topics():
        if name in image.topics and name in wanted:
            _check_existing(wanted.pop(name), image.topics[name].partition_count)
    return tuple(
        CreatableTopic(topic.name, topic.partitions, topic.replication_factor or -1, topic.topic_configs)
        for topic in wanted.java_values()
    )


def _check_existing(topic: TopicInfo, found: int) -> None:
    if topic.partitions != found:
        raise TopicConfigurationError(
            StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS,
            f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions}, found {found}",
        )
