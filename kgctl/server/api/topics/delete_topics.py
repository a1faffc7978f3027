"""DeleteTopics: by name, from version 6 on also by id."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

TOPIC_IDS_SINCE = 6
UNKNOWN_NAME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
UNKNOWN_ID = (ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def handle(context: RequestContext, body: Any) -> Values:
    if context.version >= TOPIC_IDS_SINCE:
        return {"responses": [_delete(context, topic.name, topic.topic_id) for topic in body.topics]}
    return {"responses": [_delete(context, name, None) for name in body.topic_names]}


def _delete(context: RequestContext, name: str | None, topic_id: UUID | None) -> dict[str, Any]:
    catalog = context.services.catalog
    topic = catalog.by_id(topic_id) if name is None else catalog.get(name)
    if topic is None:
        error, message = UNKNOWN_ID if name is None else UNKNOWN_NAME
        return {"name": name, "topic_id": topic_id, "error_code": error, "error_message": message}
    result = {"name": topic.name, "topic_id": topic.topic_id, "error_message": None}
    if topic.name == OFFSETS_TOPIC:
        return {**result, "error_code": ErrorCode.INVALID_REQUEST, "error_message": "Cannot delete the coordinator's own log."}
    catalog.delete(topic.name)
    context.services.producers.forget(topic.name)
    context.services.data.forget(topic.name)
    return {**result, "error_code": ErrorCode.NONE}


SPEC = ApiSpec(20, "DeleteTopics", 1, 6, handle)
