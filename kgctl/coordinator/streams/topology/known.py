"""A group's topology, as the coordinator keeps it. Kafka: StreamsTopology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kgctl.coordinator.modern.member import Refusal, java_string_order
from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from kgctl.model.values import frozen_in_order, hash_map_order


@frozen_in_order
class KnownTopology:
    """``subtopologies`` stand in the order of their ``HashMap``."""

    epoch: int
    subtopologies: Mapping[str, DeclaredSubtopology]

    def required_topics(self) -> list[str]:
        """Return all topics that it reads, and those that keep its state, in the order of their ``HashSet``."""
        return hash_map_order(dict.fromkeys(self._topics()))

    def _topics(self) -> Iterator[str]:
        for each in self.subtopologies.values():
            yield from each.sources()
            yield from (topic.name for topic in each.state_changelog_topics)

    def source_topic_map(self) -> dict[str, DeclaredSubtopology]:
        """Return by source which subtopology reads it; of several, the last."""
        return {topic: each for each in self.subtopologies.values() for topic in each.sources()}

    def described(self) -> tuple[DeclaredSubtopology, ...]:
        """Return the subtopologies as StreamsGroupDescribe shows them: all sorted, without copartition groups."""
        return tuple(
            DeclaredSubtopology(
                subtopology_id=each.subtopology_id,
                source_topics=java_sorted(each.source_topics),
                state_changelog_topics=sorted_topics(each.state_changelog_topics),
                repartition_sink_topics=java_sorted(each.repartition_sink_topics),
                repartition_source_topics=sorted_topics(each.repartition_source_topics),
            )
            for each in (self.subtopologies[key] for key in java_sorted(self.subtopologies))
        )


def known_topology(topology: StreamsTopology) -> KnownTopology:
    """The topology that a member declares, or a record.

    Raises:
        Refusal: two subtopologies have the same id (for Kafka, a failure of its own).
    """
    by_id = {each.subtopology_id: each for each in topology.subtopologies}
    if len(by_id) < len(topology.subtopologies):
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return KnownTopology(topology.epoch, {key: by_id[key] for key in hash_map_order(by_id)})


def java_sorted(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as Java sorts them."""
    return tuple(sorted(texts, key=java_string_order))


def sorted_topics(topics: Iterable[TopicInfo]) -> tuple[TopicInfo, ...]:
    """Return topics by name, as Java sorts them."""
    return tuple(sorted(topics, key=lambda topic: java_string_order(topic.name)))
