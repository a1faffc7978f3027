"""Partitions as integers: topics sorted by name, their partitions one after the other, so that 0..total-1 is Kafka's order.

Members may claim partitions that do not exist (a number past the topic's end). Kafka's sticky assignor does not drop them, so
they get numbers too, from ``total`` on: `PartitionSpace.phantom_topic` says whose.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import accumulate, chain
from typing import Protocol

from kgctl.model.groups import TopicPartition
from kgctl.model.values import frozen_in_order


def java_text_key(text: str) -> bytes:
    """A sort key in the order of ``String.compareTo``, by UTF-16 unit. Use it for all of the strings or for none."""
    return text.encode("utf-16-be", "surrogatepass")


def sorted_like_java(texts: Iterable[str]) -> list[str]:
    """Return strings in the order of ``String.compareTo``, by UTF-16 unit."""
    found = list(texts)
    return sorted(found) if all(map(str.isascii, found)) else sorted(found, key=java_text_key)


class PartitionSpace:
    """The numbering of a group's partitions. Immutable but for phantoms, which are numbered as they are met."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.names = sorted_like_java(counts)
        self.counts = [counts[name] for name in self.names]
        self.offsets = [0, *accumulate(self.counts)]
        self.total = self.offsets[-1]
        self.index = {name: position for position, name in enumerate(self.names)}
        self._bounds = dict(zip(self.names, zip(self.offsets, self.counts, strict=False), strict=True))
        self._phantoms: dict[tuple[int, int], int] = {}
        self._phantom_list: list[tuple[int, int]] = []
        self._topic_of: list[int] | None = None
        self._column_keys: array[int] | None = None
        self._twin: PartitionSpace = self
        self._met: dict[int, tuple[Mapping[str, Sequence[int]], list[int]]] = {}

    @property
    def topic_of(self) -> list[int]:
        """The topic's index for each partition that exists."""
        if self._topic_of is None:
            self._topic_of = list(chain.from_iterable([topic] * count for topic, count in enumerate(self.counts)))
        return self._topic_of

    @property
    def column_keys(self) -> array[int]:
        """A sort key for each partition that exists: by number, then topic."""
        if self._column_keys is None:
            width = len(self.names)
            keys = array("q")
            for topic, count in enumerate(self.counts):
                keys.extend(range(topic, topic + count * width, width))
            self._column_keys = keys
        return self._column_keys

    @cached_property
    def offsets_by_bytes(self) -> dict[bytes, int]:
        """The number of each topic's first partition, by the topic's name in UTF-8."""
        return {name.encode("utf-8", "surrogatepass"): offset for name, offset in zip(self.names, self.offsets, strict=False)}

    @cached_property
    def smallest_count(self) -> int:
        """The number of partitions of the smallest topic."""
        return min(self.counts, default=0)

    def column_key(self, number: int) -> int:
        """The sort key by number, then topic, also of a phantom."""
        if number < self.total:
            return self.column_keys[number]
        topic, partition = self._phantom_list[number - self.total]
        return partition * len(self.names) + topic

    def topic(self, number: int) -> int:
        """The index of a partition's topic, also of a phantom's."""
        if number < self.total:
            return bisect_right(self.offsets, number) - 1
        return self._phantom_list[number - self.total][0]

    def partition(self, number: int) -> TopicPartition:
        """Return the topic and partition that a number stands for."""
        if number >= self.total:
            topic, partition = self._phantom_list[number - self.total]
            return TopicPartition(self.names[topic], partition)
        topic = bisect_right(self.offsets, number) - 1
        return TopicPartition(self.names[topic], number - self.offsets[topic])

    def number(self, topic: int, partition: int) -> int:
        """The number of a partition of the topic with this index; a phantom gets one if need be."""
        if 0 <= partition < self.counts[topic]:
            return self.offsets[topic] + partition
        key = (topic, partition)
        if key not in self._phantoms:
            self._phantoms[key] = self.total + len(self._phantom_list)
            self._phantom_list.append(key)
        return self._phantoms[key]

    def phantom_end(self, number: int) -> int:
        """The number of the first existing partition that sorts after this phantom."""
        topic, partition = self._phantom_list[number - self.total]
        return self.offsets[topic] if partition < 0 else self.offsets[topic + 1]

    def numbers(self, owned: Mapping[str, Sequence[int]] | NumberedPartitions) -> Sequence[int]:
        """A member's partitions as numbers, those of other topics left out."""
        if not isinstance(owned, Mapping):
            ready = owned.numbers(self)
            if ready is not None:
                return ready
            owned = owned.by_topic()
        if not owned:
            return ()
        # Asked again for the same mapping, when an assignment is compared with what was there before.
        met = self._met.get(id(owned))
        if met is None:
            met = self._met[id(owned)] = owned, self._numbers(owned)
        return met[1]

    def _numbers(self, owned: Mapping[str, Sequence[int]]) -> list[int]:
        found: list[int] = []
        bounds = self._bounds
        for name, partitions in owned.items():
            if name not in bounds or not partitions:
                continue
            offset, count = bounds[name]
            if len(partitions) == 1 and 0 <= partitions[0] < count:
                found.append(offset + partitions[0])
            elif min(partitions) >= 0 and max(partitions) < count:
                found.extend([offset + partition for partition in partitions])
            else:
                found.extend([self.number(self.index[name], partition) for partition in partitions])
        return found

    def is_twin(self, other: PartitionSpace) -> bool:
        """Whether the other space numbers the same partitions alike; the last one that did is remembered."""
        if other is self._twin:
            return True
        if other._phantoms or other.names != self.names or other.counts != self.counts:
            return False
        self._twin = other
        return True

    def by_topic(self, ids: Sequence[int]) -> dict[str, list[int]]:
        """Numbers as ``{topic: [partitions]}``, topics by name, partitions ascending."""
        ordered = sorted(ids)
        size, offsets, names = len(ordered), self.offsets, self.names
        if not size:
            return {}
        if ordered[-1] >= self.total:
            return self._by_topic_with_phantoms(ordered)
        topics = list(map(self.topic_of.__getitem__, ordered))
        if len(set(topics)) == size:
            return {names[topic]: [number - offsets[topic]] for topic, number in zip(topics, ordered, strict=True)}
        result: dict[str, list[int]] = {}
        start = 0
        while start < size:
            topic = topics[start]
            offset = offsets[topic]
            end = bisect_left(ordered, offsets[topic + 1], start)
            result[names[topic]] = [number - offset for number in ordered[start:end]]
            start = end
        return result

    def _by_topic_with_phantoms(self, ids: Iterable[int]) -> dict[str, list[int]]:
        result: dict[str, list[int]] = {}
        for name, partition in sorted(map(self.partition, ids)):
            result.setdefault(name, []).append(partition)
        return result


class NumberedPartitions(Protocol):
    """Partitions in another form than by name, which may know their numbers at once."""

    def numbers(self, space: PartitionSpace) -> Sequence[int] | None:
        """The numbers in this space, those of other topics left out; None if names are needed to find them."""
        ...

    def by_topic(self) -> Mapping[str, Sequence[int]]:
        """Return the partitions as ``{topic: [partitions, ascending]}``."""
        ...


@frozen_in_order
class PartitionIds:
    """Partitions as numbers of a space: a range, an array or a list."""

    space: PartitionSpace
    ids: Sequence[int] = field(default=())

    def numbers(self, space: PartitionSpace) -> Sequence[int] | None:
        """The numbers as they are, if the other space numbers the same partitions alike."""
        return self.ids if space.is_twin(self.space) else None

    def by_topic(self) -> Mapping[str, Sequence[int]]:
        """Return the partitions as ``{topic: [partitions, ascending]}``."""
        return self.space.by_topic(self.ids)
