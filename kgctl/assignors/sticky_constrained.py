"""The sticky assignment of a group in which all members subscribe to the same topics.

Every member gets ``minimum`` partitions and ``extra`` members one more. Rules, in this order:

1. In map order each member keeps what it owns, lowest partition numbers first: all, if that is less than the minimum; one more
   than the minimum, if it owns that many and not all extras are taken; else the minimum. What it loses is "maybe revoked".
2. With racks in use partitions go to members in their racks, as long as quotas allow.
3. The rest goes round the members below the minimum, by member id, then one each to those with exactly the minimum.

A partition that goes to another than the member it is revoked from is *transferring*: the cooperative assignor leaves it out.
Kafka: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import compress

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import AssignorError
from kgctl.assignors.sticky_state import Ownership, RackInfo

_INVERT = bytes([1, 0]) + bytes(254)


class ConstrainedAssignment:
    """The work of one assignment. Members are their positions in map order; ``id_rank`` is their place by member id.

    When `build` is done, ``kept`` and ``given`` hold each member's partitions, ``transferring`` who is to get which later.
    """

    def __init__(self, space: PartitionSpace, ownership: Ownership, racks: RackInfo, id_rank: Sequence[int]) -> None:
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
