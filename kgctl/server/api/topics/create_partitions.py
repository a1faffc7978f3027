"""CreatePartitions: more partitions for topics that exist."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values


def handle(context: RequestContext, body: Any) -> Values:
    results = []
    for topic in body.topics:
        error, message = _problem(context, topic)
        if error is ErrorCode.NONE and not body.validate_only:
            context.services.catalog.grow(topic.name, topic.count)
        results.append({"name": topic.name, "error_code": error, "error_message": message})
    return {"results": results}


def _problem(context: RequestContext, topic: Any) -> tuple[ErrorCode, str | None]:
    known = context.services.catalog.get(topic.name)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if topic.name == OFFSETS_TOPIC:
        return ErrorCode.INVALID_REQUEST, "The coordinator's own log cannot be changed."
    current = known.partition_count
    if topic.count == current:
        return ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s)."
    if topic.count < current:
        return (
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {current} partition(s); {topic.count} would not be an increase.",
        )
    if topic.assignments is not None and len(topic.assignments) != topic.count - current:
        return (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {topic.count - current} additional partition(s), but only {len(topic.assignments)} "
            "assignment(s) were specified.",
        )
    return ErrorCode.NONE, None


SPEC = ApiSpec(37, "CreatePartitions", 0, 3, handle)
