"""uniform for a group in which all members subscribe to the same topics.

Rules: every member's quota is the minimum, or one more as long as extras last. In map order each keeps of its old target what
fits the quota, topic by topic; a member that has no use for its extra leaves it to a later one, but the last ``extra`` members
must take theirs. What nobody has is handed out to the members with room, in the same order. Kafka:
``UniformHomogeneousAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

from kgctl.assignors.server.indexed import NO_TOPIC, IndexedGroup, IndexedMember, IndexedTarget
from kgctl.assignors.spec import AssignorError
from kgctl.model.java_order import copied_set_order, integer_hash

_INVERT = bytes([1, 0]) + bytes(254)


def assign_homogeneous(group: IndexedGroup) -> list[IndexedTarget]:
    """New targets for a homogeneous group, in the order of its members.

    Raises:
        AssignorError: a subscribed topic does not exist.
    """
    if not group.members or not group.members[0].topics:
        return [{} for _ in group.members]
    return _Homogeneous(group).build()


class _Homogeneous:
    def __init__(self, group: IndexedGroup) -> None:
        self._group = group
        self._topics = group.set_order(group.members[0].topics, group.subscribed_names)
        group.check_topics_exist(self._topics)
        self._subscribed = frozenset(self._topics)
        # Runs of partitions that are to be handed out, in order; members with room and how much.
        self._unassigned: list[tuple[int, Sequence[int]]] = []
        self._unfilled: list[tuple[IndexedTarget, int]] = []
        self._minimum, self._extras = divmod(sum(group.counts[topic] for topic in self._topics), len(group.members))

    def build(self) -> list[IndexedTarget]:
        self._find_unassigned()
        members = self._group.members
        targets = [self._keep(member, len(members) - position) for position, member in enumerate(members)]
        self._hand_out()
        return targets

    def _find_unassigned(self) -> None:
        counts = self._group.counts
        marks = {topic: bytearray(counts[topic]) for topic in self._topics}
        for member in self._group.members:
            for topic, partitions in member.target.items():
                if topic in self._subscribed:
                    _mark(marks[topic], partitions)
        for topic in self._topics:
            if 1 not in marks[topic]:
                self._unassigned.append((topic, range(counts[topic])))
            elif 0 in marks[topic]:
                self._unassigned.append((topic, list(compress(range(counts[topic]), marks[topic].translate(_INVERT)))))

    def _keep(self, member: IndexedMember, members_left: int) -> IndexedTarget:
        has_extra = self._extras > 0
        quota = self._minimum + has_extra
        target = member.target
        kept: IndexedTarget = {}
        for topic in self._group.map_order(target):
            if topic not in self._subscribed:
                continue
            partitions = target[topic]
            if len(partitions) <= quota:
                quota -= len(partitions)
                kept[topic] = partitions
                continue
            ordered = copied_set_order(partitions, hash_of=integer_hash)
            if quota:
                kept[topic] = ordered[:quota]
            self._unassigned.append((topic, ordered[quota:]))
            quota = 0
        if quota and has_extra and members_left > self._extras:
            quota -= 1
            has_extra = False
        if quota:
            self._unfilled.append((kept, quota))
        self._extras -= has_extra
        return kept

    def _hand_out(self) -> None:
        runs = self._runs()
        topic, run, position = next(runs)
        for target, room in self._unfilled:
            left = room
            while left and topic != NO_TOPIC:
                part = run[position : position + left]
                target[topic] = [*target[topic], *part] if topic in target else part
                left -= len(part)
                position += len(part)
                if position >= len(run):
                    topic, run, position = next(runs)
        if topic != NO_TOPIC:
            raise AssignorError("Partitions were left unassigned")

    def _runs(self) -> Iterator[tuple[int, Sequence[int], int]]:
        for topic, run in self._unassigned:
            if run:
                yield topic, run, 0
        yield NO_TOPIC, (), 0


def _mark(assigned: bytearray, partitions: Sequence[int]) -> None:
    if isinstance(partitions, range) and partitions.step == 1:
        assigned[partitions.start : partitions.stop] = b"\x01" * len(partitions)
    else:
        for partition in partitions:
            assigned[partition] = 1
