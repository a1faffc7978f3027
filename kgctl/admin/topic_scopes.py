"""Which partitions a command is about: ``orders``, ``orders:3``, ``orders:0,2-5``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kgctl.errors import NotFoundError, UsageError
from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order

_MAX_PARTITION = 2**31 - 1


@frozen_in_order
class TopicScope:
    """A topic, whole (``ranges`` None) or in part: ranges of partitions, both ends included, ascending and disjoint."""

    topic: str
    ranges: tuple[tuple[int, int], ...] | None = None

    def __contains__(self, partition: TopicPartition) -> bool:
        if partition.topic != self.topic:
            return False
        return self.ranges is None or any(low <= partition.partition <= high for low, high in self.ranges)

    def __str__(self) -> str:
        """As it is written: ``orders:0,2-5``."""
        ranges = ",".join(f"{low}-{high}" if low < high else str(low) for low, high in self.ranges or ())
        return f"{self.topic}:{ranges}" if ranges else self.topic

    def resolve(self, partition_count: int) -> tuple[TopicPartition, ...]:
        """The partitions meant, ascending.

        Raises:
            NotFoundError: the topic has no such partition; names the first.
        """
        if self.ranges is None:
            return tuple(TopicPartition(self.topic, number) for number in range(partition_count))
        for low, high in self.ranges:
            if high >= partition_count:
                missing = TopicPartition(self.topic, max(low, partition_count))
                raise NotFoundError(
                    f"partition {missing} does not exist: topic {self.topic!r} has {partition_count} partitions",
                    code="UNKNOWN_TOPIC_OR_PARTITION",
                    topic=missing.topic,
                    partition=missing.partition,
                )
        numbers = (number for low, high in self.ranges for number in range(low, high + 1))
        return tuple(TopicPartition(self.topic, number) for number in numbers)


def parse_topic_scopes(texts: Iterable[str]) -> tuple[TopicScope, ...]:
    """Read each ``--topic``; several for one topic are united. In the order of first mention.

    Raises:
        UsageError: not a topic, or not partitions after the colon.
    """
    united: dict[str, TopicScope] = {}
    for text in texts:
        scope = _parse(text)
        known = united.get(scope.topic)
        united[scope.topic] = scope if known is None else _union(known, scope)
    return tuple(united.values())


def is_within(partition: TopicPartition, scopes: Iterable[TopicScope]) -> bool:
    """Return whether one of the scopes has the partition."""
    return any(partition in scope for scope in scopes)


def absent(scopes: Iterable[TopicScope], there: Iterable[TopicPartition]) -> Iterator[TopicScope]:
    """What scopes name and is not there: as it was given where nothing of it is, else the partitions that are not."""
    numbers: dict[str, list[int]] = {}
    for partition in sorted(set(there)):
        numbers.setdefault(partition.topic, []).append(partition.partition)
    for scope in scopes:
        of_topic = numbers.get(scope.topic, [])
        ranges = tuple(gap for each in scope.ranges or () for gap in _gaps(each, of_topic))
        if ranges or not of_topic:
            yield TopicScope(scope.topic, ranges or None)


def _gaps(bounds: tuple[int, int], numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    low, high = bounds
    for number in (*(each for each in numbers if low <= each <= high), high + 1):
        if low < number:
            yield low, number - 1
        low = number + 1


def present_scopes(scopes: Iterable[TopicScope], topics: Mapping[str, int]) -> tuple[TopicScope, ...]:
    """The scopes without the topics and partitions that do not exist."""
    found = []
    for scope in scopes:
        count = topics.get(scope.topic, 0)
        ranges = None if scope.ranges is None else tuple((low, min(high, count - 1)) for low, high in scope.ranges if low < count)
        if count and ranges != ():
            found.append(TopicScope(scope.topic, ranges))
    return tuple(found)


def resolve_scopes(scopes: Iterable[TopicScope], topics: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    """The partitions of all scopes; ``topics`` maps the topics that exist to their number of partitions.

    Raises:
        NotFoundError: a topic or a partition does not exist; names it.
    """
    partitions: list[TopicPartition] = []
    for scope in scopes:
        if scope.topic not in topics:
            raise NotFoundError(f"topic {scope.topic!r} does not exist", code="UNKNOWN_TOPIC_OR_PARTITION", topic=scope.topic)
        partitions.extend(scope.resolve(topics[scope.topic]))
    return tuple(partitions)


def _parse(text: str) -> TopicScope:
    topic, colon, spec = text.partition(":")
    if not topic:
        raise UsageError(f"--topic {text!r} names no topic")
    if "," in topic:
        several = " ".join(f"--topic {each}" for each in topic.split(",") if each)
        raise UsageError(f"--topic {text!r}: no topic has a comma in its name; repeat the option: {several}")
    if not colon:
        return TopicScope(topic)
    return TopicScope(topic, _merged([_range(part, text) for part in spec.split(",")]))


def _range(part: str, text: str) -> tuple[int, int]:
    low, dash, high = part.strip().partition("-")
    bounds = [low, high] if dash else [low, low]
    if not all(bound.isdecimal() and bound.isascii() and len(bound) <= 10 for bound in bounds):
        raise UsageError(f"--topic {text!r}: {part!r} is not a partition; write topic:3 or topic:0,2-5")
    first, last = int(bounds[0]), int(bounds[1])
    if first > last:
        raise UsageError(f"--topic {text!r}: the range {part!r} ends before it begins")
    if last > _MAX_PARTITION:
        raise UsageError(f"--topic {text!r}: {part!r} is larger than any partition number")
    return first, last


def _union(one: TopicScope, other: TopicScope) -> TopicScope:
    if one.ranges is None or other.ranges is None:
        return TopicScope(one.topic)
    return TopicScope(one.topic, _merged([*one.ranges, *other.ranges]))


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)
