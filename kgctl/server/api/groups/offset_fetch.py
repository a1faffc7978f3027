"""OffsetFetch: one group up to version 7, several from version 8 on; topics by id from version 10 on."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import ZERO_UUID, TopicPartition
from kgctl.model.requests import OffsetFetch
from kgctl.model.results import FetchedOffset, OffsetFetchResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values

TOP_LEVEL_ERROR_SINCE = 2
BATCHED_SINCE = 8
TOPIC_IDS_SINCE = 10


def handle(context: RequestContext, body: Any) -> Answer:
    """Answered at once, unless records of this turn have still to be written."""
    if context.version < BATCHED_SINCE:
        return _single(context, body)
    answers = [_group(context, body, group) for group in body.groups]
    if any(inspect.isawaitable(answer) for answer in answers):
        return _gathered(answers)
    return {"groups": answers}


async def _gathered(answers: list[Any]) -> Values:
    return {"groups": [await answer if inspect.isawaitable(answer) else answer for answer in answers]}


def _single(context: RequestContext, body: Any) -> Answer:
    partitions = _partitions(body.topics)

    def render(result: OffsetFetchResult) -> Values:
        offsets: Iterable[FetchedOffset] = result.offsets
        if result.error is not ErrorCode.NONE and context.version < TOP_LEVEL_ERROR_SINCE:
            offsets = [FetchedOffset(partition=partition, error=result.error) for partition in partitions or ()]
        return {"topics": _topics(offsets), "error_code": result.error}

    error = context.not_coordinator(body.group_id)
    if error is not None:
        return render(OffsetFetchResult(group_id=body.group_id, error=error))
    require_stable = getattr(body, "require_stable", False)
    request = OffsetFetch(**context.core(), group_id=body.group_id, partitions=partitions, require_stable=require_stable)
    return context.ask(request, render)


def _partitions(topics: Any) -> tuple[TopicPartition, ...] | None:
    if topics is None:
        return None
    return tuple(TopicPartition(topic.name, partition) for topic in topics for partition in topic.partition_indexes)


@dataclass(slots=True)
class _Wanted:
    """One group's partitions by name, whatever the version; ``unknown`` are the answers for ids that no topic has."""

    partitions: tuple[TopicPartition, ...] | None
    ids: dict[str, UUID] | None = None
    unknown: list[dict[str, Any]] = field(default_factory=list)


def _group(context: RequestContext, body: Any, group: Any) -> Answer:
    error = context.not_coordinator(group.group_id)
    if error is not None:
        return {"group_id": group.group_id, "error_code": error, "topics": []}
    if context.version < TOPIC_IDS_SINCE:
        return _ask(context, body, group, _Wanted(_partitions(group.topics)))
    if group.topics is None:
        return _ask(
            context,
            body,
            group,
            _Wanted(None, {topic.name: topic.topic_id for topic in context.services.catalog.topics.values()}),
        )
    return _ask(context, body, group, _by_id(context, group))


def _by_id(context: RequestContext, group: Any) -> _Wanted:
    partitions: list[TopicPartition] = []
    ids: dict[str, UUID] = {}
    unknown: list[dict[str, Any]] = []
    for asked in group.topics:
        topic = context.services.catalog.by_id(asked.topic_id)
        if topic is None:
            unknown.append(_unknown_topic(asked))
        else:
            ids[topic.name] = topic.topic_id
            partitions += [TopicPartition(topic.name, partition) for partition in asked.partition_indexes]
    return _Wanted(tuple(partitions), ids, unknown)


def _ask(context: RequestContext, body: Any, group: Any, wanted: _Wanted) -> Answer:
    def render(result: OffsetFetchResult) -> Values:
        if result.error is not ErrorCode.NONE:
            return {"group_id": group.group_id, "error_code": result.error, "topics": []}
        topics = _topics(result.offsets, wanted.ids) + wanted.unknown
        return {"group_id": group.group_id, "error_code": ErrorCode.NONE, "topics": topics}

    request = OffsetFetch(
        **context.core(),
        group_id=group.group_id,
        partitions=wanted.partitions,
        member_id=getattr(group, "member_id", None),
        member_epoch=getattr(group, "member_epoch", -1),
        require_stable=body.require_stable,
        topic_ids=wanted.ids,
    )
    return context.ask(request, render)


def _unknown_topic(asked: Any) -> dict[str, Any]:
    partitions = [
        {
            "partition_index": partition,
            "committed_offset": -1,
            "committed_leader_epoch": -1,
            "metadata": "",
            "error_code": ErrorCode.UNKNOWN_TOPIC_ID,
        }
        for partition in asked.partition_indexes
    ]
    return {"topic_id": asked.topic_id, "partitions": partitions}


def _topics(offsets: Iterable[FetchedOffset], ids: dict[str, UUID] | None = None) -> list[dict[str, Any]]:
    """Offsets under their topics; with ids, topics that have none are left out."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for offset in offsets:
        topics.setdefault(offset.partition.topic, []).append(
            {
                "partition_index": offset.partition.partition,
                "committed_offset": offset.offset,
                "committed_leader_epoch": offset.leader_epoch,
                "metadata": offset.metadata,
                "error_code": offset.error,
            }
        )
    if ids is None:
        return [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    known = [(name, ids.get(name, ZERO_UUID), partitions) for name, partitions in topics.items()]
    return [{"topic_id": topic_id, "partitions": partitions} for _, topic_id, partitions in known if topic_id != ZERO_UUID]


SPEC = ApiSpec(9, "OffsetFetch", 1, 10, handle)
