"""uniform: the coordinator's default assignor. As many partitions for everybody, and few moves; racks are ignored.

Kafka: ``UniformAssignor``.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.assignors.server.by_name import assign_by_name
from kgctl.assignors.server.heterogeneous import assign_heterogeneous
from kgctl.assignors.server.homogeneous import assign_homogeneous
from kgctl.assignors.server.indexed import IndexedGroup, IndexedTarget, indexed
from kgctl.assignors.server.spec import Move, TargetSpec, by_id
from kgctl.assignors.spec import GroupAssignment, GroupSpec, Promises


class UniformAssignor:
    """Homogeneous groups, in which all subscribe to the same names, have an algorithm of their own."""

    name = "uniform"
    promises = Promises(even_in_total=True)

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """The targets of a group with topics by name; ``owned`` is a member's present target."""
        return assign_by_name(self.assign_indexed, group)

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:
        """Balanced to one partition in a homogeneous group, else nearly, as far as subscriptions allow.

        ``moves`` gets the steps of a heterogeneous group.

        Raises:
            AssignorError: a subscribed topic is not in ``spec.topics``.
        """
        group = indexed(spec)
        return by_id(spec, group.ids, self.assign_indexed(group, moves))

    def assign_indexed(self, group: IndexedGroup, moves: list[Move] | None = None) -> list[IndexedTarget]:
        """The same with indexes for ids, in the order of the members."""
        return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group, moves)
