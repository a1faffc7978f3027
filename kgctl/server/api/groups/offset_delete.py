"""OffsetDelete."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.model.requests import OffsetDelete
from kgctl.model.results import OffsetDeleteResult
from kgctl.server.api.fields import TopicErrors
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values


def handle(context: RequestContext, body: Any) -> Answer:
    """Unknown topics and partitions are answered here, the rest goes to the coordinator."""
    error = context.not_coordinator(body.group_id)
    if error is not None:
        return {"error_code": error, "topics": []}
    errors = TopicErrors()
    partitions: list[TopicPartition] = []
    for topic in body.topics:
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if context.services.catalog.has_partition(partition):
                partitions.append(partition)
            else:
                errors.add(topic.name, None, entry.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def render(result: OffsetDeleteResult) -> Values:
        if result.error is not ErrorCode.NONE:
            return {"error_code": result.error, "topics": []}
        errors.merge(result.partitions, {})
        return {"error_code": ErrorCode.NONE, "topics": errors.topics()}

    return context.ask(OffsetDelete(**context.core(), group_id=body.group_id, partitions=tuple(partitions)), render)


SPEC = ApiSpec(47, "OffsetDelete", 0, 0, handle)
