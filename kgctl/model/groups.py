"""Groups and members as an administrator sees them, whatever protocol they speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from kgctl.model.values import quick_enum

Assignment = Mapping[str, tuple[int, ...]]
"""Topic name -> partitions, ascending."""


@quick_enum
class GroupType(StrEnum):
    """The protocol a group speaks, in ListGroups' own spelling; no broker has a group of ZooKeeper's."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    ZOOKEEPER = "zookeeper"
    UNKNOWN = "unknown"


@quick_enum
class GroupState(StrEnum):
    """A group's state, in Kafka's own spelling; groups of different types have different subsets of these."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"
    STABLE = "Stable"
    DEAD = "Dead"
    UNKNOWN = "Unknown"

    @property
    def is_inactive(self) -> bool:
        """Whether offsets may be reset from outside: no member is there to fight over them."""
        return self in (GroupState.EMPTY, GroupState.DEAD)

    @property
    def is_rebalancing(self) -> bool:
        """Return whether members of a group in this state are between two assignments."""
        return self in _REBALANCING


_REBALANCING = frozenset(
    {
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.ASSIGNING,
        GroupState.RECONCILING,
    }
)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker of the cluster. ``node_id`` is -1 where it is unknown."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group as ListGroups names it. ``protocol_type`` is "" for a group that only ever had commits."""

    group_id: str
    protocol_type: str = ""
    state: GroupState = GroupState.UNKNOWN
    type: GroupType = GroupType.UNKNOWN
    coordinator: Node | None = None


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member. The epochs and the target are None for members of the classic protocol.

    ``assignment`` maps topic to partitions; None where the broker does not tell (a classic group between two generations) or
    where the bytes are not those of a consumer.
    """

    member_id: str
    client_id: str = ""
    host: str = ""
    group_instance_id: str | None = None
    rack_id: str | None = None
    assignment: Assignment | None = None
    target_assignment: Assignment | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    member_epoch: int | None = None
    is_classic_in_consumer_group: bool | None = None

    @property
    def partition_count(self) -> int:
        """How many partitions it owns; 0 where that is not known."""
        return sum(len(partitions) for partitions in (self.assignment or {}).values())


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group with its members, sorted by member id. Epochs are None for classic groups."""

    group_id: str
    state: GroupState
    type: GroupType = GroupType.CLASSIC
    protocol_type: str = ""
    assignor: str | None = None
    coordinator: Node | None = None
    members: tuple[MemberDescription, ...] = ()
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    authorized_operations: tuple[str, ...] | None = field(default=None, compare=False)


S_co = TypeVar("S_co", bound=Enum, covariant=True)


@dataclass(frozen=True, slots=True)
class Transition(Generic[S_co]):
    """From one state to another of the same kind. ``trigger`` is told in the manual's diagrams."""

    source: S_co
    target: S_co
    trigger: str
