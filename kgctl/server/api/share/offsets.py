"""Describe-, Alter- and DeleteShareGroupOffsets (KIP-932)."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.model.groups import ZERO_UUID
from kgctl.model.share_requests import AlterShareGroupOffsets, DeleteShareGroupOffsets, DescribeShareGroupOffsets
from kgctl.model.share_results import (
    AlteredSharePartition,
    AlteredShareTopic,
    AlterShareGroupOffsetsResult,
    DeletedShareTopic,
    DeleteShareGroupOffsetsResult,
    DescribedSharePartition,
    DescribedShareTopic,
    DescribeShareGroupOffsetsResult,
)
from kgctl.server.api.fields import NO_RIGHT
from kgctl.server.request_context import SHARE_VERSION, ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, waited

_NOT_SEEN = NO_RIGHT[Resource.TOPIC]


def describe(context: RequestContext, body: Any) -> Work[Values]:
    """Each group by itself."""
    answers = []
    for group in body.groups:
        answers.append((group, _described(context, group)))
        yield None
    groups = []
    for group, answer in answers:
        result: DescribeShareGroupOffsetsResult = yield from waited(answer)
        groups.append(_group(result, (yield from _topics(context, group, result))))
        yield None
    return {"groups": groups}


def _described(context: RequestContext, group: Any) -> Any:
    if not context.may(AclOperation.DESCRIBE, Resource.GROUP, group.group_id):
        return DescribeShareGroupOffsetsResult(group_id=group.group_id, error=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if group.topics is not None and not group.topics:
        return DescribeShareGroupOffsetsResult(group_id=group.group_id)
    if error := context.not_coordinator(group.group_id):
        return DescribeShareGroupOffsetsResult(group_id=group.group_id, error=error)
    topics = None
    if group.topics is not None:
        topics = tuple((topic.topic_name, tuple(topic.partitions)) for topic in group.topics if _may_see(context, topic))
    return context.result(DescribeShareGroupOffsets(**context.core(), group_id=group.group_id, topics=topics))


def _may_see(context: RequestContext, topic: Any) -> bool:
    return context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.topic_name)


def _topics(context: RequestContext, group: Any, result: DescribeShareGroupOffsetsResult) -> Work[list[Values]]:
    """What was found, then what the user named and may not see; of what was not named, what the user may see."""
    found, unseen = result.topics, []
    if group.topics is None:
        found = tuple(topic for topic in found if context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic.name))
    elif result.error is ErrorCode.NONE:
        unseen = [topic for topic in group.topics if not _may_see(context, topic)]
    hidden = [
        DescribedShareTopic(
            topic.topic_name,
            ZERO_UUID,
            tuple(DescribedSharePartition(index, error=_NOT_SEEN[0], error_message=_NOT_SEEN[1]) for index in topic.partitions),
        )
        for topic in unseen
    ]
    topics = []
    for each in (*found, *hidden):
        partitions = []
        for partition in each.partitions:
            partitions.append(_partition(partition))
            yield None
        topics.append({"topic_name": each.name, "topic_id": each.topic_id, "partitions": partitions})
    return topics


def _group(result: DescribeShareGroupOffsetsResult, topics: list[Values]) -> Values:
    """Kafka says nothing more where the group is the user's not to see, or where share groups are off."""
    told = result.error not in (ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION)
    return {
        "group_id": result.group_id,
        "topics": topics,
        "error_code": result.error,
        "error_message": KAFKAS_WORDS.get(result.error) if told else None,
    }


def _partition(partition: DescribedSharePartition) -> Values:
    return {
        "partition_index": partition.partition,
        "start_offset": partition.start_offset,
        "leader_epoch": partition.leader_epoch,
        "lag": partition.lag,
        "error_code": partition.error,
        "error_message": partition.error_message or KAFKAS_WORDS.get(partition.error),
    }


def describe_when_off(_: RequestContext, body: Any) -> Values:
    """The broker has share groups, which are not on."""
    off = (DescribeShareGroupOffsetsResult(group_id=group.group_id, error=ErrorCode.UNSUPPORTED_VERSION) for group in body.groups)
    return {"groups": [_group(result, []) for result in off]}


