"""A group as the coordinator hands it to a server assignor: topics by id, members in the coordinator's order.

The coordinator calls ``UniformAssignor().assign_targets(spec)`` or ``ServerRangeAssignor().assign_targets(spec)``; the same
assignors take a `kgctl.assignors.spec.GroupSpec` by ``assign``, with topics by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import UUID

Target = Mapping[UUID, Sequence[int]]
_NO_TARGET: Target = MappingProxyType({})


def _no_target() -> Target:
    return _NO_TARGET


@dataclass(frozen=True, slots=True)
class TargetMember:
    """A member of a consumer-protocol group.

    ``topic_ids``: its subscribed topics *that exist*, in the order in which Java iterates over their names (for names that come
    in as a list that is `kgctl.model.java_order.copied_set_order`). ``target``: its present target assignment, topics in the
    order in which they were put into their ``HashMap``, partitions in the order in which their ``HashSet`` was filled.
    """

    member_id: str
    topic_ids: Sequence[UUID]
    target: Target = field(default_factory=_no_target)
    instance_id: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """The group. ``members`` stand in map order: that of the ``HashMap`` of member specs which the coordinator fills.

    ``topics``: topic id -> number of partitions, at least of all subscribed topics. ``is_homogeneous``: all members subscribe to
    the same names. ``subscribed_names``: how many names the first member subscribes to, topics that do not exist included; None:
    as many as it has ``topic_ids``. Targets must be valid: one owner a partition, partitions that exist.
    """

    members: Sequence[TargetMember]
    topics: Mapping[UUID, int]
    is_homogeneous: bool
    subscribed_names: int | None = None


class Move(NamedTuple):
    """A partition goes from one member to another: numbers in the spec's order, the giver -1 where nobody has it."""

    giver: int
    receiver: int
    topic: int
    partition: int


class TargetAssignor(Protocol):
    """A server assignor as the coordinator sees it."""

    @property
    def name(self) -> str:
        """The name in ``group.consumer.assignors``."""
        ...

    def assign_targets(self, spec: TargetSpec, moves: list[Move] | None = None) -> dict[str, dict[UUID, Sequence[int]]]:
        """The new target of every member; members that are left out have none.

        ``moves`` gets the steps on the way there from an assignor that moves partitions one by one: "uniform", for a
        heterogeneous group.

        A member whose target does not change gets the very partition lists of its old target. Lists stand in the order in which
        Kafka fills its sets, so that the answer can be the ``target`` of the next call.
        """
        ...


def by_id(
    spec: TargetSpec, ids: Sequence[UUID], targets: Sequence[Mapping[int, Sequence[int]]]
) -> dict[str, dict[UUID, Sequence[int]]]:
    """Targets with topics by index as targets with topics by id."""
    return {
        member.member_id: {ids[topic]: partitions for topic, partitions in target.items()}
        for member, target in zip(spec.members, targets, strict=True)
    }
