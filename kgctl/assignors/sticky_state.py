"""What the general sticky algorithm works on: owners, sizes and subscriptions as arrays of integers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import GroupSpec, MemberSpec, Racks, partition_racks, use_racks
from kgctl.model.groups import NO_GENERATION
from kgctl.model.values import bucket, frozen_in_order, string_hash


@frozen_in_order
class StickySnapshot:
    """Owners and sizes at one moment, and the score they had."""

    owners: list[int]
    sizes: list[int]
    active: Sequence[int]

    def score(self) -> int:
        """How unbalanced the members in play are."""
        return balance_score(self.sizes[member] for member in self.active)


def balance_score(sizes: Iterable[int]) -> int:
    """The sum of size differences over all pairs of members, in 32 bits."""
    ordered = sorted(sizes)
    total = sum(size * (2 * position - len(ordered) + 1) for position, size in enumerate(ordered))
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
        """Return the numbers of a topic's partitions."""
        return range(self.space.offsets[topic], self.space.offsets[topic + 1])

    def can_move(self, topic: int) -> bool:
        """Whether the topic's partitions may go from one member to another."""
        return self._subscriptions_per_topic[topic] >= 2

    def maximum(self, member: int) -> int:
        """Return how many partitions the member could hold, by its subscription."""
        listed = self.subscriptions[member]
        if len(listed) == len(self.space.names):
            return self.space.total
        return sum(self.space.counts[topic] for topic in listed)

    def give(self, number: int, member: int) -> None:
        """Give a partition without owner to the member."""
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

    def copy(self) -> StickySnapshot:
        """Return the present owners and sizes, to `restore` them."""
        return StickySnapshot(self.owners.copy(), self.sizes.copy(), self.active)

    def restore(self, snapshot: StickySnapshot) -> None:
        """Go back to owners and sizes that `copy` returned."""
        self.owners, self.sizes = snapshot.owners, snapshot.sizes

    def score(self) -> int:
        """How unbalanced the members in play are; 0 is even."""
        return StickySnapshot([], self.sizes, self.active).score()

    def lists(self) -> list[list[int]]:
        """Return each member's partitions, by the member's number."""
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


@frozen_in_order
class Claim:
    """One member's claim: all partitions it names, of topics of the group; ``generation`` None if it gives none."""

    ids: Sequence[int]
    generation: int | None


@dataclass(slots=True)
class StickyOwnership:
    """Who owns what when the conflicts are settled: ``owned`` stands in map order, as the claims did.

    ``is_clean``: every partition that is owned exists. ``marks``: a byte a partition, 1 where somebody owns it.
    """

    owned: list[Sequence[int]]
    max_generation: int
    multiple_owners: set[int] = field(default_factory=set)
    is_clean: bool = True
    marks: bytearray = field(default_factory=bytearray)


def settle_claims(
    space: PartitionSpace, members: Sequence[MemberSpec], claims: Sequence[Claim], max_generation: int
) -> StickyOwnership:
    """Settles conflicting claims. ``members`` and ``claims`` stand in map order."""
    generations = [NO_GENERATION if claim.generation is None else claim.generation for claim in claims]
    highest = max((max_generation, *generations))
    marks = _mark(space, claims)
    if marks is not None and marks.count(1) == sum(len(claim.ids) for claim in claims):
        return StickyOwnership([claim.ids for claim in claims], highest, marks=marks)
    return _settle_conflicts(space, members, claims, generations, highest)


def _mark(space: PartitionSpace, claims: Sequence[Claim]) -> bytearray | None:
    """A byte for each partition, 1 where it is claimed; None if a claim names a partition that does not exist."""
    marks = bytearray(space.total)
    for claim in claims:
        ids = claim.ids
        if isinstance(ids, range):
            marks[ids.start : ids.stop : ids.step] = b"\x01" * len(ids)
        elif ids and max(ids) >= space.total:
            return None
        else:
            for number in ids:
                marks[number] = 1
    return marks


