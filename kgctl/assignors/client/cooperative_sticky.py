"""cooperative-sticky: the sticky assignor for incremental rebalances (KIP-429).

What moves from one member to another is left out of the answer: its owner revokes it first, the members join again, and the next
round gives it to its new owner. Kafka: ``CooperativeStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.assignors.client.members import java_map_order
from kgctl.assignors.client.sticky import StickyAssignment, assign_sticky
from kgctl.assignors.client.sticky_state import Claim
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, Promises
from kgctl.assignors.wire_form import decode_cooperative


class CooperativeStickyAssignor:
    """Ownership is the subscription's; its generation, too, or else the one in the user data."""

    name = "cooperative-sticky"
    promises = Promises(even_in_total=True, moves_least=True, is_cooperative=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The assignment that the leader sends: partitions that have to be revoked first are in nobody's list."""
        return self.two_phases(group)[1]

    def two_phases(self, group: GroupSpec) -> tuple[StickyAssignment, GroupAssignment]:
        """The assignment that is aimed at, and what of it the leader may send now."""
        aim = assign_sticky(group, _claim)
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


def _claim(space: PartitionSpace, member: MemberSpec) -> Claim:
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
