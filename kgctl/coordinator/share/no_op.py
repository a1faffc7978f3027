"""What comes of calls where no state of share partitions is kept. Kafka: NoOpStatePersister."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.model.requests import Request
from kgctl.model.share_requests import (
    DeleteShareState,
    GroupStateDeleted,
    InitializeShareState,
    LatestOffsetsListed,
    ListLatestOffsets,
    ReadShareStateSummary,
    ShareStateCall,
    ShareStateDeleted,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
)


def outcome_without_state(call: ShareStateCall, request_id: int) -> Request:
    """Everything goes well, and nothing is there."""
    return _OUTCOMES[type(call)](call, request_id)


def _initialized(call: InitializeShareState, request_id: int) -> Request:
    topics = tuple(
        (topic.topic_id, tuple(ShareStateError(start.partition) for start in topic.partitions)) for topic in call.topics
    )
    return ShareStateInitialized(request_id=request_id, call=call, topics=topics)


def _deleted(call: DeleteShareState, request_id: int) -> Request:
    groups = tuple(
        GroupStateDeleted(group.group_id, tuple((topic, tuple(map(ShareStateError, numbers))) for topic, numbers in group.topics))
        for group in call.groups
    )
    return ShareStateDeleted(request_id=request_id, call=call, groups=groups)


def _read(call: ReadShareStateSummary, request_id: int) -> Request:
    topics = tuple((topic, tuple(map(ShareStateSummary, numbers))) for topic, numbers in call.topics)
    return ShareStateSummaryRead(request_id=request_id, call=call, topics=topics)


def _listed(call: ListLatestOffsets, request_id: int) -> Request:
    """Never asked for: of nothing that is read here it is known how much is done."""
    return LatestOffsetsListed(request_id=request_id, call=call)


_OUTCOMES: dict[type, Callable[[Any, int], Request]] = {
    InitializeShareState: _initialized,
    DeleteShareState: _deleted,
    ReadShareStateSummary: _read,
    ListLatestOffsets: _listed,
}
