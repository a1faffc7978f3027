"""DeleteTopics: by name, from version 6 on also by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.server.api.fields import NO_RIGHT, has_no_time, storage_failed
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

TOPIC_IDS_SINCE = 6
NO_MORE_SINCE = 3
"""Versions below this do not know TOPIC_DELETION_DISABLED. Kafka: ControllerApis#deleteTopics."""
Asked = tuple[str | None, UUID | None]
NEITHER, BOTH = "Neither topic name nor id were specified.", "You may not specify both topic name and topic id."
AND_ITS_ID = "The provided topic name maps to an ID that was already supplied."
UNKNOWN_NAME = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, KAFKAS_WORDS[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
UNKNOWN_ID = (ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def handle(context: RequestContext, body: Any) -> Values:
    """One result a topic, what is refused unseen first; all that can be removed are removed together."""
    with_ids = context.version >= TOPIC_IDS_SINCE
    asked = [(topic.name, topic.topic_id) for topic in body.topics] if with_ids else [(name, None) for name in body.topic_names]
    if not context.services.config.delete_topic_enable:
        error = ErrorCode.TOPIC_DELETION_DISABLED if context.version >= NO_MORE_SINCE else ErrorCode.INVALID_REQUEST
        return {"responses": [{"name": name, "topic_id": topic_id, "error_code": error} for name, topic_id in asked]}
    refused = _refused(context, asked)
    results = [result for result in refused.values() if result is not None]
    results += [_checked(context, *each, has_no_time=has_no_time(body)) for each in asked if each not in refused]
    gone = {result["name"] for result in results if result["error_code"] is ErrorCode.NONE}
    if gone:
        try:
            _delete(context, gone)
        except StorageError as error:
            code, message = storage_failed(error)
            failed = {"error_code": code, "error_message": message}
            results = [result | failed if result["name"] in gone else result for result in results]
    return {"responses": results}


def _refused(context: RequestContext, asked: Sequence[Asked]) -> dict[Asked, dict[str, Any] | None]:
    """What names no topic, or one twice, with its result; None: that of its name says it. Kafka: ControllerApis#deleteTopics."""
    times, ids = Counter(asked), {topic_id for name, topic_id in asked if name is None}
    refused: dict[Asked, dict[str, Any] | None] = {}
    for name, topic_id in times:
        if (name is None) == (topic_id is None):
            refused[name, topic_id] = _invalid(name, topic_id, NEITHER if name is None else BOTH)
        elif times[name, topic_id] > 1:
            refused[name, topic_id] = _invalid(name, topic_id, f"Duplicate topic {'id' if name is None else 'name'}.")
        elif name is not None and (known := context.services.catalog.get(name)) is not None and known.topic_id in ids:
            refused |= {(name, None): _invalid(name, known.topic_id, AND_ITS_ID), (None, known.topic_id): None}
    return refused


def _invalid(name: str | None, topic_id: UUID | None, message: str) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "error_code": ErrorCode.INVALID_REQUEST, "error_message": message}


def _checked(context: RequestContext, name: str | None, topic_id: UUID | None, *, has_no_time: bool) -> dict[str, Any]:
    if has_no_time:
        return {"name": name, "topic_id": topic_id, "error_code": ErrorCode.REQUEST_TIMED_OUT, "error_message": None}
    catalog = context.services.catalog
    topic = catalog.by_id(topic_id) if name is None else catalog.get(name)
    known = name if topic is None else topic.name
    may_see, may_delete = _rights(context, known) if known is not None else (True, True)
    if not (may_see or name is None) or (topic is not None and not may_delete):
        error, message = NO_RIGHT[Resource.TOPIC]
        told = {"name": known if may_see else name, "topic_id": topic_id if name is None else None}
        return {**told, "error_code": error, "error_message": message}
    if topic is None and name in catalog.oversized():
        return {"name": name, "topic_id": None, "error_code": ErrorCode.NONE, "error_message": None}
    if topic is None:
        error, message = UNKNOWN_ID if name is None else UNKNOWN_NAME
        return {"name": name, "topic_id": topic_id, "error_code": error, "error_message": message}
    result = {"name": topic.name, "topic_id": topic.topic_id, "error_code": ErrorCode.NONE, "error_message": None}
    if topic.name == OFFSETS_TOPIC:
        return {**result, "error_code": ErrorCode.INVALID_REQUEST, "error_message": "Cannot delete the coordinator's own log."}
    return result


def _rights(context: RequestContext, name: str) -> tuple[bool, bool]:
    """Whether whoever asks may know of the topic, and delete it."""
    if context.may(AclOperation.DELETE, Resource.CLUSTER):
        return True, True
    return tuple(context.may(each, Resource.TOPIC, name) for each in (AclOperation.DESCRIBE, AclOperation.DELETE))  # type: ignore[return-value]


def _delete(context: RequestContext, names: set[str]) -> None:
    context.services.catalog.delete(names)
    with suppress(StorageError):  # they would be replaced if such a topic came again
        context.services.settings.put_topics({name: {} for name in names})
    for name in names:
        context.services.producers.forget(name)
        context.services.data.forget(name)
        context.services.cluster.forget(name)


SPEC = ApiSpec(20, "DeleteTopics", 1, 6, handle, runs_in_thread=lambda *_: True)
