"""The order of a target that the uniform assignor makes for a heterogeneous group.

There Kafka copies the target before and moves partitions one by one, forth and back; the sizes that the hash maps had on the way
decide the order in the end. So the moves are made again, on what stands for those maps. Kafka:
UniformHeterogeneousAssignmentBuilder, AssignorHelpers#deepCopyAssignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kgctl.assignors.server.spec import Move, TargetSpec
from kgctl.coordinator.consumer.member import Target
from kgctl.model.java_order import (
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
class _Numbers:
    """A ``HashSet`` of partitions: in the order of insertion, and the size of its table."""

    capacity: int
    numbers: dict[int, None] = field(default_factory=dict)

    def add(self, number: int) -> None:
        """``add``: the table grows when it is full after that."""
        self.numbers[number] = None
        if len(self.numbers) > self.capacity * 3 // 4:
            self.capacity *= 2

    def ordered(self) -> Sequence[int]:
        """As Java iterates over them."""
        return hash_map_order(self.numbers, capacity=self.capacity, hash_of=integer_hash)


class _Topics:
    """A deep copy of a member's target: a ``HashMap`` of sets, ``_order`` holding its topics as they stand in their buckets."""

    def __init__(self, before: Target) -> None:
        self._order = hash_map_order(before, hash_of=uuid_hash)
        self._capacity = grown_capacity(len(before), power_of_two_at_least(len(before)))
        self._sets = {
            topic: _Numbers(copied_set_capacity(len(numbers)), dict.fromkeys(numbers)) for topic, numbers in before.items()
        }

    def remove_others(self, subscribed: Container[UUID]) -> None:
        """Topics that the member does not subscribe to any more go first of all."""
        for topic in [topic for topic in self._order if topic not in subscribed]:
            self._remove_topic(topic)

    def _remove_topic(self, topic: UUID) -> None:
        self._order.remove(topic)
        del self._sets[topic]

    def add(self, topic: UUID, number: int, set_capacity: int) -> None:
        """``computeIfAbsent``: looks first whether the table is full, and puts a new topic in front of its bucket."""
        if len(self._order) > self._capacity * 3 // 4:
            self._capacity *= 2
        if topic not in self._sets:
            self._order.insert(0, topic)
            self._sets[topic] = _Numbers(set_capacity)
        self._sets[topic].add(number)

    def remove(self, topic: UUID, number: int) -> None:
        """A topic without partitions goes."""
        numbers = self._sets[topic].numbers
        del numbers[number]
        if not numbers:
            self._remove_topic(topic)

    def ordered(self) -> dict[UUID, Sequence[int]]:
        """As Java iterates over it."""
        order = hash_map_order(self._order, capacity=self._capacity, hash_of=uuid_hash)
        return {topic: self._sets[topic].ordered() for topic in order}


def unmoved_target(target: Target) -> dict[UUID, Sequence[int]]:
    """A target that nothing was taken from and nothing added to: not even copied."""
    return {topic: copied_set_order(target[topic], hash_of=integer_hash) for topic in hash_map_order(target, hash_of=uuid_hash)}


def moved_targets(spec: TargetSpec, moves: Iterable[Move]) -> Callable[[int], dict[UUID, Sequence[int]]]:
    """The target of a member, by its number in ``spec``, in the order of Java's maps."""
    ids = list(spec.topics)
    subscribers = Counter(topic_id for member in spec.members for topic_id in member.topic_ids)
    steps: dict[int, list[tuple[UUID, int, bool]]] = {}
    for giver, receiver, topic, partition in moves:
        steps.setdefault(giver, []).append((ids[topic], partition, False))
        steps.setdefault(receiver, []).append((ids[topic], partition, True))

    def target(number: int) -> dict[UUID, Sequence[int]]:
        member = spec.members[number]
        subscribed = frozenset(member.topic_ids)
        if number not in steps and subscribed.issuperset(member.target):
            return unmoved_target(member.target)
        topics = _Topics(member.target)
        topics.remove_others(subscribed)
        for topic_id, partition, is_added in steps.get(number, ()):
            if is_added:
                rounded_up = -(-spec.topics[topic_id] // subscribers[topic_id])
                topics.add(topic_id, partition, capacity_for(rounded_up))
            else:
                topics.remove(topic_id, partition)
        return topics.ordered()

    return target
