"""OffsetDelete."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import OffsetDelete
from kgctl.server.api.fields import TopicErrors
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import UNITS_A_PIECE, Work, waited


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Unknown topics and partitions are answered here, the rest goes to the coordinator, in pieces."""
    error = context.group_error(AclOperation.DELETE, body.group_id)
    if error is not None:
        return {"error_code": error, "topics": []}
    errors = TopicErrors()
    partitions: list[TopicPartition] = []
    for topic in body.topics:
        may_read = context.may(AclOperation.READ, Resource.TOPIC, topic.name)
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if not may_read:
                errors.add(topic.name, None, entry.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif context.services.catalog.has_partition(partition):
                partitions.append(partition)
            else:
                errors.add(topic.name, None, entry.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            yield None
        yield None
    answers = []
    for start in range(0, max(len(partitions), 1), UNITS_A_PIECE):
        piece = tuple(partitions[start : start + UNITS_A_PIECE])
        answers.append(context.result(OffsetDelete(**context.core(), group_id=body.group_id, partitions=piece)))
        for _ in piece:
            yield None
    for answer in answers:
        result = yield from waited(answer)
        if result.error is not ErrorCode.NONE:
            return {"error_code": result.error, "topics": []}
        yield from errors.merge(result.partitions, {})
    return {"error_code": ErrorCode.NONE, "topics": errors.topics()}


SPEC = ApiSpec(47, "OffsetDelete", 0, 0, handle)
