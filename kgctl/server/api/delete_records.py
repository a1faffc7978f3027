"""DeleteRecords: moves the log start offset up, so that a lag past it can be tried out."""

from __future__ import annotations

from typing import Any

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import each_once, partition_error
from kgctl.server.cleaner import COMPACT, policies
from kgctl.server.cluster import INTERNAL_TOPICS
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import finish

HIGH_WATERMARK = -1


def handle(context: RequestContext, body: Any) -> Values:
    """One result a partition: the new log start offset. Of a partition that is named twice the last one counts."""
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _delete(context, TopicPartition(topic.name, index), said[-1].offset) for index, said in by_index.items()
                ],
            }
            for topic, by_index in finish(each_once(body.topics, "name", "partitions", "partition_index"))
        ]
    }


def _delete(context: RequestContext, partition: TopicPartition, offset: int) -> dict[str, Any]:
    error, low_watermark = _outcome(context, partition, offset)
    return {"partition_index": partition.partition, "low_watermark": low_watermark, "error_code": error}


def _outcome(context: RequestContext, partition: TopicPartition, offset: int) -> tuple[ErrorCode, int]:
    error = partition_error(context, AclOperation.DELETE, partition)
    if partition.topic in INTERNAL_TOPICS and error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    if error is ErrorCode.NONE and {*policies(context.services, partition.topic)} == {COMPACT}:
        error = ErrorCode.POLICY_VIOLATION
    if error is not ErrorCode.NONE:
        return error, -1
    start, end = context.services.data.bounds(partition)
    wanted = end if offset == HIGH_WATERMARK else offset
    if not 0 <= wanted <= end:
        return ErrorCode.OFFSET_OUT_OF_RANGE, -1
    if wanted > start:
        try:
            context.services.data.delete_records(partition, wanted)
        except StorageError as failure:
            return context.services.data.storage_failed(failure), -1
    return ErrorCode.NONE, max(start, wanted)


SPEC = ApiSpec(21, "DeleteRecords", 0, 2, handle, runs_in_thread=lambda *_: True)
