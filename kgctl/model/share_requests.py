"""What the coordinator can be asked about share groups (KIP-932), and the calls that it has made for it, with what comes of them.

The state of share partitions is kept elsewhere (Kafka: Persister). Where Kafka's coordinator calls it, a call is among the
effects; its outcome comes back as a request, whenever that is and whatever happened to the coordinator in between: the call
itself is all that is known of it. ``purpose`` is the core's own.
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import Request
from kgctl.model.share import NO_DELIVERY_COMPLETE_COUNT, NO_START_OFFSET
from kgctl.model.share_results import (
    NO_EPOCH,
    AlterShareGroupOffsetsResult,
    DeletedShareTopic,
    DescribedShareTopic,
    DescribeShareGroupOffsetsResult,
)
from kgctl.model.values import frozen, frozen_in_order

T = TypeVar("T")
ByTopicId = tuple[tuple[UUID, tuple[T, ...]], ...]
"""(topic id, what is told of its partitions)."""


@frozen
class ShareGroupHeartbeat(Request):
    """ShareGroupHeartbeat. None means "unchanged since the last heartbeat", as on the wire."""

    group_id: str
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: tuple[str, ...] | None = None


@frozen
class ShareGroupDescribe(Request):
    """Describe share groups."""

    group_ids: tuple[str | None, ...]


@frozen
class DescribeShareGroupOffsets(Request):
    """Start offsets and lag of one group. ``topics``: name -> partitions; None: all partitions with a state."""

    group_id: str
    topics: tuple[tuple[str, tuple[int, ...]], ...] | None = None


@frozen
class AlterShareGroupOffsets(Request):
    """Set start offsets of an empty group, or of one that this makes. ``topics``: name -> (partition, start offset)."""

    group_id: str | None
    topics: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] | None


@frozen
class DeleteShareGroupOffsets(Request):
    """Drop the state that an empty group has of these topics."""

    group_id: str | None
    topics: tuple[str, ...] | None


# What the coordinator has done for it, and what came of it.


@frozen_in_order
class PartitionStart:
    """A partition whose state is to be made. ``start_offset`` -1: where the group's settings say, when somebody reads it."""

    partition: int
    state_epoch: int
    start_offset: int = NO_START_OFFSET


@frozen_in_order
class ShareTopicStart:
    """Partitions of one topic whose state is to be made."""

    topic_id: UUID
    partitions: tuple[PartitionStart, ...]


@frozen_in_order
class AlterPurpose:
    """Answer this to this request, where it went well."""

    request_id: int
    result: AlterShareGroupOffsetsResult


@frozen_in_order
class InitializeShareState:
    """Make the state of share partitions: Persister#initializeState. Its outcome: `ShareStateInitialized`.

    ``purpose`` None: a heartbeat asked for it, and is answered.
    """

    group_id: str
    topics: tuple[ShareTopicStart, ...]
    purpose: AlterPurpose | None = None


@frozen_in_order
class DeleteOffsetsPurpose:
    """Answer to this request which topics' state is dropped, and that of ``failed`` it is not."""

    request_id: int
    failed: tuple[DeletedShareTopic, ...]


@frozen_in_order
class DeleteGroupsPurpose:
    """Go on with this request: delete the groups that are left."""

    request_id: int
    group_ids: tuple[str | None, ...]
    errors: tuple[tuple[str, ErrorCode], ...]


@frozen_in_order
class ShareGroupPartitions:
    """Partitions of one group, by topic."""

    group_id: str
    topics: ByTopicId[int]


@frozen_in_order
class DeleteShareState:
    """Drop the state of share partitions: Persister#deleteState, once for each group. Their outcome: `ShareStateDeleted`."""

    groups: tuple[ShareGroupPartitions, ...]
    purpose: DeleteOffsetsPurpose | DeleteGroupsPurpose


@frozen_in_order
class DescribePurpose:
    """Answer to this request. ``names`` of the topics; ``absent``: what is told of topics that do not exist."""

    request_id: int
    names: tuple[tuple[UUID, str], ...]
    absent: tuple[DescribedShareTopic, ...] = ()


@frozen_in_order
class ReadShareStateSummary:
    """Look where partitions begin: Persister#readSummary. Its outcome: `ShareStateSummaryRead`."""

    group_id: str
    topics: ByTopicId[int]
    purpose: DescribePurpose


@frozen_in_order
class LagPurpose:
    """Answer this to this request, with the lag of the partitions that were asked for.

    ``done``: how many records of each are done behind its start offset.
    """

    request_id: int
    result: DescribeShareGroupOffsetsResult
    done: tuple[tuple[TopicPartition, int], ...]


@frozen_in_order
class ListLatestOffsets:
    """Look where logs end: PartitionMetadataClient#listLatestOffsets. Its outcome: `LatestOffsetsListed`."""

    partitions: tuple[TopicPartition, ...]
    purpose: LagPurpose


@frozen_in_order
class ShareStateError:
    """Whether a call went well for one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen
class ShareStateInitialized(Request):
    """What came of an `InitializeShareState`. ``error``: it failed as a whole, by an exception. Answered with `Done`."""

    call: InitializeShareState
    topics: ByTopicId[ShareStateError] = ()
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen_in_order
class GroupStateDeleted:
    """What came of one group's part of a `DeleteShareState`. ``error``: it failed as a whole, by an exception."""

    group_id: str
    topics: ByTopicId[ShareStateError] = ()
    error: ErrorCode = ErrorCode.NONE


@frozen
class ShareStateDeleted(Request):
    """What came of a `DeleteShareState`, of all its groups. Answered with `Done`."""

    call: DeleteShareState
    groups: tuple[GroupStateDeleted, ...]


@frozen_in_order
class ShareStateSummary:
    """What is kept of one partition, in short."""

    partition: int
    state_epoch: int = 0
    start_offset: int = NO_START_OFFSET
    leader_epoch: int = NO_EPOCH
    delivery_complete_count: int = NO_DELIVERY_COMPLETE_COUNT
    error: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@frozen
class ShareStateSummaryRead(Request):
    """What came of a `ReadShareStateSummary`. ``error``: it failed as a whole, by an exception. Answered with `Done`."""

    call: ReadShareStateSummary
    topics: ByTopicId[ShareStateSummary] = ()
    error: ErrorCode = ErrorCode.NONE


@frozen
class LatestOffsetsListed(Request):
    """What came of a `ListLatestOffsets`: (partition, end of its log, error). Answered with `Done`."""

    call: ListLatestOffsets
    offsets: tuple[tuple[TopicPartition, int, ErrorCode], ...] = ()


ShareStateCall = InitializeShareState | DeleteShareState | ReadShareStateSummary | ListLatestOffsets
