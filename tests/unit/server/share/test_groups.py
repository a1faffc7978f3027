"""What the group coordinator has done for it, and what it is told of that."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import Request
from kgctl.model.share_requests import (
    DeleteShareState,
    GroupStateDeleted,
    InitializeShareState,
    LatestOffsetsListed,
    ListLatestOffsets,
    PartitionStart,
    ReadShareStateSummary,
    ShareGroupPartitions,
    ShareStateCall,
    ShareStateDeleted,
    ShareStateError,
    ShareStateInitialized,
    ShareStateSummary,
    ShareStateSummaryRead,
    ShareTopicStart,
)
from kgctl.server.runtime import EVENT_ID
from kgctl.server.share.groups import ShareGroups
from kgctl.server.share.persister import UNWRITTEN
from tests.unit.server.share.around import GROUP, TOPIC, Around

ANY: Any = None
"""A purpose, which is the coordinator's own."""


def told(around: Around, *calls: ShareStateCall, are_refused: bool = False) -> list[Request]:
    """What comes of these calls, one after the other."""
    groups = ShareGroups(
        around.data,
        lambda: around.now_ms,
        around.persister,
        settings=lambda _: around.config,
        cluster=cast("Any", None),
        catalog=around.catalog,
        max_sessions=1,
    )
    found: list[Request] = []

    async def story() -> None:
        for call in calls:
            (groups.refuse if are_refused else groups.perform)(call, found.append)
            await around.persister.stop()

    asyncio.run(story())
    return found


def test_every_partition_of_a_call_is_in_its_outcome() -> None:
    around = Around()
    topic_id = around.catalog.topics[TOPIC].topic_id
    both = ((topic_id, (0, 1)),)
    made = InitializeShareState(GROUP, (ShareTopicStart(topic_id, (PartitionStart(0, 1, 3), PartitionStart(1, 2, 4))),))
    looked_at = ReadShareStateSummary(GROUP, both, ANY)
    dropped = DeleteShareState((ShareGroupPartitions(GROUP, both),), ANY)
    errors = ((topic_id, (ShareStateError(0), ShareStateError(1))),)
    states = ((topic_id, (ShareStateSummary(0, 1, 3, 0, 0), ShareStateSummary(1, 2, 4, 0, 0))),)
    assert told(around, made, looked_at, dropped) == [
        ShareStateInitialized(request_id=EVENT_ID, call=made, topics=errors),
        ShareStateSummaryRead(request_id=EVENT_ID, call=looked_at, topics=states),
        ShareStateDeleted(request_id=EVENT_ID, call=dropped, groups=(GroupStateDeleted(GROUP, errors),)),
    ]


def test_what_cannot_be_is_said_of_its_partition() -> None:
    around = Around()
    topic_id = around.catalog.topics[TOPIC].topic_id
    made = InitializeShareState(GROUP, (ShareTopicStart(topic_id, (PartitionStart(0, 1), PartitionStart(9, 1))),))
    (outcome,) = told(around, made)
    assert isinstance(outcome, ShareStateInitialized)
    ((_, (well, refused)),) = outcome.topics
    assert (well, refused.partition, refused.error) == (ShareStateError(0), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert refused.error_message == "This server does not host this topic-partition."


def test_where_logs_end() -> None:
    around = Around()
    here, gone = TopicPartition(TOPIC, 0), TopicPartition("gone", 0)
    call = ListLatestOffsets((here, gone), ANY)
    offsets = ((here, 0, ErrorCode.NONE), (gone, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert told(around, call) == [LatestOffsetsListed(request_id=EVENT_ID, call=call, offsets=offsets)]


def test_where_the_groups_own_records_are_lost_every_call_comes_to_nothing() -> None:
    around = Around()
    lost, here = UNWRITTEN.error, TopicPartition(TOPIC, 0)
    made = InitializeShareState(GROUP, ())
    looked_at = ReadShareStateSummary(GROUP, (), ANY)
    dropped = DeleteShareState((ShareGroupPartitions(GROUP, ()),), ANY)
    listed = ListLatestOffsets((here,), ANY)
    assert told(around, made, looked_at, dropped, listed, are_refused=True) == [
        ShareStateInitialized(request_id=EVENT_ID, call=made, error=lost, error_message=UNWRITTEN.message),
        ShareStateSummaryRead(request_id=EVENT_ID, call=looked_at, error=lost),
        ShareStateDeleted(request_id=EVENT_ID, call=dropped, groups=(GroupStateDeleted(GROUP, error=lost),)),
        LatestOffsetsListed(request_id=EVENT_ID, call=listed, offsets=((here, -1, lost),)),
    ]
