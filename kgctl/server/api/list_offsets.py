"""ListOffsets: the bounds of partitions, or where a time begins. Version 0 for older lag monitors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.errors import NotFoundError, StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import NO_EPOCH, each_once, partition_error
from kgctl.server.partition_data import LEADER_EPOCH
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import finish, is_long

READ_COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NEVER = 1_000
SINCE_VERSION = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
UNKNOWN = (-1, -1, -1)


def handle(context: RequestContext, body: Any) -> Values:
    partition_result = _old_style if context.version == 0 else _partition
    isolation_level = getattr(body, "isolation_level", 0)
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    partition_result(context, TopicPartition(topic.name, index), said, isolation_level)
                    for index, said in by_index.items()
                ],
            }
            for topic, by_index in finish(each_once(body.topics, "name", "partitions", "partition_index"))
        ]
    }


def _partition(context: RequestContext, partition: TopicPartition, said: Sequence[Any], isolation_level: int) -> dict[str, Any]:
    entry, *more = said
    if more and context.may(AclOperation.DESCRIBE, Resource.TOPIC, partition.topic):
        error = ErrorCode.INVALID_REQUEST
    elif entry.timestamp < 0 and context.version < SINCE_VERSION.get(entry.timestamp, NEVER):
        error = ErrorCode.UNSUPPORTED_VERSION
    else:
        error = partition_error(context, AclOperation.DESCRIBE, partition, getattr(entry, "current_leader_epoch", NO_EPOCH))
    offset, timestamp, epoch = UNKNOWN
    if error is ErrorCode.NONE:
        try:
            offset, timestamp, epoch = _lookup(context, partition, entry.timestamp, committed=isolation_level == READ_COMMITTED)
        except StorageError as failure:
            error = context.services.data.storage_failed(failure)
        except NotFoundError:  # deleted meanwhile
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {
        "partition_index": partition.partition,
        "error_code": error,
        "timestamp": timestamp,
        "offset": offset,
        "leader_epoch": epoch,
    }


def _lookup(context: RequestContext, partition: TopicPartition, timestamp: int, *, committed: bool) -> tuple[int, int, int]:
    """(offset, timestamp, leader epoch); with ``committed`` the latest is where open transactions begin."""
    data = context.services.data
    start, end = data.bounds(partition)
    if timestamp == LATEST:
        return data.stable_offset(partition, end) if committed else end, -1, LEADER_EPOCH
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return start, -1, LEADER_EPOCH
    if timestamp == MAX_TIMESTAMP:
        found = data.offset_of_max_timestamp(partition)
    else:
        found = data.offset_for_timestamp(partition, timestamp) if timestamp >= 0 else None
    return UNKNOWN if found is None else (*found, LEADER_EPOCH)


def _old_style(context: RequestContext, partition: TopicPartition, said: Sequence[Any], _isolation_level: int) -> dict[str, Any]:
    """Version 0 wants a list of segment starts, newest first; there are only an end and a start."""
    entry = said[-1]
    error = partition_error(context, AclOperation.DESCRIBE, partition)
    offsets: list[int] = []
    if error is ErrorCode.NONE:
        start, end = context.services.data.bounds(partition)
        offsets = [start] if entry.timestamp == EARLIEST else sorted({start, end}, reverse=True)
    return {"partition_index": partition.partition, "error_code": error, "old_style_offsets": offsets[: entry.max_num_offsets]}


def _runs_in_thread(_: RequestContext, body: Any) -> bool:
    """A time is looked up among records, which have to be unpacked."""
    if is_long(body.topics):
        return True
    return any(entry.timestamp not in (LATEST, EARLIEST) for topic in body.topics for entry in topic.partitions)


SPEC = ApiSpec(2, "ListOffsets", 1, 11, handle, hidden_versions=frozenset({0}), runs_in_thread=_runs_in_thread)
