"""OffsetFetch: one group up to version 7, several from version 8 on; topics by id from version 10 on."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from uuid import UUID

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicPartition
from kgctl.model.requests import FetchedOffset, OffsetFetch, OffsetFetchResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import UNITS_A_PIECE, Work, each, waited

TOP_LEVEL_ERROR_SINCE = 2
BATCHED_SINCE = 8
TOPIC_IDS_SINCE = 10


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Answer for one group up to version 7; for several later, each with its own error."""
    if context.version < BATCHED_SINCE:
        wanted = _Wanted(body.group_id, None, require_stable=getattr(body, "require_stable", False))
        yield from _choose(context, body.topics, wanted)
        return (yield from _single(context, wanted, (yield from _asked(context, wanted))))
    asked = []
    for group in body.groups:
        wanted = yield from _wanted(context, body, group)
        asked.append((wanted, (yield from _asked(context, wanted))))
        yield None
    groups = []
    for wanted, answers in asked:
        groups.append((yield from _group(context, wanted, answers)))
        yield None
    return {"groups": groups}


@dataclass(slots=True)
class _Wanted:
    """One group's partitions by name, whatever the version; ``unknown`` are the answers for what is not asked for."""

    group_id: str
    partitions: list[TopicPartition] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1
    ids: dict[str, UUID] | None = None
    unknown: list[dict[str, Any]] = field(default_factory=list)

    def request(self, context: RequestContext, partitions: Sequence[TopicPartition] | None) -> OffsetFetch:
        return OffsetFetch(
            **context.core(),
            group_id=self.group_id,
            partitions=None if partitions is None else tuple(partitions),
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            require_stable=self.require_stable,
            topic_ids=self.ids,
        )


def _choose(context: RequestContext, topics: Any, wanted: _Wanted) -> Work[None]:
    """Those that whoever asks may see are to be looked up, for the others there is an error; None: all that there are."""
    partitions: list[TopicPartition] = []
    is_refused = not context.may(AclOperation.DESCRIBE, Resource.GROUP, wanted.group_id)  # all of it, in any case
    wanted.partitions = None if topics is None else partitions
    for topic in topics or ():
        yield None
        if not topic.partition_indexes:
            wanted.unknown.append({"name": topic.name, "partitions": []})
        elif is_refused or context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.name):
            partitions += yield from each(topic.partition_indexes, partial(TopicPartition, topic.name))
        else:
            refused = yield from each(topic.partition_indexes, partial(_failed, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            wanted.unknown.append({"name": topic.name, "partitions": refused})


def _wanted(context: RequestContext, body: Any, group: Any) -> Work[_Wanted]:
    wanted = _Wanted(
        group.group_id,
        None,
        body.require_stable,
        member_id=getattr(group, "member_id", None),
        member_epoch=getattr(group, "member_epoch", -1),
    )
    if context.version < TOPIC_IDS_SINCE:
        yield from _choose(context, group.topics, wanted)
    elif group.topics is None:
        wanted.ids = context.services.catalog.ids
    else:
        yield from _resolve(context, group, wanted)
    return wanted


def _resolve(context: RequestContext, group: Any, wanted: _Wanted) -> Work[None]:
    """Replace topic ids by names."""
    wanted.ids, wanted.partitions = {}, []
    for asked in group.topics:
        yield None
        topic = context.services.catalog.by_id(asked.topic_id)
        if not asked.partition_indexes:
            wanted.unknown.append({"topic_id": asked.topic_id, "partitions": []})
        elif topic is None or not context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.name):
            error = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            partitions = yield from each(asked.partition_indexes, partial(_failed, error))
            wanted.unknown.append({"topic_id": asked.topic_id, "partitions": partitions})
        else:
            wanted.ids[topic.name] = topic.topic_id
            wanted.partitions += yield from each(asked.partition_indexes, partial(TopicPartition, topic.name))


def _failed(error: ErrorCode, partition: int) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": error,
    }


Answers = list[OffsetFetchResult | Awaitable[OffsetFetchResult]]


def _asked(context: RequestContext, wanted: _Wanted) -> Work[Answers]:
    """What the coordinator says, some partitions at a time; all of it is under way before anything is waited for.

    Of a group with many offsets, all of which are wanted, those are asked one by one that it has now.
    """
    error = context.group_error(AclOperation.DESCRIBE, wanted.group_id)
    if error is not None:
        return [OffsetFetchResult(group_id=wanted.group_id, error=error)]
    partitions = wanted.partitions
    if partitions is None:
        partitions = yield from _stored_if_many(context, wanted.group_id)
    answers: Answers = []
    starts = [0] if partitions is None else range(0, max(len(partitions), 1), UNITS_A_PIECE)
    for start in starts:
        piece = None if partitions is None else partitions[start : start + UNITS_A_PIECE]
        answers.append(cast("Any", context.result(wanted.request(context, piece))))
        for _ in piece or ():
            yield None
    return answers


def _stored_if_many(context: RequestContext, group_id: str) -> Work[list[TopicPartition] | None]:
    """The partitions with a committed offset, in the order in which they are told, or None where they are few."""
    offsets = context.services.runtime.core.shard.offsets
    if offsets.count_of(group_id) <= UNITS_A_PIECE:
        return None
    partitions: list[TopicPartition] = []
    for topic in offsets.topics(group_id):
        yield None
        if offsets.has_topic(group_id, topic):
            found = [partition for partition, _ in offsets.of_topic(group_id, topic)]
            partitions += yield from each(found, lambda partition: partition)
    return partitions


def _single(context: RequestContext, wanted: _Wanted, answers: Answers) -> Work[Values]:
    """Versions without a top-level error have it at each partition."""
    group = yield from _group(context, wanted, answers)
    error, topics = group["error_code"], group["topics"]
    if error is not ErrorCode.NONE and context.version < TOP_LEVEL_ERROR_SINCE:
        offsets = [FetchedOffset(partition=partition, error=error) for partition in wanted.partitions or ()]
        topics = yield from _topics(offsets, None)
    return {"topics": topics, "error_code": error}


def _group(context: RequestContext, wanted: _Wanted, answers: Answers) -> Work[dict[str, Any]]:
    offsets: list[FetchedOffset] = []
    for answer in answers:
        result = yield from waited(answer)
        if result.error is not ErrorCode.NONE:
            return {"group_id": wanted.group_id, "error_code": result.error, "topics": []}
        offsets += result.offsets
    if wanted.partitions is None and len(answers) > 1:  # asked one by one: what went meanwhile is not told
        offsets = [offset for offset in offsets if offset.offset >= 0 or offset.error is not ErrorCode.NONE]
    if wanted.partitions is None:
        offsets = yield from _seen(context, offsets)
    topics = (yield from _topics(offsets, wanted.ids)) + wanted.unknown
    return {"group_id": wanted.group_id, "error_code": ErrorCode.NONE, "topics": topics}


def _seen(context: RequestContext, offsets: list[FetchedOffset]) -> Work[list[FetchedOffset]]:
    """Leave out the topics that are not for whoever asks to see."""
    if not context.services.access.is_asked:
        return offsets
    names = dict.fromkeys((yield from each(offsets, lambda offset: offset.partition.topic)))
    seen = {name for name in names if context.may(AclOperation.DESCRIBE, Resource.TOPIC, name)}
    return [offset for offset in offsets if offset.partition.topic in seen]


def _topics(offsets: Iterable[FetchedOffset], ids: Mapping[str, UUID] | None) -> Work[list[dict[str, Any]]]:
    """Offsets under their topics; with ids, topics that have none are left out."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for offset in offsets:
        yield None
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
