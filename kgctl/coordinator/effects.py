"""What the coordinator wants done: replies to give, records to append, background work to run. It never does anything itself.

`refuse` is the answer to a request that is refused as a whole, whatever the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import CoordinatorRecord, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribeResult,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResult,
    DeleteGroups,
    DeleteGroupsResult,
    DescribedGroup,
    DescribeGroups,
    DescribeGroupsResult,
    Done,
    EndTransaction,
    ForceCompleteRebalance,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    LeaveGroupResult,
    ListGroups,
    ListGroupsResult,
    OffsetCommit,
    OffsetDelete,
    OffsetDeleteResult,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    RegexResolved,
    Request,
    Result,
    SyncGroup,
    SyncGroupResult,
    TopicsChanged,
    TxnOffsetCommit,
    UpdateGroupConfig,
)
from kgctl.model.share_requests import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroupOffsets,
    LatestOffsetsListed,
    ShareGroupDescribe,
    ShareGroupHeartbeat,
    ShareStateCall,
    ShareStateDeleted,
    ShareStateInitialized,
    ShareStateSummaryRead,
)
from kgctl.model.share_results import (
    AlterShareGroupOffsetsResult,
    DeleteShareGroupOffsetsResult,
    DescribeShareGroupOffsetsResult,
    ShareGroupDescribedGroup,
    ShareGroupDescribeResult,
    ShareGroupHeartbeatResult,
)
from kgctl.model.streams_requests import StreamsGroupDescribe, StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupDescribedGroup, StreamsGroupDescribeResult, StreamsGroupHeartbeatResult
from kgctl.model.values import frozen_in_order


@frozen_in_order
class Reply:
    """Answer the request with this id, once every `AppendRecord` before it in the same list is durable."""

    request_id: int
    result: Result


@frozen_in_order
class AppendRecord:
    """Append this to the log. It is applied to the core's own state already (through ``replay``): do not replay it again.

    ``producer_id`` is set on transactional offsets, which stay pending until the `TransactionMarker`. ``member_id`` names the
    member that committed an offset, where there is one: the record itself does not hold it, the audit log does.
    """

    record: CoordinatorRecord | TransactionMarker
    producer_id: int | None = None
    producer_epoch: int = 0
    member_id: str | None = None


@frozen_in_order
class ResolveRegexes:
    """Match these RE2 expressions against all topic names, whole names only, and hand the result back as a `RegexResolved`."""

    group_id: str
    regexes: tuple[str, ...]
    started_ms: int
    metadata_version: int


@frozen_in_order
class GroupFailed:
    """Tell the operator that a timer of this group (of the coordinator itself: ``""``) broke an invariant: a bug, with its story.

    Nobody else is concerned, and the coordinator has seen to the group: whoever waits in it is told to ask again, and the
    timer is tried again later. A driver that runs tests or simulations raises ``error``.
    """

    group_id: str
    error: InvariantViolation


Effect = Reply | AppendRecord | ResolveRegexes | ShareStateCall | GroupFailed


def refuse(request: Request, error: ErrorCode) -> Result:
    """The result that says ``error`` to the whole request: at its top level, or else on each group or partition."""
    return _REFUSALS[type(request)](request, error)


def refuse_commit(request: OffsetCommit | TxnOffsetCommit, error: ErrorCode) -> PartitionErrors:
    """The error on each partition; commits have no other place for it."""
    return PartitionErrors(partitions=tuple((TopicPartition(p.topic, p.partition), error) for p in request.partitions))


def _refuse_consumer_describe(request: ConsumerGroupDescribe, error: ErrorCode) -> Result:
    groups = tuple(ConsumerGroupDescribedGroup(group_id=group_id or "", error=error) for group_id in request.group_ids)
    return ConsumerGroupDescribeResult(groups=groups)


def _refuse_share_describe(request: ShareGroupDescribe, error: ErrorCode) -> Result:
    groups = tuple(ShareGroupDescribedGroup(group_id=group_id or "", error=error) for group_id in request.group_ids)
    return ShareGroupDescribeResult(groups=groups)


def _refuse_streams_describe(request: StreamsGroupDescribe, error: ErrorCode) -> Result:
    groups = tuple(StreamsGroupDescribedGroup(group_id=group_id or "", error=error) for group_id in request.group_ids)
    return StreamsGroupDescribeResult(groups=groups)


def _done(_: Request, error: ErrorCode) -> Result:
    return Done(error=error)


_REFUSALS: dict[type[Request], Callable[[Any, ErrorCode], Result]] = {
    JoinGroup: lambda request, error: JoinGroupResult(error=error, member_id=request.member_id),
    SyncGroup: lambda _, error: SyncGroupResult(error=error),
    Heartbeat: lambda _, error: HeartbeatResult(error=error),
    LeaveGroup: lambda _, error: LeaveGroupResult(error=error),
    OffsetCommit: refuse_commit,
    TxnOffsetCommit: refuse_commit,
    OffsetFetch: lambda request, error: OffsetFetchResult(group_id=request.group_id, error=error),
    OffsetDelete: lambda _, error: OffsetDeleteResult(error=error),
    DescribeGroups: lambda request, error: DescribeGroupsResult(
        groups=tuple(DescribedGroup(group_id=group_id, error=error) for group_id in request.group_ids)
    ),
    ListGroups: lambda _, error: ListGroupsResult(error=error),
    DeleteGroups: lambda request, error: DeleteGroupsResult(groups=tuple((group_id, error) for group_id in request.group_ids)),
    ConsumerGroupHeartbeat: lambda _, error: ConsumerGroupHeartbeatResult(error=error),
    ConsumerGroupDescribe: _refuse_consumer_describe,
    ShareGroupHeartbeat: lambda _, error: ShareGroupHeartbeatResult(error=error),
    ShareGroupDescribe: _refuse_share_describe,
    DescribeShareGroupOffsets: lambda request, error: DescribeShareGroupOffsetsResult(group_id=request.group_id, error=error),
    AlterShareGroupOffsets: lambda _, error: AlterShareGroupOffsetsResult(error=error),
    DeleteShareGroupOffsets: lambda _, error: DeleteShareGroupOffsetsResult(error=error),
    StreamsGroupHeartbeat: lambda _, error: StreamsGroupHeartbeatResult(error=error),
    StreamsGroupDescribe: _refuse_streams_describe,
    ShareStateInitialized: _done,
    ShareStateDeleted: _done,
    ShareStateSummaryRead: _done,
    LatestOffsetsListed: _done,
    EndTransaction: _done,
    TopicsChanged: _done,
    RegexResolved: _done,
    UpdateGroupConfig: _done,
    ForceCompleteRebalance: _done,
}
