"""What the coordinator can be asked and what it answers: two frozen dataclasses an API, free of wire versions, plus the events
of its surroundings. Errors of an answer are values.

``api_version`` travels along because a few answers depend on it (KIP-394, KIP-814, error codes of commits). Null on the wire is
None here; a missing number is Kafka's own default. Times are milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kgctl.errors import UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, MetadataImage, OffsetAndMetadata, TopicPartition
from kgctl.model.share_results import ShareResult
from kgctl.model.streams_results import StreamsGroupDescribeResult, StreamsGroupHeartbeatResult
from kgctl.model.values import frozen

LATEST_VERSION = 32_767
"""Stands for "the newest version" where the caller has no wire."""


@frozen
class Request:
    """Base of all requests. ``request_id`` is the driver's; exactly one `Reply` with it comes back, now or later."""

    request_id: int
    api_version: int = LATEST_VERSION
    client_id: str = ""
    client_host: str = "/127.0.0.1"


@frozen
class JoinProtocol:
    """A protocol a classic member offers: its name and its ConsumerProtocolSubscription (or other) bytes."""

    name: str
    metadata: bytes = b""


@frozen
class JoinGroup(Request):
    """JoinGroup. ``rebalance_timeout_ms`` None: version 0, the session timeout counts."""

    group_id: str | None
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[JoinProtocol, ...] = ()
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int | None = 300_000
    reason: str | None = None


@frozen
class SyncGroup(Request):
    """SyncGroup. ``assignments`` only from the leader: member id -> bytes, in the order of the request."""

    group_id: str | None
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


@frozen
class Heartbeat(Request):
    """A member of a classic group lives, at this generation."""

    group_id: str | None
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@frozen
class MemberIdentity:
    """A member that is to leave, by member id, instance id or both."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


@frozen
class LeaveGroup(Request):
    """LeaveGroup. Versions 0-2 carry one identity, whose error the driver moves to the top level."""

    group_id: str | None
    members: tuple[MemberIdentity, ...]


@frozen
class OffsetCommitPartition:
    """One partition of a commit. ``topic_id`` is resolved by the driver (all zero where it cannot be)."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: UUID = ZERO_UUID


def offset_to_commit(key: object, value: object) -> OffsetCommitPartition:
    """Return what a commit says of one partition. Raises `UsageError` for what is no (topic, partition) -> offset of 0 or more.

    Kafka's clients refuse the same before they ask: a broker would store a negative offset.
    """
    topic, partition = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
    if not isinstance(topic, str) or not topic or not isinstance(partition, int) or not 0 <= partition < 1 << 31:
        raise UsageError(f"offsets are of a (topic, partition), not of {key!r}")
    stored = value if isinstance(value, OffsetAndMetadata) else None
    offset = value if stored is None else stored.offset
    if not isinstance(offset, int) or not 0 <= offset < 1 << 63:
        raise UsageError(
            f"{topic}-{partition}: an offset is a number from 0 on, not {offset!r}", topic=topic, partition=partition
        )
    if stored is None:
        return OffsetCommitPartition(topic=topic, partition=partition, offset=offset)
    return OffsetCommitPartition(
        topic=topic, partition=partition, offset=offset, leader_epoch=stored.leader_epoch, metadata=stored.metadata
    )


@frozen
class OffsetCommit(Request):
    """OffsetCommit. ``generation_id`` is the generation or the member epoch; ``retention_ms`` None unless versions 2-4 give one
    (not -1).

    Partitions that do not exist are the driver's to answer (Kafka's API layer); the core takes each one that it is given.
    ``is_too_large``: the driver's log has no room for its records in one batch (Kafka: RecordTooLargeException).
    """

    group_id: str | None
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_ms: int | None = None
    partitions: tuple[OffsetCommitPartition, ...] = ()
    is_too_large: bool = False


@frozen
class TxnOffsetCommit(Request):
    """TxnOffsetCommit: pending under the producer until `EndTransaction`. ``is_too_large`` as for `OffsetCommit`."""

    group_id: str | None
    producer_id: int
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    partitions: tuple[OffsetCommitPartition, ...] = ()
    is_too_large: bool = False


@frozen
class EndTransaction(Request):
    """The transaction marker (WriteTxnMarkers) on the coordinator's partition."""

    producer_id: int
    producer_epoch: int = 0
    committed: bool = True


@frozen
class OffsetFetch(Request):
    """OffsetFetch of one group. ``partitions`` None: all that have an offset. ``member_id`` None and epoch -1: no check."""

    group_id: str | None
    partitions: tuple[TopicPartition, ...] | None = None
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False
    topic_ids: Mapping[str, UUID] | None = None


@frozen
class OffsetDelete(Request):
    """Delete committed offsets of these partitions."""

    group_id: str | None
    partitions: tuple[TopicPartition, ...]


@frozen
class DescribeGroups(Request):
    """Describe groups as DescribeGroups shows them, of the classic protocol alone."""

    group_ids: tuple[str | None, ...]


@frozen
class ListGroups(Request):
    """List the groups in these states and of these types; an empty filter passes everything."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


@frozen
class DeleteGroups(Request):
    """Delete groups, each only if it is empty."""

    group_ids: tuple[str | None, ...]


@frozen
class ConsumerGroupHeartbeat(Request):
    """ConsumerGroupHeartbeat (KIP-848). None and -1 mean "unchanged since the last heartbeat", as on the wire."""

    group_id: str
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[tuple[UUID, tuple[int, ...]], ...] | None = None


@frozen
class ConsumerGroupDescribe(Request):
    """Describe consumer-protocol groups (KIP-848)."""

    group_ids: tuple[str | None, ...]


@frozen
class TopicsChanged(Request):
    """The cluster's topics changed: the whole new image. Answered with `Done`."""

    image: MetadataImage


@frozen
class RegexResolved(Request):
    """What a driver hands back after a `ResolveRegexes` effect: regex -> topics, sorted. Answered with `Done`.

    ``started_ms`` and ``metadata_version`` repeat the effect's.
    """

    group_id: str
    topics: Mapping[str, tuple[str, ...]]
    started_ms: int
    metadata_version: int


@frozen
class UpdateGroupConfig(Request):
    """Per-group configs (resource type GROUP) by Kafka's names, whole; None of a name means the broker's default."""

    group_id: str
    config: Mapping[str, str]


@frozen
class ForceCompleteRebalance(Request):
    """kgctl's own: end a stuck rebalance now. Answered with `Done`: GROUP_ID_NOT_FOUND, or INVALID_REQUEST if there is none."""

    group_id: str


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
    """A member that a rebalance waits for: to do what ("join", "sync"), and until when (the coordinator's milliseconds)."""

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
    | ShareResult
    | StreamsGroupHeartbeatResult
    | StreamsGroupDescribeResult
    | Done
)
