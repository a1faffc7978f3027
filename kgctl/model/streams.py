"""Streams groups (KIP-1071): the topology that their members run, and the tasks that it falls into."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from kgctl.model.values import frozen_in_order

Tasks = Mapping[str, tuple[int, ...]]
"""Subtopology -> partitions of what it reads, ascending: a task each."""


@frozen_in_order
class Subtopology:
    """A part of a topology, whose topics one task reads together. Repartition and changelog topics are Kafka Streams' own."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    changelog_topics: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that it reads."""
        return (*self.source_topics, *self.repartition_source_topics)


@frozen_in_order
class Topology:
    """The subtopologies, by id. None where the coordinator cannot tell: the group is not initialised, or a topic is missing."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] | None = None

    @property
    def _known(self) -> tuple[Subtopology, ...]:
        return self.subtopologies or ()

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that somebody else writes."""
        return frozenset(topic for each in self._known for topic in each.source_topics)

    @property
    def repartition_topics(self) -> frozenset[str]:
        """The topics that the application itself writes, and reads from their beginning."""
        return frozenset(topic for each in self._known for topic in each.repartition_source_topics)

    @property
    def internal_topics(self) -> tuple[str, ...]:
        """The repartition and changelog topics, sorted, but those that a subtopology has as a source too."""
        own = {topic for each in self._known for topic in (*each.repartition_source_topics, *each.changelog_topics)}
        return tuple(sorted(own - self.source_topics))

    def read_by(self, tasks: Tasks) -> Iterator[tuple[str, int]]:
        """Yield topic and partition of all that these tasks read, whether a topic has so many partitions or not."""
        topics = {each.subtopology_id: each.topics for each in self._known}
        for subtopology, numbers in tasks.items():
            yield from ((topic, number) for topic in topics.get(subtopology, ()) for number in numbers)


@frozen_in_order
class StreamsTasks:
    """What a member of a streams group runs: the tasks that process, those that keep a copy of a state, those that catch up with
    one; and what its coordinator wants it to run.
    """

    process_id: str
    topology_epoch: int
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)
    target_active: Tasks = field(default_factory=dict)
    target_standby: Tasks = field(default_factory=dict)
    target_warmup: Tasks = field(default_factory=dict)


_INTERNAL = re.compile(
    r".+-(changelog|repartition|subscription-(registration|response)-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic)",
    re.ASCII,
)


def is_inferred_internal(topic: str, group_id: str) -> bool:
    """Whether a name is one that Kafka Streams gives to a topic of its own, for this application.

    Kafka: StreamsGroupCommand#isInferredInternalTopic, #matchesInternalTopicFormat.
    """
    return topic.startswith(f"{group_id}-") and _INTERNAL.fullmatch(topic) is not None
