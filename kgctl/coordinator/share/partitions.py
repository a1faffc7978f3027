"""Of which partitions a group's state is kept, being made or being dropped, and what each event makes of that: one record each.

Nothing is changed here: every function returns the value of the next record, its lists in the order of Kafka's hash maps.
Kafka: ShareGroupStatePartitionMetadataInfo, GroupMetadataManager#addInitializingTopicsRecords, #initializeShareGroupState,
#uninitializeShareGroupState, #sharePartitionsEligibleForOffsetDeletion, #shareGroupBuildPartitionDeleteRequest,
#maybeCleanupShareGroupState.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeVar
from uuid import UUID

from kgctl.model.groups import MetadataImage
from kgctl.model.share_records import NamedTopic, NamedTopicPartitions, ShareGroupStatePartitionMetadataValue
from kgctl.model.values import (
    copied_map_order,
    copied_set_capacity,
    copied_set_order,
    frozen_in_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
    uuid_hash,
)

V = TypeVar("V")
UNKNOWN_NAME = "<UNKNOWN>"
"""What a topic that does not exist is called in a record."""


@frozen_in_order
class NotedPartitions:
    """Partitions of one topic in the order of their HashSet, and when they were noted. Kafka: InitMapValue."""

    name: str
    partitions: tuple[int, ...]
    timestamp_ms: int = -1


Noted = Mapping[UUID, NotedPartitions]
"""By topic id, in the order of Kafka's HashMap."""
Starts = Mapping[UUID, Sequence[int]]
_NOTHING: Noted = MappingProxyType({})


def _nothing() -> Noted:
    return _NOTHING


@frozen_in_order
class SharePartitions:
    """What the last record said. ``deleting``: topics, in the order of their HashSet."""

    initializing: Noted = field(default_factory=_nothing)
    initialized: Noted = field(default_factory=_nothing)
    deleting: tuple[UUID, ...] = ()

    def durable(self) -> object:
        """Return all but the times, which are those of replay, as a value to compare."""
        noted = [
            {topic_id: (topic.name, frozenset(topic.partitions)) for topic_id, topic in noted.items()}
            for noted in (self.initializing, self.initialized)
        ]
        return noted, frozenset(self.deleting)


NOBODYS = SharePartitions()
Value = ShareGroupStatePartitionMetadataValue


def by_hash(topics: Mapping[UUID, V], *, newest_first: bool = False) -> dict[UUID, V]:
    """A HashMap to which these were put one by one."""
    return {topic: topics[topic] for topic in hash_map_order(topics, hash_of=uuid_hash, newest_first=newest_first)}


def of_record(value: Value, now_ms: int) -> SharePartitions:
    """Return what a record says, noted now."""
    deleting = hash_map_order(dict.fromkeys(topic.topic_id for topic in value.deleting_topics), hash_of=uuid_hash)
    return SharePartitions(_noted(value.initializing_topics, now_ms), _noted(value.initialized_topics, now_ms), tuple(deleting))


def _noted(topics: Iterable[NamedTopicPartitions], now_ms: int) -> Noted:
    return by_hash({topic.topic_id: NotedPartitions(topic.topic_name, _copied(topic.partitions), now_ms) for topic in topics})


def _copied(numbers: Collection[int], without: Collection[int] = ()) -> tuple[int, ...]:
    """A HashSet copied from these, from which some are taken out."""
    return tuple(number for number in copied_set_order(numbers, hash_of=integer_hash) if number not in without)


def record_value(initializing: Noted, initialized: Noted, deleting: Iterable[UUID], image: MetadataImage) -> Value:
    """Return what a record says of these."""
    names = {topic.topic_id: topic.name for topic in image.topics.values()}
    named = by_hash({topic_id: names.get(topic_id, UNKNOWN_NAME) for topic_id in deleting})
    return Value(_named(initializing), _named(initialized), tuple(NamedTopic(*topic) for topic in named.items()))


def _named(noted: Noted) -> tuple[NamedTopicPartitions, ...]:
    return tuple(NamedTopicPartitions(topic_id, topic.name, topic.partitions) for topic_id, topic in noted.items())


def combined(first: Noted, second: Noted) -> Noted:
    """The partitions of both; what the second says of a topic besides counts. Kafka: GroupMetadataManager#combineInitMaps."""
    keys = [*copied_set_order(list(first), hash_of=uuid_hash), *(topic_id for topic_id in second if topic_id not in first)]
    capacity = grown_capacity(len(keys), copied_set_capacity(len(first)))
    return by_hash(
        {key: _joined(first.get(key), second.get(key)) for key in hash_map_order(keys, capacity=capacity, hash_of=uuid_hash)}
    )


def _joined(first: NotedPartitions | None, second: NotedPartitions | None) -> NotedPartitions:
    old = first.partitions if first is not None else ()
    numbers = dict.fromkeys([*_copied(old), *(second.partitions if second is not None else ())])
    capacity = grown_capacity(len(numbers), copied_set_capacity(len(old)))
    last = second or first
    assert last is not None
    return replace(last, partitions=tuple(hash_map_order(numbers, capacity=capacity, hash_of=integer_hash)))


