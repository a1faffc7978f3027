"""The assignor of share groups: a partition may have several readers, a member reads as much as it would by itself anyway.

Kafka: SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder. Their hash maps decide who gets
what, so the maps here are as large and are gone through in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Generic, TypeVar
from uuid import UUID

from kgctl.assignors.spec import Target, TargetMember, TargetSpec
from kgctl.assignors.target_order import CopiedTarget, Numbers, capacity_for, unmoved_target
from kgctl.model.values import HashOf, copied_set_order, hash_map_order, integer_hash, uuid_hash

_DEFAULT_CAPACITY = 16
K = TypeVar("K")
V = TypeVar("V")
TopicIdPartition = tuple[UUID, int]


def _partition_hash(partition: TopicIdPartition) -> int:
    """``hashCode`` of the record ``TopicIdPartition``."""
    return 31 * uuid_hash(partition[0]) + partition[1]


class ComputedMap(dict[K, V], Generic[K, V]):
    """A ``HashMap`` made for so many entries that is filled by ``computeIfAbsent`` alone."""

    def __init__(self, entries: int, make: Callable[[], V], hash_of: HashOf) -> None:
        super().__init__()
        self._capacity = capacity_for(entries + 1)
        self._make = make
        self._hash_of = hash_of

    def computed(self, key: K) -> V:
        """Return what is there for the key, or make it; the table is looked at in either case."""
        if len(self) > self._capacity * 3 // 4:
            self._capacity *= 2
        if key not in self:
            self[key] = self._make()
        return self[key]

    def java_items(self) -> Iterator[tuple[K, V]]:
        """Return the entries in the order in which Java iterates over them."""
        order = hash_map_order(self, capacity=self._capacity, hash_of=self._hash_of, newest_first=True)
        return ((key, self[key]) for key in order)


class _Reading:
    """Who reads what of some partitions, and how many of them each member is to have; members are numbers.

    A member's target is copied when something of it changes, or, of a homogeneous group, when it has enough.
    """

    def __init__(self, targets: _Targets, partitions: int, readers: Sequence[int], hash_of: HashOf) -> None:
        self.targets = targets
        self.sharing = -(-len(readers) // partitions) if partitions else 0
        """So many members are to read each partition."""
        self.wanted = dict.fromkeys(range(len(targets.members)), 0)
        whole = self.sharing * partitions
        for place, member in enumerate(readers):
            # Math.ceil of doubles, whose errors count.
            each = whole / len(readers)
            self.wanted[member] = ceil(each * (place + 1)) - ceil(each * place)
        self.readers: ComputedMap[TopicIdPartition, Numbers] = ComputedMap(partitions, _numbers, hash_of)
        self.read: dict[int, dict[TopicIdPartition, None]] = {}

    def keep(self, member: int, partition: TopicIdPartition) -> None:
        """The member has it already."""
        self.readers.computed(partition).add(member)
        self.read.setdefault(member, {})[partition] = None

    def revoke_from_overfilled(self, hash_of: HashOf) -> None:
        """Who has more than it is to have gives up the first ones."""
        for member, partitions in self.read.items():
            for partition in hash_map_order(partitions, hash_of=hash_of)[: max(len(partitions) - self.wanted[member], 0)]:
                self.targets.changed(member).take(*partition)
                del self.readers[partition].numbers[member]
                del partitions[partition]

    def revoke_overshared(self) -> set[int]:
        """Of a partition with too many readers the first ones give it up. Return who did."""
        revoked = set()
        for partition, readers in self.readers.items():
            for member in readers.ordered()[: max(len(readers.numbers) - self.sharing, 0)]:
                self.targets.changed(member).take(*partition)
                del readers.numbers[member]
                del self.read[member][partition]
                revoked.add(member)
        return revoked

    def hand_out(self, unfilled: set[int]) -> None:
        """Go round the members that have too little, once through the partitions that have too few readers."""
        waiting = sorted(unfilled)
        place, given = 0, False
        for partition, readers in self.readers.java_items():
            missing = self.sharing - len(readers.numbers)
            while missing > 0:
                if place == len(waiting):
                    if not given:
                        break
                    place, given = 0, False
                member = waiting[place]
                place += 1
                if member in readers.numbers:
                    continue
                self.targets.changed(member).add(*partition, _DEFAULT_CAPACITY)
                read = self.read.setdefault(member, {})
                read[partition] = None
                missing -= 1
                given = True
                if len(read) >= self.wanted[member]:
                    place -= 1
                    del waiting[place]
            if not waiting:
                break


def _numbers() -> Numbers:
    return Numbers(_DEFAULT_CAPACITY)


class _Targets:
    """The targets as they were, and copies of those that change."""

    def __init__(self, spec: TargetSpec) -> None:
        self.members: Sequence[TargetMember] = spec.members
        self._spec = spec
        self._changed: dict[int, CopiedTarget] = {}

    def changed(self, member: int) -> CopiedTarget:
        """Return the member's new target, which begins as a copy of the old one."""
        if member not in self._changed:
            self._changed[member] = CopiedTarget(self.members[member].target)
        return self._changed[member]

    def assignable(self, topic: UUID) -> list[TopicIdPartition]:
        """Return the topic's partitions that may be assigned."""
        numbers = range(self._spec.topics[topic])
        allowed = numbers if self._spec.assignable is None else self._spec.assignable.get(topic, ())
        return [(topic, number) for number in numbers if number in allowed]

    def result(self) -> dict[str, dict[UUID, Sequence[int]]]:
        """Return all targets in Java's order."""
        return {
            member.member_id: self._changed[number].ordered() if number in self._changed else unmoved_target(member.target)
            for number, member in enumerate(self.members)
        }


