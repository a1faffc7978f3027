"""uniform: the coordinator's default assignor. As many partitions for everybody, and few moves; racks are ignored.

Kafka: ``UniformAssignor``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress, islice
from uuid import UUID

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import (
    NO_TOPIC,
    AssignorError,
    GroupAssignment,
    GroupSpec,
    IndexedGroup,
    IndexedMember,
    IndexedTarget,
    Move,
    OwnedPartitions,
    Promises,
    TargetSpec,
    assign_by_name,
    by_id,
    indexed,
)
from kgctl.model.values import copied_set_order, integer_hash

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


_FEW = 32
"""Partitions that are marked one by one sooner than they are looked at for a run."""


def _mark(assigned: bytearray, partitions: Sequence[int]) -> None:
    run = None if len(partitions) <= _FEW else _as_run(partitions)
    if run is not None:
        assigned[run.start : run.stop] = b"\x01" * len(run)
    else:
        for number in partitions:
            assigned[number] = 1


def _as_run(partitions: Sequence[int]) -> range | None:
    """The partitions as a range, if they are successive numbers in ascending order."""
    if isinstance(partitions, range):
        return partitions if partitions.step == 1 else None
    if not partitions or partitions[-1] - partitions[0] != len(partitions) - 1:
        return None
    run = range(partitions[0], partitions[-1] + 1)
    return run if (partitions if isinstance(partitions, list) else list(partitions)) == list(run) else None


@lru_cache(maxsize=1)
def ascending(total: int) -> bytes:
    """Return 0, 1, ... ``total`` - 1, each in four bytes, the lowest first; the last answer is kept.

    Written a byte of all numbers at a time: one after the other they would cost as much as a whole assignment.
    """
    written = bytearray(4 * total)
    for place in range(4):
        width = 256**place
        blocks = -(-total // width)
        values = bytes(range(256)) * (blocks // 256 + 1)
        written[place::4] = values[:total] if width == 1 else b"".join([values[n : n + 1] * width for n in range(blocks)])[:total]
    return bytes(written)


@lru_cache(maxsize=64)
def _in_four_bytes(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}i")


def _is_run(numbers: Sequence[int], ascending_numbers: bytes) -> bool:
    """Whether they are successive numbers in ascending order; bytes are compared in a fifth of the time that integers take."""
    count = len(numbers)
    if not count or numbers[-1] - numbers[0] != count - 1 or numbers[0] < 0:
        return False
    try:
        written = _in_four_bytes(count).pack(*numbers)
    except struct.error:
        return False
    return ascending_numbers.startswith(written, 4 * numbers[0])


class _ByNumber:
    """The same for members whose partitions are numbers of one space, without names for those who keep all they have.

    Answers what `_Homogeneous` answers, in a fifth of the time where most members keep everything. ``ids`` are theirs, in map
    order; all topics of ``group`` are subscribed to, and no partition has two owners.
    """

    def __init__(self, group: IndexedGroup, topics: Sequence[int], space: PartitionSpace, ids: Sequence[Sequence[int]]) -> None:
        self._group, self._topics, self._space, self._ids = group, topics, space, ids
        self._unassigned: list[Sequence[int]] = []
        self._unfilled: list[tuple[int, int]] = []

    def build(self) -> list[Sequence[int]] | None:
        """The numbers of each member; None if what they have is not as the class needs it."""
        if not self._find_unassigned():
            return None
        minimum, extras = divmod(self._space.total, len(self._ids))
        kept: list[Sequence[int]] = []
        for number, ids in enumerate(self._ids):
            has_extra = extras > 0
            quota = minimum + has_extra
            kept.append(ids if len(ids) <= quota else self._keep_some(ids, quota))
            room = max(quota - len(ids), 0)
            if room and has_extra and len(self._ids) - number > extras:
                room -= 1
                has_extra = False
            if room:
                self._unfilled.append((number, room))
            extras -= has_extra
        self._hand_out(kept)
        return kept

    def _find_unassigned(self) -> bool:
        marks, numbers_in_order = bytearray(self._space.total), ascending(self._space.total)
        for ids in self._ids:
            if isinstance(ids, list) and _is_run(ids, numbers_in_order):
                marks[ids[0] : ids[-1] + 1] = b"\x01" * len(ids)
                continue
            try:
                _mark(marks, ids)
            except IndexError:  # a partition that does not exist
                return False
        if len(marks) != self._space.total or marks.count(1) != sum(map(len, self._ids)):
            return False
        offsets = self._space.offsets
        for topic in self._topics:
            numbers = range(offsets[topic], offsets[topic + 1])
            if 1 not in marks[numbers.start : numbers.stop]:
                self._unassigned.append(numbers)
            elif 0 in marks[numbers.start : numbers.stop]:
                free = marks[numbers.start : numbers.stop].translate(_INVERT)
                self._unassigned.append(list(compress(numbers, free)))
        return True

    def _keep_some(self, ids: Sequence[int], quota: int) -> list[int]:
        """The first ``quota`` of these, in the order of Java's maps; the rest is to be handed out, topic by topic."""
        space = self._space
        target = {space.index[name]: partitions for name, partitions in space.by_topic(ids).items()}
        kept: list[int] = []
        for topic in self._group.map_order(target):
            numbers = target[topic]
            room = quota - len(kept)
            if len(numbers) > room:
                numbers = copied_set_order(numbers, hash_of=integer_hash)
                self._unassigned.append([space.offsets[topic] + partition for partition in numbers[room:]])
            kept += [space.offsets[topic] + partition for partition in numbers[:room]]
        return kept

    def _hand_out(self, kept: list[Sequence[int]]) -> None:
        partitions = chain.from_iterable(self._unassigned)
        for number, room in self._unfilled:
            part = list(islice(partitions, room))
            if part:
                kept[number] = [*kept[number], *part]
        if next(partitions, None) is not None:
            raise AssignorError("Partitions were left unassigned")


