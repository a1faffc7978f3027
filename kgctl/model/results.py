"""What the coordinator answers: one frozen dataclass an API, free of wire versions. Errors are values."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.model.values import frozen

TopicPartitions = tuple[tuple[UUID, tuple[int, ...]], ...]


@frozen
class JoinGroupMember:
    """A member as the leader of a generation is told of it."""

    member_id: str
    group_instance_id: str | None = None
    metadata: bytes = b""


@frozen
class JoinGroupResult:
    """What a member learns of its new generation; the defaults are those of an error."""

    error: ErrorCode = ErrorCode.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupMember, ...] = ()


@frozen
class SyncGroupResult:
    """The assignment of the member that asked."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@frozen
class HeartbeatResult:
    """Whether the member may go on; REBALANCE_IN_PROGRESS asks it to join again."""

    error: ErrorCode = ErrorCode.NONE


@frozen
class MemberLeaveResult:
    """What became of one identity, echoed as it was given."""

    member_id: str
    group_instance_id: str | None = None
    error: ErrorCode = ErrorCode.NONE


@frozen
class LeaveGroupResult:
    """One entry an identity, in the order of the request."""

    error: ErrorCode = ErrorCode.NONE
    members: tuple[MemberLeaveResult, ...] = ()


@frozen
class PartitionErrors:
    """OffsetCommit and TxnOffsetCommit: (partition, error) as requested; a failure of the whole request is on each."""

    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


@frozen
class OffsetDeleteResult:
    """With a top-level error the partitions are empty."""

    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


@frozen
class FetchedOffset:
    """One partition of an OffsetFetch; offset -1, epoch -1, metadata "" where nothing is stored."""

    partition: TopicPartition
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@frozen
class OffsetFetchResult:
    """With a group-level error the offsets are empty."""

    group_id: str | None
    error: ErrorCode = ErrorCode.NONE
    offsets: tuple[FetchedOffset, ...] = ()


@frozen
class DescribedMember:
    """A member as DescribeGroups shows it."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    metadata: bytes = b""
    assignment: bytes = b""


@frozen
class DescribedGroup:
    """A group in DescribeGroups. ``error_message`` from version 6 on."""

    group_id: str | None
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()


@frozen
class DescribeGroupsResult:
    """Groups in the order of the request."""

    groups: tuple[DescribedGroup, ...]


@frozen
class ListedGroup:
    """A group as ListGroups shows it."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@frozen
class ListGroupsResult:
    """Groups in the order in which Kafka lists them."""

    error: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()


@frozen
class DeleteGroupsResult:
    """(group id, error) in the order of the request."""

    groups: tuple[tuple[str | None, ErrorCode], ...]


@frozen
class ConsumerGroupHeartbeatResult:
    """``assignment`` None: unchanged, not sent. Error replies: member id None, epoch 0."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: TopicPartitions | None = None


@frozen
class ConsumerGroupDescribedMember:
    """A member in ConsumerGroupDescribe; ``member_type`` 0 classic, 1 consumer."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: TopicPartitions = ()
    target_assignment: TopicPartitions = ()
    member_type: int = 1


@frozen
class ConsumerGroupDescribedGroup:
    """A group as ConsumerGroupDescribe shows it."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[ConsumerGroupDescribedMember, ...] = ()


@frozen
class ConsumerGroupDescribeResult:
    """Groups in the order of the request."""

    groups: tuple[ConsumerGroupDescribedGroup, ...]


@frozen
class Done:
    """The answer to an event or to a request of kgctl's own."""

    error: ErrorCode = ErrorCode.NONE


@frozen
class AwaitedMember:
    """A member that a rebalance waits for: since when, and when its patience ends (both in the coordinator's milliseconds)."""

    member_id: str
    group_instance_id: str | None
    waiting_for: str
    session_deadline_ms: int | None


@frozen
class RebalanceStatus:
    """Where a group's rebalance stands (kgctl's own; never on Kafka's wire).

    ``waiting_for`` names the phase: "initial-delay", "join", "sync", or None when no rebalance is under way. ``awaited`` are the
    members that keep it from ending, sorted by id; ``deadline_ms`` is when it ends without them.
    """

    group_id: str
    state: str
    generation_id: int
    waiting_for: str | None = None
    started_ms: int | None = None
    deadline_ms: int | None = None
    awaited: tuple[AwaitedMember, ...] = ()
    is_stuck: bool = False


@frozen
class CoordinatorStatistics:
    """How many groups by (type, state) and how many members by type."""

    groups: Mapping[tuple[str, str], int]
    members: Mapping[str, int]
    offsets: int


Result = (
    JoinGroupResult
    | SyncGroupResult
    | HeartbeatResult
    | LeaveGroupResult
    | PartitionErrors
    | OffsetDeleteResult
    | OffsetFetchResult
    | DescribeGroupsResult
    | ListGroupsResult
    | DeleteGroupsResult
    | ConsumerGroupHeartbeatResult
    | ConsumerGroupDescribeResult
    | Done
)
