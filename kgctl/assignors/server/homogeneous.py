"""uniform for a group in which all members subscribe to the same topics.

Rules: every member's quota is the minimum, or one more as long as extras last. In map order each keeps of its old target what
fits the quota, topic by topic; a member that has no use for its extra leaves it to a later one, but the last ``extra`` members
must take theirs. What nobody has is handed out to the members with room, in the same order. Kafka:
``UniformHomogeneousAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from uuid import UUID

from kgctl.assignors.server.spec import TargetMember, TargetSpec
from kgctl.assignors.spec import AssignorError
from kgctl.model.java_order import bucket, copied_set_capacity, hash_map_order, integer_hash, uuid_hash

Assigned = dict[UUID, Sequence[int]]
_INVERT = bytes([1, 0]) + bytes(254)


def assign_homogeneous(spec: TargetSpec) -> dict[str, Assigned]:
    """New targets for a homogeneous group."""
    if not spec.members or not spec.members[0].topic_ids:
        return {member.member_id: {} for member in spec.members}
    return _Homogeneous(spec).build()


class _Homogeneous:
    def __init__(self, spec: TargetSpec) -> None:
        first = spec.members[0].topic_ids
        names = len(first) if spec.subscribed_names is None else spec.subscribed_names
        capacity = copied_set_capacity(names)
        self._topics = hash_map_order(first, capacity=capacity, hash_of=uuid_hash)
        missing = [topic for topic in self._topics if topic not in spec.topics]
        if missing:
            raise AssignorError(f"Members are subscribed to topic {missing[0]} which doesn't exist in the topic metadata.")
        self._spec = spec
        self._subscribed = frozenset(self._topics)
        # Runs of partitions that are to be handed out, in order.
        self._unassigned: list[tuple[UUID, Sequence[int]]] = []
        self._unfilled: list[tuple[str, int]] = []
        self._targets: dict[str, Assigned] = {}
        total = sum(spec.topics[topic] for topic in self._topics)
        self._minimum, self._extras = divmod(total, len(spec.members))

    def build(self) -> dict[str, Assigned]:
        self._find_unassigned()
        for index, member in enumerate(self._spec.members):
            self._keep(member, len(self._spec.members) - index)
        self._hand_out()
        return self._targets

    def _find_unassigned(self) -> None:
        marks = {topic: bytearray(self._spec.topics[topic]) for topic in self._topics}
        for member in self._spec.members:
            for topic, partitions in member.target.items():
                assigned = marks.get(topic)
                if assigned is not None:
                    _mark(assigned, partitions)
        for topic in self._topics:
            count = self._spec.topics[topic]
            if 1 not in marks[topic]:
                self._unassigned.append((topic, range(count)))
            elif 0 in marks[topic]:
                self._unassigned.append((topic, list(compress(range(count), marks[topic].translate(_INVERT)))))

    def _keep(self, member: TargetMember, members_left: int) -> None:
        has_extra = self._extras > 0
        quota = self._minimum + has_extra
        kept: Assigned = {}
        for topic, partitions in _in_map_order(member):
            if topic not in self._subscribed:
                continue
            if len(partitions) <= quota:
                quota -= len(partitions)
                kept[topic] = partitions
                continue
            ordered = _in_set_order(partitions)
            if quota:
                kept[topic] = ordered[:quota]
            self._unassigned.append((topic, ordered[quota:]))
            quota = 0
        if quota and has_extra and members_left > self._extras:
            quota -= 1
            has_extra = False
        if quota:
            self._unfilled.append((member.member_id, quota))
        self._extras -= has_extra
        self._targets[member.member_id] = kept

    def _hand_out(self) -> None:
        runs = self._runs()
        topic, run, position = next(runs, (None, (), 0))
        for member_id, room in self._unfilled:
            target, left = self._targets[member_id], room
            while left and topic is not None:
                part = run[position : position + left]
                target[topic] = [*target[topic], *part] if topic in target else part
                left -= len(part)
                position += len(part)
                if position >= len(run):
                    topic, run, position = next(runs, (None, (), 0))
        if topic is not None:
            raise AssignorError("Partitions were left unassigned")

    def _runs(self) -> Iterator[tuple[UUID | None, Sequence[int], int]]:
        return ((topic, run, 0) for topic, run in self._unassigned if run)


def _mark(assigned: bytearray, partitions: Sequence[int]) -> None:
    if isinstance(partitions, range) and partitions.step == 1:
        assigned[partitions.start : partitions.stop] = b"\x01" * len(partitions)
    else:
        for partition in partitions:
            assigned[partition] = 1


def _in_map_order(member: TargetMember) -> Iterator[tuple[UUID, Sequence[int]]]:
    """The old target's topics as its ``HashMap`` iterates over them."""
    target = member.target
    if len(target) < 2:
        return iter(target.items())
    return ((topic, target[topic]) for topic in hash_map_order(target, hash_of=uuid_hash))


def _in_set_order(partitions: Sequence[int]) -> Sequence[int]:
    """Partitions as the ``HashSet`` copied from them iterates over them: by value, unless values exceed the table."""
    capacity = copied_set_capacity(len(partitions))
    return sorted(partitions, key=lambda partition: bucket(integer_hash(partition), capacity))
