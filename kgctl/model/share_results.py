"""What the coordinator answers about share groups (KIP-932), to the requests of `kgctl.model.share_requests`. Errors are values.

An error without a text of its own has Kafka's usual one on the wire.
"""

from __future__ import annotations

from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID
from kgctl.model.share import NO_START_OFFSET
from kgctl.model.share_records import TopicPartitions
from kgctl.model.values import frozen, frozen_in_order

NO_LAG = -1
NO_EPOCH = 0
"""The leader epoch of a partition of which nothing is known (Kafka: DEFAULT_LEADER_EPOCH)."""


@frozen
class ShareGroupHeartbeatResult:
    """``assignment`` None: unchanged, not sent. Error replies: member id None, epoch 0."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: TopicPartitions | None = None


@frozen
class ShareGroupDescribedMember:
    """A member in ShareGroupDescribe; of what it is assigned, the topics that exist."""

    member_id: str
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    assignment: TopicPartitions = ()


@frozen
class ShareGroupDescribedGroup:
    """A group as ShareGroupDescribe shows it."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[ShareGroupDescribedMember, ...] = ()


@frozen
class ShareGroupDescribeResult:
    """Groups in the order of the request."""

    groups: tuple[ShareGroupDescribedGroup, ...]


@frozen_in_order
class DescribedSharePartition:
    """Where the group's part of a log begins, and how many records of it are not done; -1 where that is not known."""

    partition: int
    start_offset: int = NO_START_OFFSET
    leader_epoch: int = NO_EPOCH
    lag: int = NO_LAG
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen_in_order
class DescribedShareTopic:
    """Partitions of one topic, whose id is all zero where it does not exist."""

    name: str
    topic_id: UUID
    partitions: tuple[DescribedSharePartition, ...]


@frozen
class DescribeShareGroupOffsetsResult:
    """With an error of the whole group there are no topics."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    topics: tuple[DescribedShareTopic, ...] = ()


@frozen_in_order
class AlteredSharePartition:
    """What became of one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen_in_order
class AlteredShareTopic:
    """Partitions of one topic, whose id is all zero where it does not exist."""

    name: str
    topic_id: UUID
    partitions: tuple[AlteredSharePartition, ...]


@frozen
class AlterShareGroupOffsetsResult:
    """Topics in the order of the request."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[AlteredShareTopic, ...] = ()


@frozen_in_order
class DeletedShareTopic:
    """What became of one topic; ``name`` is None where it has gone in the meantime."""

    name: str | None
    topic_id: UUID = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen
class DeleteShareGroupOffsetsResult:
    """First the topics whose state is dropped, then those that failed."""

    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: tuple[DeletedShareTopic, ...] = ()


ShareResult = (
    ShareGroupHeartbeatResult
    | ShareGroupDescribeResult
    | DescribeShareGroupOffsetsResult
    | AlterShareGroupOffsetsResult
    | DeleteShareGroupOffsetsResult
)
