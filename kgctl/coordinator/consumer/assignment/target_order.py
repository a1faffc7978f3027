"""The order of a computed target: in which its topics and partitions stand in its record, and in the member's answer.

Kafka writes and hands out partitions in the order of the hash maps in which its assignors collect them, and the sizes of those
maps are part of the order. Only records to the byte need this; who gets what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from kgctl.coordinator.consumer.assignment.target_moves import capacity_for, unmoved_target
from kgctl.coordinator.consumer.member import Target
from kgctl.model.java_order import (
    copied_set_capacity,
    grown_capacity,
    hash_map_order,
    integer_hash,
    power_of_two_at_least,
    uuid_hash,
)


def have_same_partitions(left: Target, right: Target) -> bool:
    """Whether two targets differ in their order at most."""
    if left.keys() != right.keys():
        return False
    return all(numbers is right[topic] or set(numbers) == set(right[topic]) for topic, numbers in left.items())


def range_order(target: Target, topic_count: int) -> dict[UUID, Sequence[int]]:
    """As the range assignor collects it: a map made for the member's topics, runs of partitions."""
    capacity = grown_capacity(len(target), capacity_for(topic_count))
    return {topic: target[topic] for topic in hash_map_order(target, capacity=capacity, hash_of=uuid_hash)}


@dataclass(frozen=True, slots=True)
class UniformOrder:
    """As the uniform assignor collects it for a homogeneous group: a copy of the target before, changed.

    ``ranks``: the order in which the assignor goes through the topics.
    """

    ranks: Mapping[UUID, int]
    owned: Mapping[UUID, Container[int]]
    """Topic -> the partitions that were in somebody's target before: those are handed out last."""

    def __call__(self, target: Target, before: Target) -> dict[UUID, Sequence[int]]:
        """``target`` in the order of Java's maps."""
        if have_same_partitions(target, before):
            return unmoved_target(before)
        kept = [topic for topic in hash_map_order(before, hash_of=uuid_hash) if topic in target]
        fresh: dict[UUID, None] = {}
        capacity = grown_capacity(len(before), power_of_two_at_least(len(before)))
        # computeIfAbsent, once a partition, looks first whether the table is full, and puts a new topic in front of its bucket.
        for topic in self._additions(target, before):
            if len(kept) + len(fresh) > capacity * 3 // 4:
                capacity *= 2
            if topic not in before:
                fresh[topic] = None
        order = hash_map_order([*reversed(fresh), *kept], capacity=capacity, hash_of=uuid_hash)
        return {topic: _partitions(target[topic], before.get(topic, ())) for topic in order}

    def _additions(self, target: Target, before: Target) -> Iterator[UUID]:
        """The topics of the partitions that are new, as they are added one by one."""
        topics = sorted(target, key=self.ranks.__getitem__)
        for is_second_round in (False, True):
            for topic in topics:
                known, owned = frozenset(before.get(topic, ())), self.owned.get(topic, ())
                for number in target[topic]:
                    if number not in known and (number in owned) == is_second_round:
                        yield topic


def _partitions(numbers: Sequence[int], before: Sequence[int]) -> Sequence[int]:
    initial = copied_set_capacity(len(before)) if before else 16
    return hash_map_order(numbers, capacity=grown_capacity(len(numbers), initial), hash_of=integer_hash)
