"""The order in which Java goes through a target: a map of sets, as it was, or copied and changed step by step."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kgctl.assignors.spec import Target
from kgctl.model.values import (
    copied_set_capacity,
    copied_set_order,
    grown_capacity,
    hash_map_order,
    integer_hash,
    power_of_two_at_least,
    uuid_hash,
)


def capacity_for(entries: int) -> int:
    """The table of a map or set made for so many entries: ``(int) (entries / 0.75f) + 1``, then the next power of two."""
    return power_of_two_at_least(int(entries / 0.75) + 1)


@dataclass(slots=True)
class Numbers:
    """A ``HashSet`` of partitions: in the order of insertion, and the size of its table."""

    capacity: int
    numbers: dict[int, None] = field(default_factory=dict)

    def add(self, number: int) -> None:
        """``add``: the table grows when it is full after that."""
        self.numbers[number] = None
        if len(self.numbers) > self.capacity * 3 // 4:
            self.capacity *= 2

    def ordered(self) -> Sequence[int]:
        """Return the contents in the order in which Java iterates over them."""
        return hash_map_order(self.numbers, capacity=self.capacity, hash_of=integer_hash)


class CopiedTarget:
    """A deep copy of a member's target: a ``HashMap`` of sets, ``_order`` holding its topics as they stand in their buckets."""

    def __init__(self, before: Target) -> None:
        self._order = hash_map_order(before, hash_of=uuid_hash)
        self._capacity = grown_capacity(len(before), power_of_two_at_least(len(before)))
        self._sets = {
            topic: Numbers(copied_set_capacity(len(numbers)), dict.fromkeys(numbers)) for topic, numbers in before.items()
        }

    def remove_others(self, subscribed: Container[UUID]) -> None:
        """Topics that the member does not subscribe to any more go first of all."""
        for topic in [topic for topic in self._order if topic not in subscribed]:
            self.remove_topic(topic)

    def remove_topic(self, topic: UUID) -> None:
        """Take all partitions of a topic away."""
        self._order.remove(topic)
        del self._sets[topic]

    def add(self, topic: UUID, number: int, set_capacity: int) -> None:
        """``computeIfAbsent``: looks first whether the table is full, and puts a new topic in front of its bucket."""
        if len(self._order) > self._capacity * 3 // 4:
            self._capacity *= 2
        if topic not in self._sets:
            self._order.insert(0, topic)
            self._sets[topic] = Numbers(set_capacity)
        self._sets[topic].add(number)

    def take(self, topic: UUID, number: int) -> bool:
        """Take a partition away, if it is there; the topic stays, be it without any."""
        return topic in self._sets and self._sets[topic].numbers.pop(number, self) is None

    def remove(self, topic: UUID, number: int) -> None:
        """Take a partition away, and the topic with its last one."""
        self.take(topic, number)
        if not self._sets[topic].numbers:
            self.remove_topic(topic)

    def ordered(self) -> dict[UUID, Sequence[int]]:
        """Return the contents in the order in which Java iterates over them."""
        order = hash_map_order(self._order, capacity=self._capacity, hash_of=uuid_hash)
        return {topic: self._sets[topic].ordered() for topic in order}


def unmoved_target(target: Target) -> dict[UUID, Sequence[int]]:
    """A target that nothing was taken from and nothing added to: not even copied."""
    return {topic: copied_set_order(target[topic], hash_of=integer_hash) for topic in hash_map_order(target, hash_of=uuid_hash)}


def have_same_partitions(left: Target, right: Target) -> bool:
    """Whether two targets differ in their order at most."""
    if left == right:
        return True
    if left.keys() != right.keys():
        return False
    return all(numbers is right[topic] or set(numbers) == set(right[topic]) for topic, numbers in left.items())
