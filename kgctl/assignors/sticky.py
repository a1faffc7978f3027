"""sticky and cooperative-sticky: as balanced as can be, and among such assignments one that moves little (KIP-54).

sticky is eager: each member sends in its user data what it owned and in which generation. Equal subscriptions go to the
constrained algorithm (`ConstrainedAssignment`), others to the general one (`GeneralAssignment`).
Kafka: ``StickyAssignor``, ``AbstractStickyAssignor``.

cooperative-sticky (KIP-429) leaves out of the answer what moves from one member to another: its owner revokes it first, the
members join again, and the next round gives it to its new owner. Kafka: ``CooperativeStickyAssignor``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import compress

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import (
    AssignorError,
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    Promises,
    StickyClaim,
    by_member_id,
    java_map_order,
    subscribed_space,
)
from kgctl.assignors.sticky_general import GeneralAssignment
from kgctl.assignors.sticky_state import Claim, RackInfo, StickyOwnership, settle_claims
from kgctl.assignors.wire_form import decode_cooperative, decode_sticky

_INVERT = bytes([1, 0]) + bytes(254)


class ConstrainedAssignment:
    """The sticky assignment of a group in which all members subscribe to the same topics.

    Every member gets ``minimum`` partitions and ``extra`` members one more. Rules, in this order:

    1. In map order each member keeps what it owns, lowest partition numbers first: all, if that is less than the minimum; one
       more than the minimum, if it owns that many and not all extras are taken; else the minimum. What it loses is "maybe
       revoked".
    2. With racks in use partitions go to members in their racks, as long as quotas allow.
    3. The rest goes round the members below the minimum, by member id, then one each to those with exactly the minimum.

    A partition that goes to another than the member it is revoked from is *transferring*: the cooperative assignor leaves it
    out. Members are their positions in map order; ``id_rank`` is their place by member id.
    Kafka: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.

    When `build` is done, ``kept`` and ``given`` hold each member's partitions, ``transferring`` who is to get which later.
    """

    def __init__(self, space: PartitionSpace, ownership: StickyOwnership, racks: RackInfo, id_rank: Sequence[int]) -> None:
        self._space = space
        self._ownership = ownership
        self._racks = racks
        self._rank = id_rank
        size = len(id_rank)
        self._minimum, self._extra = divmod(space.total, size)
        self._maximum = self._minimum + (self._extra > 0)
        self._extras_taken = 0
        self._under: list[int] = []
        self._exact: deque[int] = deque()
        self._maybe_revoked: dict[int, int] = {}
        self.kept: list[Sequence[int]] = [()] * size
        self.given: list[list[Sequence[int]]] = [[] for _ in range(size)]
        self.transferring: dict[int, int] = {}

    def build(self) -> None:
        """Assigns everything.

        Raises:
            AssignorError: members are left without their share, which happens only if somebody owns what does not exist.
        """
        for member, owned in enumerate(self._ownership.owned):
            self._keep(member, owned)
        unassigned = self._unassigned()
        self._under.sort(key=self._rank.__getitem__)
        self._exact = deque(sorted(self._exact, key=self._rank.__getitem__))
        unassigned = self._racks.sort_by_consumers(unassigned)
        if self._racks.in_use:
            unassigned = self._deal_by_rack(unassigned)
        self._deal(unassigned)
        self._check_quotas()
        self._find_transferring()

    def _keep(self, member: int, owned: Sequence[int]) -> None:
        if self._racks.of_consumer(member) is not None:
            matching = []
            for number in owned:
                if self._racks.mismatch(member, number):
                    self._maybe_revoked[number] = member
                else:
                    matching.append(number)
            owned = matching
        # A partition with several owners is nobody's; the last claimant's list may still hold it.
        multiple = self._ownership.multiple_owners
        if multiple and not multiple.isdisjoint(owned):
            owned = [number for number in owned if number not in multiple]
        size = len(owned)
        if size < self._minimum:
            self.kept[member] = owned
            self._under.append(member)
        elif size >= self._maximum and self._extras_taken < self._extra:
            self._extras_taken += 1
            if self._extras_taken == self._extra:
                self._exact.clear()
            self._keep_first(member, owned, self._maximum)
        else:
            self._keep_first(member, owned, self._minimum)
            if self._extras_taken < self._extra:
                self._exact.append(member)

    def _keep_first(self, member: int, owned: Sequence[int], quota: int) -> None:
        if len(owned) == quota:
            self.kept[member] = owned
            return
        ordered = sorted(
            owned, key=self._space.column_key if not self._ownership.is_clean else self._space.column_keys.__getitem__
        )
        self.kept[member] = ordered[:quota]
        for number in ordered[quota:]:
            self._maybe_revoked[number] = member

    def _unassigned(self) -> Sequence[int]:
        """What nobody keeps, by topic and number.

        Java merges the sorted lists of all and of kept partitions. One that does not exist is never met, and the merge stops
        there: everything after it counts as unassigned, also if somebody keeps it.
        """
        total = self._space.total
        if not any(map(len, self.kept)):
            return range(total)
        ownership = self._ownership
        if ownership.is_clean and not ownership.multiple_owners and not self._racks.in_use:
            marks = ownership.marks
            for number in self._maybe_revoked:
                marks[number] = 0
        else:
            marks = self._mark_kept()
        return list(compress(range(total), marks.translate(_INVERT)))

    def _mark_kept(self) -> bytearray:
        total = stop = self._space.total
        marks = bytearray(total)
        for kept in self.kept:
            for number in kept:
                if number < total:
                    marks[number] = 1
                else:
                    stop = min(stop, self._space.phantom_end(number))
        marks[stop:] = bytes(total - stop)
        return marks

    def _deal_by_rack(self, unassigned: Sequence[int]) -> list[int]:
        """Step 2. What fits no rack within the quotas is returned."""
        start = 0
        left: list[int] = []
        for number in unassigned:
            found = self._rack_match(number, self._under, start)
            if found >= 0:
                start = self._give_to_under(number, found)
            elif not self._give_to_exact(number):
                left.append(number)
        return left

    def _give_to_under(self, number: int, found: int) -> int:
        member = self._under[found]
        size = self._give(member, number)
        if size >= self._minimum:
            del self._under[found]
            if size < self._maximum and self._extras_taken < self._extra:
                self._exact.append(member)
        else:
            found += 1
        return found % len(self._under) if self._under else 0

    def _give_to_exact(self, number: int) -> bool:
        found = self._rack_match(number, self._exact, 0)
        if found < 0:
            return False
        if self._give(self._exact[found], number) == self._maximum:
            del self._exact[found]
            self._extras_taken += 1
            if self._extras_taken == self._extra:
                self._exact.clear()
        return True

    def _give(self, member: int, number: int) -> int:
        self.given[member].append((number,))
        return self._size(member)

    def _size(self, member: int) -> int:
        return len(self.kept[member]) + sum(map(len, self.given[member]))

    def _rack_match(self, number: int, members: Sequence[int], start: int) -> int:
        wanted, size = self._racks.of_partition(number), len(members)
        for step in range(size if wanted else 0):
            index = (start + step) % size
            rack = self._racks.of_consumer(members[index])
            if rack is not None and rack in wanted:
                return index
        return -1

    def _deal(self, unassigned: Sequence[int]) -> None:
        """Step 3, all rounds at once: as long as nobody reaches the minimum every member gets every n-th partition."""
        position, total = 0, len(unassigned)
        missing = {member: self._minimum - self._size(member) for member in self._under}
        dealt = 0
        while self._under and position < total:
            active = self._under
            rounds = min(missing[member] for member in active) - dealt
            end = position + rounds * len(active)
            for seat, member in enumerate(active):
                self.given[member].append(unassigned[position + seat : end : len(active)])
            position = min(end, total)
            if end > total:
                break
            dealt += rounds
            self._exact.extend(member for member in active if missing[member] == dealt)
            self._under = [member for member in active if missing[member] > dealt]
        if total - position > len(self._exact):
            raise AssignorError("No more unfilled consumers to be assigned.")
        for number in unassigned[position:]:
            self._extras_taken += self._give(self._exact.popleft(), number) == self._maximum

    def _check_quotas(self) -> None:
        if self._under and (self._extras_taken != self._extra or any(self._size(m) != self._minimum for m in self._under)):
            raise AssignorError("No more partitions to be assigned, and members have not reached their quota.")

    def _find_transferring(self) -> None:
        revoked, multiple = self._maybe_revoked, self._ownership.multiple_owners
        if not revoked and not multiple:
            return
        for member, hands in enumerate(self.given):
            for hand in hands:
                for number in hand:
                    if revoked.get(number, member) != member or number in multiple:
                        self.transferring[number] = member


ClaimOf = Callable[[PartitionSpace, MemberSpec], Claim]


class StickyAssignment(GroupAssignment):
    """A sticky assignment, which also knows the partitions that move from one member to another.

    ``transferring``: number of the partition -> the member that shall have it; None where the general algorithm was used.
    """

    __slots__ = ("_given", "_kept", "max_generation", "transferring")

    def __init__(
        self,
        space: PartitionSpace,
        kept: Mapping[str, Sequence[int]],
        given: Mapping[str, Sequence[Sequence[int]]],
        transferring: Mapping[int, str] | None,
        max_generation: int,
    ) -> None:
        super().__init__(space, {member: _joined(numbers, given.get(member, ())) for member, numbers in kept.items()})
        self._kept = kept
        self._given = given
        self.transferring = transferring
        self.max_generation = max_generation

    def ordered_ids(self, member_id: str) -> Sequence[int]:
        """What the member keeps, by number and topic, then what it is given, in the order of giving.

        Exact where all members subscribe alike. Else Kafka's order is that of the moves, which nothing depends on.
        """
        kept = self._kept[member_id]
        has_all = not kept or max(kept) < self.space.total
        kept = sorted(kept, key=self.space.column_keys.__getitem__ if has_all else self.space.column_key)
        return [*kept, *(number for hand in self._given.get(member_id, ()) for number in hand)]


def _joined(kept: Sequence[int], hands: Sequence[Sequence[int]]) -> Sequence[int]:
    if not hands:
        return kept
    if not kept and len(hands) == 1:
        return hands[0]
    joined = list(kept)
    for hand in hands:
        joined.extend(hand)
    return joined


class StickyAssignor:
    """Ownership comes from the user data alone; the subscription's own fields do not count."""

    name = "sticky"
    promises = Promises(even_in_total=True, moves_least=True)

    def assign(self, group: GroupSpec) -> StickyAssignment:
        """Balanced to one partition where all subscribe alike, else as far as subscriptions allow."""
        return assign_sticky(group, _claim)