def to_initialize(
    known: SharePartitions, names: Iterable[str], image: MetadataImage, now_ms: int, retry_interval_ms: int
) -> Noted:
    """The partitions of the topics of these names whose state nobody has begun to make, or not of late.

    Kafka: GroupMetadataManager#subscribedTopicsChangeMap.
    """
    fresh = {key: topic for key, topic in known.initializing.items() if now_ms - topic.timestamp_ms < retry_interval_ms}
    done = combined(known.initialized, by_hash(fresh))
    found = {}
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            continue
        numbers = done[topic.topic_id].partitions if topic.topic_id in done else ()
        if len(numbers) < topic.partition_count or not numbers:
            left = tuple(number for number in range(topic.partition_count) if number not in numbers)
            found[topic.topic_id] = NotedPartitions(name, left, now_ms)
    return by_hash(found, newest_first=True)


def begun(known: SharePartitions | None, topics: Noted, image: MetadataImage) -> Value:
    """The state of these partitions is being made, also of topics that were being dropped."""
    if known is None:
        return record_value(topics, {}, (), image)
    initializing = combined(known.initializing, topics)
    deleting = (topic_id for topic_id in copied_set_order(known.deleting, hash_of=uuid_hash) if topic_id not in initializing)
    return record_value(initializing, known.initialized, deleting, image)


def made(known: SharePartitions | None, topics: Starts, image: MetadataImage) -> Value:
    """The state of these partitions is there; ``topics`` in the order of a HashMap."""
    names = {topic.topic_id: topic.name for topic in image.topics.values()}
    new = by_hash({key: NotedPartitions(names.get(key, UNKNOWN_NAME), tuple(numbers)) for key, numbers in topics.items()})
    if known is None:
        return record_value({}, new, (), image)
    return record_value(_without(known.initializing, topics), combined(known.initialized, new), known.deleting, image)


def given_up(known: SharePartitions, topics: Starts, image: MetadataImage) -> Value:
    """The state of these partitions could not be made."""
    return record_value(_without(known.initializing, topics, copied=False), known.initialized, known.deleting, image)


def _without(noted: Noted, topics: Starts, *, copied: bool = True) -> Noted:
    """Copies of all without these partitions; ``copied``: also of topics of which none are taken away."""
    left = {}
    for topic_id, topic in noted.items():
        if topic_id in topics or copied:
            numbers = _copied(topic.partitions, topics.get(topic_id, ()))
            if numbers or topic_id not in topics:
                left[topic_id] = replace(topic, partitions=numbers)
        else:
            left[topic_id] = topic
    return by_hash(left)


def dropped(known: SharePartitions, is_gone: Callable[[UUID], bool], image: MetadataImage) -> Value | None:
    """Topics have been deleted; None: none of which anything is kept."""
    if not any(is_gone(topic_id) for topic_id in (*known.initializing, *known.initialized, *known.deleting)):
        return None
    left = [
        {topic_id: noted[topic_id] for topic_id in copied_map_order(noted, hash_of=uuid_hash) if not is_gone(topic_id)}
        for noted in (known.initializing, known.initialized)
    ]
    deleting = [topic_id for topic_id in copied_set_order(known.deleting, hash_of=uuid_hash) if not is_gone(topic_id)]
    return record_value(left[0], left[1], deleting, image)


def to_delete_with_group(known: SharePartitions, image: MetadataImage) -> Noted:
    """All partitions whose state has to go with the group, also of topics that were being dropped before.

    Kafka: GroupMetadataManager#shareGroupBuildPartitionDeleteRequest.
    """
    found = combined(known.initialized, known.initializing)
    topics = {topic.topic_id: topic for topic in image.topics.values()}
    again = {
        topic_id: NotedPartitions(topics[topic_id].name, tuple(range(topics[topic_id].partition_count)))
        for topic_id in known.deleting
        if topic_id in topics
    }
    return combined(found, by_hash(again)) if again else found


def deleting_some(known: SharePartitions, topics: Iterable[UUID], image: MetadataImage) -> Value:
    """The state of these topics is being dropped."""
    moved = dict.fromkeys(topics)
    kept = {topic_id: topic for topic_id, topic in known.initialized.items() if topic_id not in moved}
    deleting = dict.fromkeys([*copied_set_order(known.deleting, hash_of=uuid_hash), *moved])
    capacity = grown_capacity(len(deleting), copied_set_capacity(len(known.deleting)))
    order = hash_map_order(deleting, capacity=capacity, hash_of=uuid_hash)
    return record_value(known.initializing, copies(kept), order, image)


def copies(noted: Noted) -> Noted:
    """Return a HashMap with a copy of each topic's partitions."""
    return by_hash({topic_id: replace(topic, partitions=_copied(topic.partitions)) for topic_id, topic in noted.items()})


def deleting_all(topics: Noted) -> Value:
    """The state of all these topics is being dropped, and none is left."""
    names = by_hash({topic_id: topic.name for topic_id, topic in topics.items()})
    return Value(deleting_topics=tuple(NamedTopic(*topic) for topic in names.items()))


def deleted(known: SharePartitions, topics: Collection[UUID], image: MetadataImage) -> Value:
    """The state of these topics, which was being dropped, is gone."""
    deleting = [topic_id for topic_id in copied_set_order(known.deleting, hash_of=uuid_hash) if topic_id not in topics]
    return record_value(known.initializing, known.initialized, deleting, image)
