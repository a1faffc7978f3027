"""DescribeTopicPartitions: topics by name, as many partitions as are asked for at a time.

Kafka: DescribeTopicPartitionsRequestHandler, KRaftMetadataCache#describeTopicResponse.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import topic_name_problem
from kgctl.server.api.metadata import partition_of
from kgctl.server.cluster import INTERNAL_TOPICS
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each

MOST_PARTITIONS = 2_000
"""``max.request.partition.size.limit``."""


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Topics by name from the cursor on, and the cursor where the next answer is to begin, if there is more."""
    names = yield from each(body.topics, lambda topic: topic.name)
    start = ("", 0) if body.cursor is None else (body.cursor.topic_name, body.cursor.partition_index)
    if body.cursor is None and "" in names:  # Kafka takes it for the cursor's, and fails
        return _all_refused(names, ErrorCode.UNKNOWN_SERVER_ERROR)
    if body.cursor is not None and ((names and start[0] not in names) or start[1] < 0):
        return _all_refused(names, ErrorCode.INVALID_REQUEST)
    wanted = sorted({name for name in (names or context.services.catalog.topics) if name >= start[0]})
    seen = [name for name in wanted if context.may(AclOperation.DESCRIBE, Resource.TOPIC, name)]
    unseen: list[Values] = [
        {"error_code": _UNSEEN, "name": name, "partitions": []} for name in wanted if names and name not in seen
    ]
    found = yield from _described(context, seen, start, max(1, min(MOST_PARTITIONS, body.response_partition_limit)))
    return {**found, "topics": [*found["topics"], *unseen]}


_UNSEEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _described(context: RequestContext, names: Sequence[str], start: tuple[str, int], limit: int) -> Work[Values]:
    topics: list[Values] = []
    for name in names:
        first = start[1] if name == start[0] else 0
        known = context.services.catalog.get(name)
        if not limit:
            return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": 0}}
        if known is None:
            topics.append(_unknown(context, name))
            continue
        last = min(known.partition_count, first + limit)
        partitions = yield from each(range(first, last), partial(partition_of, context, name))
        topics.append({"name": name, "topic_id": known.topic_id, **_about(context, name), "partitions": partitions})
        limit -= len(partitions)
        if last < known.partition_count:
            return {"topics": topics, "next_cursor": {"topic_name": name, "partition_index": last}}
    return {"topics": topics, "next_cursor": None}


def _about(context: RequestContext, name: str) -> Values:
    return {"is_internal": name in INTERNAL_TOPICS, "topic_authorized_operations": context.operations(Resource.TOPIC, name)}


def _unknown(context: RequestContext, name: str) -> Values:
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_problem(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {"error_code": error, "name": name, **_about(context, name), "partitions": []}


def _all_refused(names: Sequence[str], error: ErrorCode) -> Values:
    return {"topics": [{"error_code": error, "name": name, "partitions": []} for name in names]}


SPEC = ApiSpec(75, "DescribeTopicPartitions", 0, 0, handle)
