"""Topics, partitions and offsets; groups and members as an administrator sees them, whatever protocol they speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from kgctl.model.values import frozen_in_order, quick_enum

ZERO_UUID = UUID(int=0)


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as the coordinator sees it.

    ``partition_racks`` has one entry a partition, the racks of its replicas, or is empty where no racks are known.
    """

    name: str
    topic_id: UUID
    partition_count: int
    partition_racks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All topics at one moment. ``version`` grows with every change."""

    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    version: int = 0


NO_OFFSET = -1
NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, as a client commits or fetches it. ``leader_epoch`` is -1 where unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The bounds of a partition's log in records; None where unknown."""

    log_start_offset: int | None = None
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One row of ``describe group``. Unknown is None, never a guess.

    ``lag`` is ``log_end_offset - current_offset`` in records, not clamped: a commit past the end of the log shows as a negative
    lag, as Kafka's own tool has it.
    """

    partition: TopicPartition
    current_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None = None
    metadata: str | None = None


NO_GENERATION = -1


@frozen_in_order
class ConsumerSubscription:
    """ConsumerProtocolSubscription, version 0-3. What a version cannot carry has its default.

    ``generation_id`` is -1 for none, ``rack_id`` None for none. Topics and owned partitions stand in the order of the wire.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    version: int = 3


@frozen_in_order
class ConsumerAssignment:
    """ConsumerProtocolAssignment: one member's partitions, in the order of the wire."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
    version: int = 3


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
