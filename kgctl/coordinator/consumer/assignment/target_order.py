"""The order of a computed target: in which its topics and partitions stand in its record, and in the member's answer.

Kafka writes and hands out partitions in the order of the hash maps in which its assignors collect them, and the sizes of those
maps are part of the order. Only records to the byte need this; who gets what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kgctl.coordinator.consumer.member import Target
from kgctl.model.java_order import copied_set_capacity, grown_capacity, hash_map_order, integer_hash, uuid_hash


def capacity_for(entries: int) -> int:
    """The table of a map or set made for so many entries: ``(int) (entries / 0.75f) + 1``, then the next power of two."""
    return _power_of_two(int(entries / 0.75) + 1)


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


def range_order(target: Target, topic_count: int) -> dict[UUID, Sequence[int]]:
    """As the range assignor collects it: a map made for the member's topics, runs of partitions."""
    capacity = grown_capacity(len(target), capacity_for(topic_count))
    return {topic: target[topic] for topic in hash_map_order(target, capacity=capacity, hash_of=uuid_hash)}


class Share(NamedTuple):
    """A topic and its subscribers; sorts as the uniform assignor goes through the topics of a heterogeneous group."""

    emptiness: float
    subscribers: int
    topic_id: tuple[int, int]
    partitions: int

    @classmethod
    def of(cls, topic_id: UUID, partitions: int, subscribers: int) -> Share:
        """Most partitions a subscriber first, then fewest subscribers, then by id as Java compares them."""
        sign, low = 1 << 63, topic_id.int & 0xFFFF_FFFF_FFFF_FFFF
        return cls(-(partitions / subscribers), subscribers, ((topic_id.int >> 64) ^ sign, low ^ sign), partitions)

    @property
    def rounded_up(self) -> int:
        """How many partitions a subscriber gets."""
        return -(-self.partitions // self.subscribers)


@dataclass(frozen=True, slots=True)
class UniformOrder:
    """As the uniform assignor collects it: a copy of the target before, changed.

    ``shares`` is None for a homogeneous group, where topics come in the order of the target and sets start with the default size.
    """

    shares: Mapping[UUID, Share] | None

    def __call__(self, target: Target, before: Target) -> dict[UUID, Sequence[int]]:
        """``target`` in the order of Java's maps."""
        kept = [topic for topic in hash_map_order(before, hash_of=uuid_hash) if topic in target]
        fresh = [topic for topic in target if topic not in before]
        if self.shares is not None:
            fresh.sort(key=self.shares.__getitem__)
        capacity = grown_capacity(len(before), _power_of_two(len(before)))
        size = len(kept)
        # computeIfAbsent, once a partition, looks first whether the table is full, and puts a new topic in front of its bucket.
        for topic in (*kept, *fresh):
            for call in range(len(target[topic]) - len(before.get(topic, ()))):
                if size > capacity * 3 // 4:
                    capacity *= 2
                size += topic not in before and call == 0
        order = hash_map_order([*reversed(fresh), *kept], capacity=capacity, hash_of=uuid_hash)
        return {topic: self._partitions(topic, target[topic], before.get(topic, ())) for topic in order}

    def _partitions(self, topic: UUID, numbers: Sequence[int], before: Sequence[int]) -> Sequence[int]:
        initial = 16
        if before:
            initial = copied_set_capacity(len(before))
        elif self.shares is not None:
            initial = capacity_for(self.shares[topic].rounded_up)
        return hash_map_order(numbers, capacity=grown_capacity(len(numbers), initial), hash_of=integer_hash)