def alter(context: RequestContext, body: Any) -> Work[Values]:
    """The topics that the group's coordinator is not asked about come first."""
    error = context.group_error(AclOperation.READ, body.group_id)
    if error is not None:
        return _failed(error)
    topics: dict[str, Values] = {}
    wanted: dict[str, tuple[tuple[int, int], ...]] = {}
    for topic in body.topics:
        problem = _altering_problem(context, topic.topic_name)
        if problem is None:
            wanted.setdefault(topic.topic_name, tuple((each.partition_index, each.start_offset) for each in topic.partitions))
        else:
            indexes = (each.partition_index for each in topic.partitions)
            failed = tuple(AlteredSharePartition(index, problem, KAFKAS_WORDS.get(problem)) for index in indexes)
            _add(context, topics, AlteredShareTopic(topic.topic_name, ZERO_UUID, failed))
        yield None
    request = AlterShareGroupOffsets(**context.core(), group_id=body.group_id, topics=tuple(wanted.items()))
    result: AlterShareGroupOffsetsResult = yield from waited(context.result(request))
    if result.error is not ErrorCode.NONE:
        return _failed(result.error, result.error_message)
    for altered in result.topics:
        _add(context, topics, altered)
        yield None
    return {"error_code": ErrorCode.NONE, "error_message": None, "responses": list(topics.values())}


def _altering_problem(context: RequestContext, topic: str) -> ErrorCode | None:
    if not context.may(AclOperation.READ, Resource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None if context.services.catalog.get(topic) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _add(context: RequestContext, topics: dict[str, Values], topic: AlteredShareTopic) -> None:
    known = context.services.catalog.get(topic.name)
    topic_id = ZERO_UUID if known is None else known.topic_id
    entry = topics.setdefault(topic.name, {"topic_name": topic.name, "topic_id": topic_id, "partitions": []})
    entry["partitions"] += [
        {
            "partition_index": each.partition,
            "error_code": each.error,
            "error_message": each.error_message or KAFKAS_WORDS.get(each.error),
        }
        for each in topic.partitions
    ]


def delete(context: RequestContext, body: Any) -> Work[Values]:
    """The topics that the user has no right to come first."""
    error = context.group_error(AclOperation.DELETE, body.group_id)
    if error is not None:
        return _failed(error)
    refused, wanted = [], []
    for topic in body.topics:
        if context.may(AclOperation.READ, Resource.TOPIC, topic.topic_name):
            wanted.append(topic.topic_name)
        else:
            refused.append(DeletedShareTopic(topic.topic_name, error=_NOT_SEEN[0], error_message=_NOT_SEEN[1]))
        yield None
    request = DeleteShareGroupOffsets(**context.core(), group_id=body.group_id, topics=tuple(wanted))
    result: DeleteShareGroupOffsetsResult = yield from waited(context.result(request))
    if result.error is not ErrorCode.NONE:
        return _failed(result.error, result.error_message)
    return {
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "responses": [
            {
                "topic_name": each.name or "",
                "topic_id": each.topic_id,
                "error_code": each.error,
                "error_message": each.error_message or KAFKAS_WORDS.get(each.error),
            }
            for each in (*refused, *result.topics)
        ],
    }


def _failed(error: ErrorCode, message: str | None = None) -> Values:
    return {"error_code": error, "error_message": message or KAFKAS_WORDS.get(error), "responses": []}


def when_off(_: RequestContext, __: Any) -> Values:
    """The broker has share groups, which are not on."""
    return _failed(ErrorCode.UNSUPPORTED_VERSION)


DESCRIBE = ApiSpec(90, "DescribeShareGroupOffsets", 0, 1, describe, feature=SHARE_VERSION, when_off=describe_when_off)
ALTER = ApiSpec(91, "AlterShareGroupOffsets", 0, 0, alter, feature=SHARE_VERSION, when_off=when_off)
DELETE = ApiSpec(92, "DeleteShareGroupOffsets", 0, 0, delete, feature=SHARE_VERSION, when_off=when_off)
