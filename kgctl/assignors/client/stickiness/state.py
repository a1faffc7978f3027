"""What the general sticky algorithm works on: owners, sizes and subscriptions as arrays of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import MemberSpec


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Owners and sizes at one moment, and the score they had."""

    owners: list[int]
    sizes: list[int]
    active: Sequence[int]

    def score(self) -> int:
        """The sum of size differences over all pairs of members still in play, in Java's 32 bits."""
        ordered = sorted(self.sizes[member] for member in self.active)
        count = len(ordered)
        total = sum(size * (2 * position - count + 1) for position, size in enumerate(ordered))
        return (total + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000


class GeneralState:
    """The state of one assignment; members are numbered by member id.

    ``burdens``: partitions a member keeps in its list without being their owner for Kafka, which happens only to members that
    claim partitions that do not exist. They count in its size and never move.
    """

    def __init__(self, space: PartitionSpace, members: Sequence[MemberSpec], id_rank: Sequence[int]) -> None:
        self.space = space
        self.map_order = id_rank
        self.owners = [-1] * space.total
        self.sizes = [0] * len(members)
        self.burdens: list[list[int]] = [[] for _ in members]
        self.fixed: set[int] = set()
        self.active: list[int] = list(range(len(members)))
        self.subscribers: list[list[int]] = [[] for _ in space.names]
        self.subscribed: list[frozenset[int]] = []
        # With repetitions: Kafka counts a name that stands twice in a subscription twice.
        self.subscriptions: list[list[int]] = []
        counts = [0] * len(space.names)
        known: dict[tuple[str, ...], tuple[list[int], frozenset[int]]] = {}
        for rank, member in enumerate(members):
            if member.topics not in known:
                listed = [space.index[name] for name in member.topics if name in space.index]
                known[member.topics] = (listed, frozenset(listed))
            listed, distinct = known[member.topics]
            self.subscriptions.append(listed)
            self.subscribed.append(distinct)
            for topic in listed:
                counts[topic] += 1
            for topic in distinct if len(distinct) < len(listed) else listed:
                self.subscribers[topic].append(rank)
        self._subscriptions_per_topic = counts
        self.has_doubled_names = any(len(listed) > len(distinct) for listed, distinct in known.values())
        self.topic_order = sorted(range(len(space.names)), key=lambda topic: (counts[topic], topic))

    def numbers(self, topic: int) -> range:
        """The partitions of a topic."""
        return range(self.space.offsets[topic], self.space.offsets[topic + 1])

    def can_move(self, topic: int) -> bool:
        """Whether the topic's partitions may go from one member to another."""
        return self._subscriptions_per_topic[topic] >= 2

    def maximum(self, member: int) -> int:
        """How many partitions the member could hold."""
        listed = self.subscriptions[member]
        if len(listed) == len(self.space.names):
            return self.space.total
        return sum(self.space.counts[topic] for topic in listed)

    def give(self, number: int, member: int) -> None:
        """A partition without owner goes to the member."""
        self.owners[number] = member
        self.sizes[member] += 1

    def fix_members(self) -> None:
        """Takes out of play the members that hold all they could and nothing that another could hold, too."""
        full = {member for member in self.active if self.sizes[member] >= self.maximum(member)}
        movable = set()
        if full:
            for topic in self.topic_order:
                if self.can_move(topic):
                    movable.update(full.intersection(self.owners[self.space.offsets[topic] : self.space.offsets[topic + 1]]))
            for member in full:
                if any(self.can_move(self.space.topic(number)) for number in self.burdens[member]):
                    movable.add(member)
        self.fixed = full - movable
        self.active = [member for member in self.active if member not in self.fixed]

    def copy(self) -> Snapshot:
        """The present owners and sizes."""
        return Snapshot(self.owners.copy(), self.sizes.copy(), self.active)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a former state."""
        self.owners, self.sizes = snapshot.owners, snapshot.sizes

    def score(self) -> int:
        """How unbalanced the members in play are; 0 is even."""
        return Snapshot([], self.sizes, self.active).score()

    def lists(self) -> list[list[int]]:
        """Each member's partitions, by number."""
        lists: list[list[int]] = [[] for _ in self.sizes]
        for number, owner in enumerate(self.owners):
            lists[owner].append(number)
        for member, burden in enumerate(self.burdens):
            lists[member].extend(number for number in burden if self.owners_differ(number, member))
        return lists

    def owners_differ(self, number: int, member: int) -> bool:
        """Whether the member is not also the owner of a partition it is burdened with."""
        return number >= self.space.total or self.owners[number] != member

    def is_balanced(self) -> bool:
        """Kafka's own test, literally; only needed where somebody holds what does not exist or what it may not hold."""
        sizes = self.sizes
        if min(map(sizes.__getitem__, self.active)) >= max(map(sizes.__getitem__, self.active)) - 1:
            return True
        lists: list[set[int]] = [set(burden) for burden in self.burdens]
        for number, owner in enumerate(self.owners):
            lists[owner].add(number)
        holder: dict[int, int] = {}
        for member in self.map_order:
            if member not in self.fixed:
                holder.update(dict.fromkeys(lists[member], member))
        return not any(
            sizes[member] + 1 < sizes[holder[number]]
            for member in self.active
            if sizes[member] != self.maximum(member)
            for topic in self.subscriptions[member]
            for number in self.numbers(topic)
            if number not in lists[member] and number in holder
        )
