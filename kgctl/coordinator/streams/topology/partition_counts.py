"""How many partitions internal topics are to have.

Kafka: RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics. What those throw that is no error of the protocol is
UNKNOWN_SERVER_ERROR here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.topology.known import KnownTopology, java_sorted
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.streams_topology import StreamsStatus, TopicInfo
from kgctl.model.values import hash_map_order


class TopicConfigurationError(Exception):
    """The topics are not as the topology needs them. Kafka: TopicConfigurationException."""

    def __init__(self, status: StreamsStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class PartitionCounts:
    """Numbers of partitions: of topics that exist theirs, of others what has been ``decided``."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = image.topics
        self.decided: dict[str, int] = {}

    def get(self, topic: str) -> int | None:
        """Return the number of a topic, None where it has none yet."""
        found = self._topics.get(topic)
        return self.decided.get(topic) if found is None else found.partition_count

    def of(self, topic: str) -> int:
        """Return the number of a topic. Raises `Refusal` where it has none."""
        found = self.get(topic)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        return found


Copartitioned = Mapping[str, Sequence[Sequence[str]]]
"""Of each subtopology the groups of topics that must have the same number of partitions: maps and sets in Java's order."""


def decide_counts(topology: KnownTopology, image: MetadataImage, copartitioned: Copartitioned) -> PartitionCounts:
    """The numbers of all internal topics, where all topics of others exist.

    Raises:
        TopicConfigurationError: copartitioned topics have different numbers.
        Refusal: the topology cannot be.
    """
    counts = PartitionCounts(image)
    counts.decided.update(_repartition_counts(topology, counts))
    _enforce_copartitioning(topology, counts, copartitioned)
    counts.decided.update(_changelog_counts(topology, counts))
    return counts


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _repartition_counts(topology: KnownTopology, counts: PartitionCounts) -> dict[str, int]:
    """As many as the topology says, else as the most of what its writer reads; round after round, until all are known."""
    found = {topic.name: topic.partitions for topic in _repartition_topics(topology) if topic.partitions}
    while True:
        known = len(found)
        if _decide_sinks(topology, found, counts):
            break
        if len(found) == known:
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
    if any(topic.name not in found for topic in _repartition_topics(topology)):
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because "
            "a repartition source topic is never used as a sink topic."
        )
    return found


def _repartition_topics(topology: KnownTopology) -> Iterator[TopicInfo]:
    return (topic for each in topology.subtopologies.values() for topic in each.repartition_source_topics)


def _decide_sinks(topology: KnownTopology, found: dict[str, int], counts: PartitionCounts) -> bool:
    """One round: return whether no topic is left without a number."""
    is_complete = True
    for each in topology.subtopologies.values():
        for sink in each.repartition_sink_topics:
            if sink not in found:
                numbers = [
                    *(found.get(topic.name) for topic in each.repartition_source_topics),
                    *map(counts.get, each.source_topics),
                ]
                known = [number for number in numbers if number is not None]
                if known:
                    found[sink] = max(known)
                else:
                    is_complete = False
    return is_complete


def _enforce_copartitioning(topology: KnownTopology, counts: PartitionCounts, copartitioned: Copartitioned) -> None:
    topics = list(_repartition_topics(topology))
    fixed = {topic.name for topic in topics if topic.partitions}
    repartition = {topic.name for topic in topics}
    for groups in copartitioned.values():
        for group in groups:
            if group:
                counts.decided.update(_coerced(group, counts, fixed, repartition))


def _coerced(group: Sequence[str], counts: PartitionCounts, fixed: Set[str], repartition: Set[str]) -> dict[str, int]:
    """The repartition topics of a group, all with the number that the group has to have."""
    internal = {topic: counts.of(topic) for topic in hash_map_order([topic for topic in group if topic in repartition])}
    external = {topic: counts.of(topic) for topic in group if topic not in repartition}
    if external:
        number = _same(external, external)
    elif fixed:
        # Of the whole topology, whether they are in this group or not: so does Kafka.
        number = _same({topic: counts.of(topic) for topic in fixed}, internal)
    else:
        number = max(internal.values())
    for topic, wanted in internal.items():
        if topic in fixed and wanted != number:
            raise _incorrectly_partitioned(
                f"Number of partitions [{wanted}] of repartition topic [{topic}] "
                f"doesn't match number of partitions [{number}] of the source topic."
            )
    return dict.fromkeys(internal, number)


def _same(numbers: Mapping[str, int], named: Mapping[str, int]) -> int:
    if len(set(numbers.values())) > 1:
        listed = ", ".join(f"{topic}={named[topic]}" for topic in java_sorted(named))
        raise _incorrectly_partitioned(f"Following topics do not have the same number of partitions: [{{{listed}}}]")
    return next(iter(numbers.values()))


def _incorrectly_partitioned(message: str) -> TopicConfigurationError:
    return TopicConfigurationError(StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, message)


def _changelog_counts(topology: KnownTopology, counts: PartitionCounts) -> dict[str, int]:
    """As many as the most of what the subtopology reads."""
    found = {}
    for each in topology.subtopologies.values():
        numbers = [counts.of(topic) for topic in each.sources()]
        if not numbers:
            raise _invalid(f"No source topics found for subtopology {each.subtopology_id}")
        found.update({topic.name: max(numbers) for topic in each.state_changelog_topics})
    return found
