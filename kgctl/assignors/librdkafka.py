"""cooperative-sticky as librdkafka has it: the general algorithm of Kafka's sticky assignor for all groups, in its own orders.

Members keep what they own; what is left goes to whoever has least, of several the first by member id; then partitions move from
members with more to members with less. Unlike in Kafka's there is no other algorithm for equal subscriptions, and partitions that
nobody owns come last, the highest first. Where a partition moves twice librdkafka goes on with memory that it has given back,
and may end the process; here it is moved. librdkafka: ``rd_kafka_sticky_assignor_assign_cb``; what moves is left out by
``rd_kafka_cooperative_protocol_adjust_assignment``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import AssignorError, GroupAssignment, GroupSpec, Promises, owned_by_topic
from kgctl.assignors.sticky_state import MovedSet, PartitionMovements, RackInfo, balance_score

_Mismatch = Callable[[int, int], bool]


class LibrdkafkaCooperativeSticky:
    """Ownership and its generation are the subscription's; user data do not count."""

    name = "librdkafka:cooperative-sticky"
    promises = Promises(even_in_total=True, is_cooperative=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The assignment that the leader sends: partitions that have to be revoked first are in nobody's list.

        Raises:
            AssignorError: librdkafka reads what is not there, and may end the process.
        """
        space = _space(group)
        owned = [space.numbers(member.owned) for member in group.members]
        held = _Assignment(space, group, owned).build()
        members = [member.member_id for member in group.members]
        return GroupAssignment(space, dict(zip(members, _adjusted(owned, held), strict=True)))


def _space(group: GroupSpec) -> PartitionSpace:
    """The partitions of subscribed topics; those of other topics that somebody owns are taken as not there."""
    counts = {name: 0 for member in group.members for name in owned_by_topic(member)}
    for name in {name for member in group.members for name in member.topics}:
        if name in group.topics:
            counts[name] = group.topics[name].partition_count
    return PartitionSpace(counts)


def _adjusted(owned: Sequence[Sequence[int]], held: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """What stays, what nobody owns, and what is not there; of several that say they own a partition the last one counts."""
    owner = {number: member for member, numbers in enumerate(owned) for number in numbers}
    assigned = {number for numbers in held for number in numbers}
    for member, numbers in enumerate(held):
        mine = [number for number in numbers if owner.get(number, member) == member]
        lost = [number for number in dict.fromkeys(owned[member]) if number not in assigned and owner[number] == member]
        yield sorted(mine + lost)


class _Assignment:
    """The work of one assignment. Members are their positions in the group, partitions their numbers."""

    def __init__(self, space: PartitionSpace, group: GroupSpec, owned: Sequence[Sequence[int]]) -> None:
        self._space = space
        members = group.members
        ranked = sorted(range(len(members)), key=lambda member: members[member].member_id)
        self._rank = {member: rank for rank, member in enumerate(ranked)}
        self._member = ranked
        existing = {name: index for name, index in space.index.items() if space.counts[index]}
        self._topics = [frozenset(existing[name] for name in member.topics if name in existing) for member in members]
        self._subscribers: list[list[int]] = [[] for _ in space.names]
        for member, topics in enumerate(self._topics):
            for topic in topics:
                self._subscribers[topic].append(member)
        self._most = [sum(space.counts[topic] for topic in topics) for topics in self._topics]
        self._racks = RackInfo(space, group, members)
        self._held: list[list[int]] = [[] for _ in members]
        self._owner: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        self._load: list[tuple[int, int]] = []
        """(number of partitions, rank) of the members that take part, ascending."""
        self._movements = [PartitionMovements(space, topic, MovedSet.oldest) for topic in range(len(space.names))]
        self._claim(owned, [member.generation for member in members])

    def build(self) -> list[list[int]]:
        """Each member's partitions."""
        in_order = self._in_order()
        kept, must_revoke = self._keep()
        unassigned = [number for number in in_order if number not in kept]
        self._load = sorted((len(held), self._rank[member]) for member, held in enumerate(self._held))
        is_initial = not self._load or not self._load[-1][0]
        left = self._give(unassigned, self._racks.mismatch) if self._racks.in_use else unassigned
        self._give(left, None)
        self._load = [each for each in self._load if self._takes_part(self._member[each[1]])]
        before = [list(held) for held in self._held]
        active = [self._member[rank] for _, rank in self._load]
        if not must_revoke:
            self._move([number for number in unassigned if self._can_move(number)])
        has_moved = self._move([number for number in in_order if self._can_move(number)])
        if not is_initial and has_moved and _score(self._held, active) >= _score(before, active):
            return before
        return self._held

    # --- what members say

    def _claim(self, owned: Sequence[Sequence[int]], generations: Sequence[int]) -> None:
        """The highest generation counts, the second is remembered; of two that are equal neither does."""
        claims: dict[int, list[tuple[int, int]]] = {}
        for member, numbers in enumerate(owned):
            for number in numbers:
                claims.setdefault(number, []).append((generations[member], member))
                self._owner[number] = member
        for number, made in claims.items():
            made.sort()
            if len({generation for generation, _ in made}) < len(made):
                del self._owner[number]
                continue
            self._held[made[-1][1]].append(number)
            if len(made) > 1:
                self._previous[number] = made[-2][1]

    def _keep(self) -> tuple[set[int], bool]:
        """Members lose what is not there, and what they no longer subscribe to or is not in their rack."""
        kept: set[int] = set()
        must_revoke = False
        for member, held in enumerate(self._held):
            there = [number for number in held if number < self._space.total]
            for number in set(held).difference(there):
                self._owner.pop(number, None)
            stays = [number for number in there if self._may_have(member, number)]
            must_revoke = must_revoke or len(stays) < len(there)
            kept.update(stays)
            self._held[member] = stays
        return kept, must_revoke

    def _may_have(self, member: int, number: int) -> bool:
        return self._space.topic_of[number] in self._topics[member] and not self._racks.mismatch(member, number)

    # --- the order of the partitions

    def _in_order(self) -> list[int]:
        """Few subscribers first; where all are alike, one by one of whoever has most, what others had before that first."""
        space = self._space
        if any(topics != self._topics[0] for topics in self._topics):
            return sorted(range(space.total), key=lambda number: (len(self._subscribers[space.topic_of[number]]), number))
        remaining: dict[int, list[int]] = {}
        for member, held in enumerate(self._held):
            held.sort()
            there = [number for number in held if number < space.total]
            if there:
                had_by_others = [number for number in there if number in self._previous]
                remaining[member] = [*had_by_others, *(number for number in there if number not in self._previous)][::-1]
        found = self._one_by_one(remaining)
        met = set(found)
        rest = [number for number in reversed(range(space.total)) if number not in met]
        return [*found, *rest] if found else rest[::-1]

    def _one_by_one(self, remaining: dict[int, list[int]]) -> list[int]:
        found: list[int] = []
        heap = [(-len(numbers), -self._rank[member]) for member, numbers in remaining.items()]
        heapify(heap)
        while heap:
            size, rank = heap[0]
            found.append(remaining[self._member[-rank]].pop())
            if size < -1:
                heapreplace(heap, (size + 1, rank))
            else:
                heappop(heap)
        return found

    # --- giving and moving

    def _give(self, numbers: Sequence[int], mismatch: _Mismatch | None) -> list[int]:
        """To the first by load that subscribes, and whose rack fits; what goes to nobody is returned."""
        left: list[int] = []
        for number in numbers:
            target = self._first(number, mismatch)
            if target is None:
                left.append(number)
                continue
            self._take(number, target)
        return left

    def _first(self, number: int, mismatch: _Mismatch | None = None) -> int | None:
        topic = self._space.topic_of[number]
        for _, rank in self._load:
            member = self._member[rank]
            if topic in self._topics[member] and (mismatch is None or not mismatch(member, number)):
                return member
        return None

    def _take(self, number: int, member: int) -> None:
        self._held[member].append(number)
        self._owner[number] = member
        self._resize(member, 1)

    def _resize(self, member: int, change: int) -> None:
        size, rank = len(self._held[member]), self._rank[member]
        del self._load[bisect_left(self._load, (size - change, rank))]
        insort(self._load, (size, rank))

    def _can_move(self, number: int) -> bool:
        return len(self._subscribers[self._space.topic_of[number]]) > 1

    def _takes_part(self, member: int) -> bool:
        held = self._held[member]
        return len(held) < self._most[member] or any(map(self._can_move, held))

    def _move(self, numbers: Sequence[int]) -> bool:
        """Passes until one moves nothing; whether anything was moved."""
        has_moved = False
        while self._pass(numbers):
            has_moved = True
        return has_moved

    def _pass(self, numbers: Sequence[int]) -> bool:
        has_moved = False
        for number in numbers:
            if self._is_balanced():
                break
            target = self._better(number)
            if target is not None:
                self._hand_over(number, target)
                has_moved = True
        return has_moved

    def _better(self, number: int) -> int | None:
        """Who should have it rather than its owner: who had it before, else the first by load, if somebody has two fewer."""
        source = self._owner[number]
        size = len(self._held[source])
        former = self._previous.get(number)
        if former is not None:
            if (len(self._held[former]), self._rank[former]) not in self._load:
                raise AssignorError("librdkafka: a former owner of a partition takes no part in balancing")
            if size > len(self._held[former]) + 1:
                return former
        others = self._subscribers[self._space.topic_of[number]]
        if all(size <= len(self._held[other]) + 1 for other in others if other != source):
            return None
        return self._first(number)

    def _hand_over(self, number: int, target: int) -> None:
        movements = self._movements[self._space.topic_of[number]]
        number = movements.actual(number, self._owner[number], target)
        source = self._owner[number]
        movements.move(number, source, target)
        self._take(number, target)
        if number in self._held[source]:  # the owner is who named it last, not who has it by its generation
            self._held[source].remove(number)
            self._resize(source, -1)

    def _is_balanced(self) -> bool:
        """Whether sizes differ by one at the most, or nobody could have what a member with more has."""
        if not self._load or self._load[0][0] >= self._load[-1][0] - 1:
            return True
        most: list[int] = [0] * len(self._space.names)
        for size, rank in self._load:
            for number in self._held[self._member[rank]]:
                most[self._space.topic_of[number]] = size
        return not any(
            size < self._most[self._member[rank]] and any(most[topic] > size for topic in self._topics[self._member[rank]])
            for size, rank in self._load
        )


def _score(held: Sequence[Sequence[int]], members: Sequence[int]) -> int:
    return balance_score(len(held[member]) for member in members)