def _claim(space: PartitionSpace, member: MemberSpec) -> Claim:
    data = member.user_data
    claim = data if isinstance(data, StickyClaim) else decode_sticky(data)
    return Claim(space.numbers(claim.owned), claim.generation)


def assign_sticky(group: GroupSpec, claim_of: ClaimOf) -> StickyAssignment:
    """The common part of the two sticky assignors; ``claim_of`` reads what a member says it owns."""
    space = subscribed_space(group)
    members = java_map_order(group.members)
    claims = [claim_of(space, member) for member in members]
    ownership = settle_claims(space, members, claims, group.max_generation)
    racks = RackInfo(space, group, members)
    rank = {member.member_id: position for position, member in enumerate(by_member_id(members))}
    id_rank = [rank[member.member_id] for member in members]
    positions = {member.member_id: position for position, member in enumerate(members)}
    names = [member.member_id for member in group.members]
    if not _all_subscriptions_equal(members):
        general = GeneralAssignment(space, members, id_rank, racks, ownership)
        ids = general.build(claims)
        return StickyAssignment(space, {name: ids[positions[name]] for name in names}, {}, None, ownership.max_generation)
    if not members:
        return StickyAssignment(space, {}, {}, {}, ownership.max_generation)
    work = ConstrainedAssignment(space, ownership, racks, id_rank)
    work.build()
    return StickyAssignment(
        space,
        {name: work.kept[positions[name]] for name in names},
        {name: work.given[positions[name]] for name in names},
        {number: members[member].member_id for number, member in work.transferring.items()},
        ownership.max_generation,
    )


