"""Racks as the sticky assignors use them (KIP-881). Kafka: ``AbstractStickyAssignor.RackInfo``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kgctl.assignors.client.racks import Racks, partition_racks, use_racks
from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import GroupSpec, MemberSpec


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
            for name in space.names:
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