class Levels:
    """``sizes`` is shared with the caller, who changes it while partitions move."""

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self.imbalance = highest - lowest
        # Receivers are members[:_low_end], donors members[_high_start:_high_end]. A level is the size its members have, or had.
        self._low_level, self._low_end, self._low_next = lowest - 1, 0, 0
        self._high_level = highest + 1
        self._high_start = self._high_end = len(self._members)
        self._high_next = len(self._members) - 1

    def is_balanced(self) -> bool:
        """Whether the levels of both ranges differ by at most one."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """The next receiver: each member of the range once, from the left; then the level rises and the range grows."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._sizes[self._members[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        member = self._members[self._low_next]
        self._low_next += 1
        return member

    def next_most_loaded(self) -> int | None:
        """The next donor, from the right; None if nobody is left who could give."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                # All of the range were excluded: go on with the next member's level, wherever it is.
                self._high_level = self._sizes[self._members[self._high_start - 1]]
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._sizes[self._members[self._high_start - 1]] == self._high_level:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._members[self._high_next]
        self._high_next -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """The donor returned last has nothing to give: it changes places with the last of the range, which shrinks."""
        place, end = self._high_next + 1, self._high_end - 1
        members = self._members
        members[place], members[end] = members[end], members[place]
        self._high_end -= 1


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
    """The work for a group of unequal subscriptions. Kafka: UniformHeterogeneousAssignmentBuilder."""

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


def _by_number(group: IndexedGroup, space: PartitionSpace, owned: Sequence[OwnedPartitions]) -> list[Sequence[int]] | None:
    """The numbers of each member, where `_ByNumber` can tell; None elsewhere."""
    topics = group.members[0].topics if group.members else ()
    if not group.is_homogeneous or len(topics) < len(space.names):
        return None
    ids = [() if isinstance(each, Mapping) and not each else _numbers_of(each, space) for each in owned]
    if not any(ids) or None in ids:
        return None
    return _ByNumber(group, group.set_order(topics, group.subscribed_names), space, [each or () for each in ids]).build()


def _numbers_of(owned: OwnedPartitions, space: PartitionSpace) -> Sequence[int] | None:
    return None if isinstance(owned, Mapping) else owned.numbers(space)


class UniformAssignor:
    """Homogeneous groups, in which all subscribe to the same names, have an algorithm of their own."""

    name = "uniform"
    promises = Promises(even_in_total=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The targets of a group with topics by name; ``owned`` is a member's present target."""
        return assign_by_name(self.assign_indexed, group, _by_number)

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:
        """Balanced to one partition in a homogeneous group, else nearly, as far as subscriptions allow.

        ``moves`` gets the steps of a heterogeneous group.

        Raises:
            AssignorError: a subscribed topic is not in ``spec.topics``.
        """
        group = indexed(spec)
        return by_id(spec, group.ids, self.assign_indexed(group, moves))

    def assign_indexed(self, group: IndexedGroup, moves: list[Move] | None = None) -> list[IndexedTarget]:
        """Assign as `assign`, with indexes for ids, in the order of the members."""
        return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group, moves)