def _all_subscriptions_equal(members: Sequence[MemberSpec]) -> bool:
    """Whether Kafka finds the subscriptions equal: members before the first that subscribes to anything do not count.

    A name doubled in a subscription makes it unequal, save in that first one.
    """
    wanted: set[str] = set()
    last: tuple[str, ...] | None = None
    for member in members:
        if not wanted:
            wanted.update(member.topics)
        elif member.topics is not last and not (len(member.topics) == len(wanted) and wanted.issuperset(member.topics)):
            return False
        last = member.topics if len(member.topics) == len(wanted) else None
    return True


class CooperativeStickyAssignor:
    """Ownership is the subscription's; its generation, too, or else the one in the user data."""

    name = "cooperative-sticky"
    promises = Promises(even_in_total=True, moves_least=True, is_cooperative=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The assignment that the leader sends: partitions that have to be revoked first are in nobody's list."""
        return self.two_phases(group)[1]

    def two_phases(self, group: GroupSpec) -> tuple[StickyAssignment, GroupAssignment]:
        """The assignment that is aimed at, and what of it the leader may send now."""
        aim = assign_sticky(group, _cooperative_claim)
        moving = aim.transferring if aim.transferring is not None else _changes_of_owner(group, aim)
        return aim, _Adjusted(aim, moving)


class _Adjusted(GroupAssignment):
    """An assignment without the partitions that their owners have to give up first."""

    __slots__ = ("_aim", "_left_out", "max_generation")

    def __init__(self, aim: StickyAssignment, transferring: Mapping[int, str]) -> None:
        left_out: dict[str, set[int]] = {}
        for number, member_id in transferring.items():
            left_out.setdefault(member_id, set()).add(number)
        super().__init__(
            aim.space, {name: _without(aim.ids(name), left_out[name]) if name in left_out else aim.ids(name) for name in aim}
        )
        self._aim = aim
        self._left_out = left_out
        self.max_generation = aim.max_generation

    def ordered_ids(self, member_id: str) -> Sequence[int]:
        """Return the member's partitions in the order of the whole assignment."""
        return _without(self._aim.ordered_ids(member_id), self._left_out.get(member_id, set()))


def _without(numbers: Sequence[int], left_out: set[int]) -> Sequence[int]:
    """``numbers`` without one occurrence of each of ``left_out``."""
    pending = set(left_out)
    result = []
    for number in numbers:
        if number in pending:
            pending.discard(number)
        else:
            result.append(number)
    return result


def _cooperative_claim(space: PartitionSpace, member: MemberSpec) -> Claim:
    generation = member.generation if member.generation >= 0 else decode_cooperative(member.user_data)
    return Claim(space.numbers(member.owned), generation)


def _changes_of_owner(group: GroupSpec, aim: StickyAssignment) -> dict[int, str]:
    """Partitions new to their owner that somebody else says it owns and shall no longer have.

    Kafka: ``CooperativeStickyAssignor#computePartitionsTransferringOwnership``.
    """
    owned = {member.member_id: frozenset(aim.space.numbers(member.owned)) for member in group.members}
    revoked = {number for name in aim for number in owned[name].difference(aim.ids(name))}
    # Of two owners, which only claims of partitions that do not exist lead to, Kafka leaves the last in map order without it.
    in_map_order = [member.member_id for member in java_map_order(group.members)]
    return {number: name for name in in_map_order for number in revoked.intersection(aim.ids(name)) if number not in owned[name]}
