"""Topics, partitions and offsets; groups and members as an administrator sees them; the records that a coordinator keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, StrEnum
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

    def is_all(self, log_end: int | None) -> bool:
        """Return whether it says all that the group has done: nothing past it is done, as far as can be told."""
        del log_end
        return True


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


S_co = TypeVar("S_co", bound=Enum, covariant=True)


class Transition(NamedTuple, Generic[S_co]):
    """From one state to another of the same kind. ``trigger`` is told in the manual's diagrams."""

    source: S_co
    target: S_co
    trigger: str


TopicPartitions = tuple[tuple[UUID, tuple[int, ...]], ...]
"""(topic id, partitions) in the order of the record."""


class RecordType(IntEnum):
    """The int16 with which a record's key begins. Kafka: CoordinatorRecordType."""

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@frozen_in_order
class OffsetCommitKey:
    """Key of type 1, a committed offset; type 0 is read as 1."""

    group: str
    topic: str
    partition: int


@frozen_in_order
class OffsetCommitValue:
    """Written as version 4, or as version 1 when ``expire_timestamp_ms`` is given (leader epoch and topic id are then lost)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1
    topic_id: UUID = ZERO_UUID


@frozen_in_order
class GroupMetadataKey:
    """Key of type 2: a classic group."""

    group: str


@frozen_in_order
class MemberMetadata:
    """One member inside a `GroupMetadataValue`."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


@frozen_in_order
class GroupMetadataValue:
    """Written as version 3. ``current_state_timestamp_ms`` is -1 for none."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


@frozen_in_order
class ConsumerGroupMetadataKey:
    """Key of type 3: a consumer-protocol group and its epoch."""

    group: str


@frozen_in_order
class ConsumerGroupMetadataValue:
    """The group epoch, and Kafka's hash over the subscribed topics (0 for none)."""

    epoch: int
    metadata_hash: int = 0


@frozen_in_order
class ConsumerGroupPartitionMetadataKey:
    """Type 4: only tombstones are written since Kafka 4.1; older values are kept as raw bytes."""

    group: str


@frozen_in_order
class ConsumerGroupMemberMetadataKey:
    """Key of type 5: what a consumer-protocol member subscribes to."""

    group: str
    member_id: str


@frozen_in_order
class ClassicProtocol:
    """One protocol that a member of the classic protocol offers."""

    name: str
    metadata: bytes


@frozen_in_order
class ClassicMemberMetadata:
    """What a classic member inside a consumer-protocol group needs besides."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@frozen_in_order
class ConsumerGroupMemberMetadataValue:
    """A member's subscription.

    ``subscribed_topic_names`` are sorted; ``classic_member_metadata`` is None for consumer-protocol members.
    """

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic_member_metadata: ClassicMemberMetadata | None = None


@frozen_in_order
class ConsumerGroupTargetAssignmentMetadataKey:
    """Key of type 6: the epoch of a group's target assignment."""

    group: str


@frozen_in_order
class ConsumerGroupTargetAssignmentMetadataValue:
    """The assignment epoch, and when the target was computed (0: unknown)."""

    assignment_epoch: int
    assignment_timestamp_ms: int = 0


@frozen_in_order
class ConsumerGroupTargetAssignmentMemberKey:
    """Key of type 7: the target assignment of one member."""

    group: str
    member_id: str


@frozen_in_order
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that the member should own."""

    topic_partitions: TopicPartitions = ()


@frozen_in_order
class ConsumerGroupCurrentMemberAssignmentKey:
    """Key of type 8: what a member owns and has to give up, and its epochs."""

    group: str
    member_id: str


@frozen_in_order
class AssignedTopicPartitions:
    """Partitions of one topic with the epoch at which each was assigned (KIP-1251); empty epochs: a record of before 4.3."""

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] = ()


@frozen_in_order
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member owns. ``state``: 0 STABLE, 1 UNREVOKED_PARTITIONS, 2 UNRELEASED_PARTITIONS."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[AssignedTopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[AssignedTopicPartitions, ...] = ()


@frozen_in_order
class ConsumerGroupRegularExpressionKey:
    """Key of type 16: a regular expression of a group and the topics it stands for."""

    group: str
    regular_expression: str


@frozen_in_order
class ConsumerGroupRegularExpressionValue:
    """The topics, sorted, that a regular expression stood for at ``timestamp_ms`` and metadata ``version``."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


@frozen_in_order
class OpaqueKey:
    """A key that kgctl carries but does not interpret: share and streams groups, types of newer brokers."""

    record_type: int
    raw: bytes
    group: str | None = None


RecordKey = (
    OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
    | OpaqueKey
)
RecordValue = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | bytes
)


@frozen_in_order
class CoordinatorRecord:
    """A key with its value, or with None: a tombstone."""

    key: RecordKey
    value: RecordValue | None


@frozen_in_order
class TransactionMarker:
    """The control record that ends a transaction on the coordinator's partition."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0