def _in_java_order(target: Target) -> Iterator[tuple[UUID, list[int]]]:
    return ((topic, copied_set_order(target[topic], hash_of=integer_hash)) for topic in hash_map_order(target, hash_of=uuid_hash))


def _assign_homogeneous(targets: _Targets, topics: Sequence[UUID]) -> None:
    """All partitions of all topics at once."""
    partitions = [partition for topic in topics for partition in targets.assignable(topic)]
    reading = _Reading(targets, len(partitions), range(len(targets.members)), _partition_hash)
    kept = [_keep(targets, reading, number, frozenset(topics)) for number in range(len(targets.members))]
    unfilled = {number for number, count in enumerate(kept) if count < reading.wanted[number]}
    reading.revoke_from_overfilled(_partition_hash)
    unfilled |= reading.revoke_overshared()
    for partition in partitions:
        reading.readers.computed(partition)
    if unfilled:
        reading.hand_out(unfilled)


def _keep(targets: _Targets, reading: _Reading, number: int, subscribed: frozenset[UUID]) -> int:
    """Note what the member has of its topics, and take the rest away. Return how many partitions it has."""
    count = 0
    for topic, numbers in _in_java_order(targets.members[number].target):
        if topic not in subscribed:
            targets.changed(number).remove_topic(topic)
            continue
        for partition in numbers:
            count += 1
            reading.keep(number, (topic, partition))
            if count >= reading.wanted[number]:
                targets.changed(number)
    return count


def _assign_topic(targets: _Targets, topic: UUID, subscribers: Sequence[int]) -> None:
    """One topic among those that subscribe to it."""
    partitions = targets.assignable(topic)
    reading = _Reading(targets, len(partitions), subscribers, lambda partition: int(partition[1]))
    for number, member in enumerate(targets.members):
        for partition in copied_set_order(member.target.get(topic, ()), hash_of=integer_hash):
            reading.keep(number, (topic, partition))
    reading.revoke_from_overfilled(lambda partition: int(partition[1]))
    reading.revoke_overshared()
    for partition_id in partitions:
        reading.readers.computed(partition_id)
    reading.hand_out({number for number in subscribers if len(reading.read.get(number, ())) < reading.wanted[number]})


def _subscribers(spec: TargetSpec) -> dict[UUID, list[int]]:
    """Return who subscribes to each topic, in the order of Kafka's set of all topics."""
    found: dict[UUID, list[int]] = {}
    for number, member in enumerate(spec.members):
        for topic in member.topic_ids:
            found.setdefault(topic, []).append(number)
    return {topic: found[topic] for topic in hash_map_order(found, hash_of=uuid_hash)}


class SimpleAssignor:
    """``group.share.assignors``' "simple". Targets come in the order in which Java goes through them, as they are recorded."""

    name = "simple"

    def assign_targets(self, spec: TargetSpec) -> dict[str, dict[UUID, Sequence[int]]]:
        """Return the new target of every member; members that are left out have none.

        Raises IndexError where Kafka's assignor fails: with old targets of partitions that may no longer be assigned.
        """
        targets = _Targets(spec)
        if not spec.members:
            return {}
        if spec.is_homogeneous:
            first = spec.members[0].topic_ids
            if not (len(first) if spec.subscribed_names is None else spec.subscribed_names):
                return {}
            _assign_homogeneous(targets, first)
            return targets.result()
        subscribers = _subscribers(spec)
        for topic, members in subscribers.items():
            _assign_topic(targets, topic, members)
        return targets.result() if subscribers else {}
