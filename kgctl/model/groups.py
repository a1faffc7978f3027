"""Topics, partitions and offsets; groups and members as an administrator sees them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum, StrEnum
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar, cast, overload
from uuid import UUID

from kgctl.model.values import frozen_in_order, quick_enum

if TYPE_CHECKING:
    from kgctl.model.streams import StreamsTasks, Topology

ZERO_UUID = UUID(int=0)


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


new_partition = partial(tuple.__new__, TopicPartition)
"""A `TopicPartition` of a tuple, in half the time: for answers about very many of them."""

V = TypeVar("V")


class ByPartition(dict[TopicPartition, V]):
    """What is told of each partition: a dictionary, whose keys may be written as plain tuples: ``offsets["orders", 0]``."""

    def __getitem__(self, key: tuple[str, int], /) -> V:
        return super().__getitem__(cast("TopicPartition", key))

    @overload  # type: ignore[override]
    def get(self, key: tuple[str, int], /) -> V | None: ...
    @overload
    def get(self, key: tuple[str, int], default: V, /) -> V: ...
    def get(self, key: tuple[str, int], default: V | None = None, /) -> V | None:
        """Return what is told of this partition, or ``default``."""
        return super().get(cast("TopicPartition", key), default)


_TOPIC_NAME_LENGTH = 249
_TOPIC_CHARACTERS = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_problem(name: str) -> str | None:
    """Why a topic cannot have this name, in Kafka's words (Topic#validate); None when it can."""
    problem = None
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > _TOPIC_NAME_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {_TOPIC_NAME_LENGTH}"
    elif not _TOPIC_CHARACTERS.fullmatch(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None if problem is None else f"Topic name is invalid: {problem}"


@frozen_in_order
class TopicMetadata:
    """A topic as the coordinator sees it.

    ``partition_racks`` has one entry a partition, the racks of its replicas, or is empty where no racks are known.
    """

    name: str
    topic_id: UUID
    partition_count: int
    partition_racks: tuple[tuple[str, ...], ...] = ()


@frozen_in_order
class MetadataImage:
    """All topics at one moment. ``version`` grows with every change."""

    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    version: int = 0


NO_OFFSET = -1
NO_LEADER_EPOCH = -1


@frozen_in_order
class OffsetAndMetadata:
    """A committed offset, as a client commits or fetches it. ``leader_epoch`` is -1 where unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH

    def is_all(self, log_end: int | None) -> bool:
        """Return whether it says all that the group has done: nothing past it is done, as far as can be told."""
        del log_end
        return True


@frozen_in_order
class StartOffset(OffsetAndMetadata):
    """Where a share group's part of a log begins (SPSO, KIP-932). Records past it may be acknowledged in any order.

    ``records_left`` is the group's lag by its coordinator (KIP-1226): None where it does not tell, as before Kafka 4.2.
    """

    records_left: int | None = field(default=None, compare=False)

    def is_all(self, log_end: int | None) -> bool:
        """Return whether no record past it is acknowledged, for certain."""
        return log_end is not None and self.records_left == log_end - self.offset


class Committable(Protocol):
    """What is to be committed, a mapping: (topic, partition), or a `TopicPartition`, -> the offset of the next record to read.

    An offset stands alone, or with metadata and leader epoch (`OffsetAndMetadata`).
    """

    def items(self) -> Iterable[tuple[tuple[str, int], int | OffsetAndMetadata]]:
        """Return partitions with their offsets."""
        ...


@frozen_in_order
class LogOffsets:
    """The bounds of a partition's log in records; None where unknown.

    ``high_watermark`` is the end where ``log_end_offset`` is the last stable offset, and the two were told apart.
    """

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    high_watermark: int | None = None


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

    @property
    def has_start_offsets(self) -> bool:
        """Whether a group of it has start offsets in the place of commits."""
        return self is GroupType.SHARE


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


@frozen_in_order
class Node:
    """A broker of the cluster. ``node_id`` is -1 where it is unknown."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@frozen_in_order
class GroupListing:
    """One group as ListGroups names it. ``protocol_type`` is "" for a group that only ever had commits."""

    group_id: str
    protocol_type: str = ""
    state: GroupState = GroupState.UNKNOWN
    type: GroupType = GroupType.UNKNOWN
    coordinator: Node | None = None


@frozen_in_order
class MemberDescription:
    """One member. The epochs and the target are None for members of the classic protocol.

    ``assignment`` maps topic to partitions; None where the broker does not tell (a classic group between two generations) or
    where the bytes are not those of a consumer. A member of a streams group has ``tasks`` too, and is assigned what these read.
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
    tasks: StreamsTasks | None = None

    @property
    def partition_count(self) -> int:
        """How many partitions it owns; 0 where that is not known."""
        return sum(len(partitions) for partitions in (self.assignment or {}).values())


@frozen_in_order
class GroupDescription:
    """One group with its members, sorted by member id. Epochs are None for classic groups.

    ``topology`` is that of a streams group; None also where its coordinator has none yet.
    """

    group_id: str
    state: GroupState
    type: GroupType = GroupType.CLASSIC
    protocol_type: str = ""
    assignor: str | None = None
    coordinator: Node | None = None
    members: tuple[MemberDescription, ...] = ()
    group_epoch: int | None = None
    assignment_epoch: int | None = None
    topology: Topology | None = None
    authorized_operations: tuple[str, ...] | None = field(default=None, compare=False)


def listing_of(group: GroupDescription) -> GroupListing:
    """What a list has of it."""
    return GroupListing(group.group_id, group.protocol_type, group.state, group.type, group.coordinator)


S_co = TypeVar("S_co", bound=Enum, covariant=True)


class Transition(NamedTuple, Generic[S_co]):
    """From one state to another of the same kind. ``trigger`` is told in the manual's diagrams."""

    source: S_co
    target: S_co
    trigger: str
