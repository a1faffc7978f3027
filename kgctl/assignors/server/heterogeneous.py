"""uniform for a group whose members subscribe to different topics.

Rules: members keep their old targets of topics they subscribe to. Topics are handled by partitions per subscriber, most first.
What nobody has goes to the least loaded subscribers of its topic, level by level. Then, up to 16 rounds, each topic's most loaded
subscribers give their highest partitions to its least loaded ones, until the levels differ by at most one. Kafka:
``UniformHeterogeneousAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.assignors.server.indexed import IndexedGroup, IndexedTarget
from kgctl.assignors.server.levels import Levels
from kgctl.assignors.server.spec import Move

_MAX_ROUNDS = 16
_NOBODY = -1


def assign_heterogeneous(group: IndexedGroup, moves: list[Move] | None = None) -> list[IndexedTarget]:
    """New targets for a heterogeneous group, in the order of its members.

    ``moves`` gets every step on the way there; partitions that move several times are several steps.

    Raises:
        AssignorError: a subscribed topic does not exist.
    """
    return _Heterogeneous(group, moves).build()


def _java_uuid_key(topic: UUID) -> tuple[int, int]:
    """``Uuid.compareTo``: two signed halves, the high one first."""
    low = topic.int & 0xFFFF_FFFF_FFFF_FFFF
    high = topic.int >> 64
    sign = 1 << 63
    return high ^ sign, low ^ sign


class _Heterogeneous:
    """Members are numbered in map order."""

    def __init__(self, group: IndexedGroup, moves: list[Move] | None) -> None:
        self._group = group
        self._moves = moves
        self._subscribers: dict[int, list[int]] = {}
        for number, member in enumerate(group.members):
            for topic in member.topics:
                self._subscribers.setdefault(topic, []).append(number)
        group.check_topics_exist(list(self._subscribers))
        self._owners = {topic: [_NOBODY] * group.counts[topic] for topic in self._subscribers}
        self._sizes = [0] * len(group.members)
        self._order = sorted(self._subscribers, key=self._topic_key)

    def _topic_key(self, topic: int) -> tuple[float, int, tuple[int, int]]:
        count = len(self._subscribers[topic])
        return -(self._group.counts[topic] / count), count, _java_uuid_key(self._group.ids[topic])

    def build(self) -> list[IndexedTarget]:
        self._keep()
        for topic in self._order:
            self._hand_out(topic)
        self._balance()
        return self._targets()

    def _keep(self) -> None:
        for number, member in enumerate(self._group.members):
            subscribed = frozenset(member.topics) if member.target else frozenset()
            for topic, partitions in member.target.items():
                if topic in subscribed:
                    self._sizes[number] += len(partitions)
                    owners = self._owners[topic]
                    for partition in partitions:
                        owners[partition] = number

    def _hand_out(self, topic: int) -> None:
        owners = self._owners[topic]
        unassigned = [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
        if not unassigned:
            return
        levels = Levels(self._subscribers[topic], self._sizes)
        for partition in unassigned:
            self._give(topic, partition, levels.next_least_loaded())

    def _give(self, topic: int, partition: int, member: int) -> None:
        owners = self._owners[topic]
        if self._moves is not None:
            self._moves.append(Move(owners[partition], member, topic, partition))
        if owners[partition] != _NOBODY:
            self._sizes[owners[partition]] -= 1
        owners[partition] = member
        self._sizes[member] += 1

    def _balance(self) -> None:
        topics = [topic for topic in self._order if len(self._subscribers[topic]) >= 2]
        last_changed: int | None = None
        for _ in range(_MAX_ROUNDS):
            for topic in topics:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: int) -> bool:
        levels = Levels(self._subscribers[topic], self._sizes)
        if levels.imbalance <= 1:
            return False
        owners = self._owners[topic]
        hands: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            hands.setdefault(owner, []).append(partition)
        changed = False
        while not levels.is_balanced():
            donor = self._next_donor(levels, hands)
            if donor is None:
                break
            partition = hands[donor].pop()
            receiver = levels.next_least_loaded()
            if levels.is_balanced():
                break
            self._give(topic, partition, receiver)
            changed = True
        return changed

    @staticmethod
    def _next_donor(levels: Levels, hands: dict[int, list[int]]) -> int | None:
        while True:
            donor = levels.next_most_loaded()
            if donor is None or hands.get(donor):
                return donor
            levels.exclude_most_loaded()

    def _targets(self) -> list[IndexedTarget]:
        targets: list[dict[int, list[int]]] = [{} for _ in self._group.members]
        for topic, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner != _NOBODY:
                    targets[owner].setdefault(topic, []).append(partition)
        return [
            {topic: _old_or_new(member.target.get(topic, ()), partitions) for topic, partitions in target.items()}
            for member, target in zip(self._group.members, targets, strict=True)
        ]


def _old_or_new(old: Sequence[int], new: Sequence[int]) -> Sequence[int]:
    """The old list if it has the same partitions: it keeps its order, and its memory."""
    return old if len(old) == len(new) and sorted(old) == new else new
