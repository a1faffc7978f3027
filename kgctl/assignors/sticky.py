"""sticky and cooperative-sticky: as balanced as can be, and among such assignments one that moves little (KIP-54).

sticky is eager: each member sends in its user data what it owned and in which generation. Equal subscriptions go to the
constrained algorithm, others to the general one. Kafka: ``StickyAssignor``, ``AbstractStickyAssignor``.

cooperative-sticky (KIP-429) leaves out of the answer what moves from one member to another: its owner revokes it first, the
members join again, and the next round gives it to its new owner. Kafka: ``CooperativeStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import (
    GroupAssignment,
    GroupSpec,
    MemberSpec,
    Promises,
    StickyClaim,
    by_member_id,
    java_map_order,
    subscribed_space,
)
from kgctl.assignors.sticky_constrained import ConstrainedAssignment
from kgctl.assignors.sticky_general import GeneralAssignment
from kgctl.assignors.sticky_state import Claim, RackInfo, settle_claims
from kgctl.assignors.wire_form import decode_cooperative, decode_sticky

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