def _settle_conflicts(
    space: PartitionSpace, members: Sequence[MemberSpec], claims: Sequence[Claim], generations: Sequence[int], highest: int
) -> StickyOwnership:
    owned: list[dict[int, None]] = [{} for _ in claims]
    holder: dict[int, int] = {}
    multiple: set[int] = set()
    for position, claim in enumerate(claims):
        generation = generations[position]
        for number in claim.ids:
            other = holder.get(number)
            if other is None:
                owned[position][number] = None
                holder[number] = position
                continue
            other_generation = max(members[other].generation, NO_GENERATION)
            if generation < other_generation:
                continue
            holder[number] = position
            if generation == other_generation:
                multiple.add(number)
                owned[other].pop(number, None)
            elif other != position:
                owned[other].pop(number, None)
                owned[position][number] = None
    marks = bytearray(space.total)
    lists: list[Sequence[int]] = [list(numbers) for numbers in owned]
    is_clean = True
    for numbers in lists:
        for number in numbers:
            if number < space.total:
                marks[number] = 1
            else:
                is_clean = False
    return StickyOwnership(lists, highest, multiple, is_clean, marks)


Pair = tuple[int, int]


class MovedSet:
    """What moved between two members: Kafka has a ``HashSet``, whose table grows and never shrinks, librdkafka a list."""

    def __init__(self) -> None:
        self._hashes: dict[int, int] = {}
        self._capacity = 16

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def add(self, number: int, key_hash: int) -> None:
        self._hashes[number] = key_hash
        if len(self._hashes) > self._capacity * 3 // 4:
            self._capacity *= 2

    def remove(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        """The first of the ``HashSet``: lowest bucket, there the oldest."""
        capacity = self._capacity
        return min(self._hashes.items(), key=lambda item: bucket(item[1], capacity))[0]

    def oldest(self) -> int:
        """The first of the list."""
        return next(iter(self._hashes))


class PartitionMovements:
    """Moves of one topic's partitions between members. A partition that moves again keeps its first source.

    ``first`` is the one of several with the same way that goes back first.
    """

    def __init__(self, space: PartitionSpace, topic: int, first: Callable[[MovedSet], int] = MovedSet.first) -> None:
        self._first = first
        self._offset = space.offsets[topic]
        # TopicPartition.hashCode: 31 * (31 + partition) + hash of the name
        self._hash = 31 * 31 + string_hash(space.names[topic])
        self._pairs: defaultdict[Pair, MovedSet] = defaultdict(MovedSet)
        self._moved: dict[int, Pair] = {}

    def actual(self, number: int, source: int, target: int) -> int:
        """The partition that really goes to ``target`` when ``number`` should go there from ``source``."""
        if number in self._moved:
            source = self._moved[number][0]
        back = self._pairs.get((target, source))
        return self._first(back) if back else number

    def move(self, number: int, source: int, target: int) -> None:
        """Records a move; a partition that comes home is forgotten."""
        pair = self._moved.pop(number, None)
        if pair is not None:
            moved = self._pairs[pair]
            moved.remove(number)
            if not moved:
                del self._pairs[pair]
            source = pair[0]
            if source == target:
                return
        self._moved[number] = (source, target)
        self._pairs[source, target].add(number, 31 * (number - self._offset) + self._hash)


class RackInfo:
    """Racks of members and partitions; ``in_use`` says whether racks can make a difference.

    ``members`` stand in the order in which the caller numbers them.
    """

    def __init__(self, space: PartitionSpace, group: GroupSpec, members: Sequence[MemberSpec]) -> None:
        self._consumer_racks = [member.rack or None for member in members]
        per_rack = Counter(rack for rack in self._consumer_racks if rack)
        self._racks: list[Racks] = []
        self._counts: dict[Racks, int] = {}
        if per_rack:
            for name, count in zip(space.names, space.counts, strict=True):
                if count:  # else the group may not have the topic
                    self._racks.extend(partition_racks(group.topics[name]))
            self._counts = {racks: sum(per_rack[rack] for rack in racks) for racks in set(self._racks)}
        self.in_use = bool(per_rack) and use_racks(per_rack, self._racks)

    def of_consumer(self, member: int) -> str | None:
        """The member's rack, None also where racks are not in use."""
        return self._consumer_racks[member] if self.in_use else None

    def of_partition(self, number: int) -> Racks:
        """The racks of the partition's replicas; a partition that does not exist has none."""
        return self._racks[number] if number < len(self._racks) else frozenset()

    def mismatch(self, member: int, number: int) -> bool:
        """Whether the member sits in a rack in which the partition has no replica."""
        rack = self.of_consumer(member)
        return rack is not None and rack not in self.of_partition(number)

    def sort_by_consumers(self, numbers: Sequence[int]) -> Sequence[int]:
        """Partitions with few members in their racks first. Kafka does so as soon as one member has a rack."""
        if not self._racks:
            return numbers
        return sorted(numbers, key=lambda number: self._counts[self._racks[number]])
