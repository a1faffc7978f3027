"""CreateTopics. Topic configs are accepted and have no effect: records stay until their topic goes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.catalog import name_problem, new_topic_id
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

DEFAULT = -1


def handle(context: RequestContext, body: Any) -> Values:
    names = Counter(topic.name for topic in body.topics)
    topics = {topic.name: topic for topic in body.topics}.values()
    return {"topics": [_create(context, topic, validate_only=body.validate_only, names=names) for topic in topics]}


def _create(context: RequestContext, topic: Any, *, validate_only: bool, names: Counter[str]) -> dict[str, Any]:
    catalog = context.services.catalog
    count = _partition_count(context, topic)
    error, message = _problem(context, topic, count, names)
    if error is ErrorCode.NONE and not validate_only:
        catalog.create(topic.name, count)
    if error is not ErrorCode.NONE:
        return {"name": topic.name, "error_code": error, "error_message": message, "num_partitions": -1, "replication_factor": -1}
    created = catalog.get(topic.name)
    return {
        "name": topic.name,
        "topic_id": new_topic_id() if created is None else created.topic_id,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "num_partitions": count,
        "replication_factor": 1,
        "configs": [],
    }


def _partition_count(context: RequestContext, topic: Any) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.services.config.num_partitions if topic.num_partitions == DEFAULT else int(topic.num_partitions)


def _problem(context: RequestContext, topic: Any, count: int, names: Counter[str]) -> tuple[ErrorCode, str | None]:
    if names[topic.name] > 1:
        return ErrorCode.INVALID_REQUEST, "Duplicate topic name."
    error = context.services.catalog.creation_error(topic.name, count)
    if error is not ErrorCode.NONE:
        return error, name_problem(topic.name) or _MESSAGES[error].format(topic.name)
    if topic.assignments:
        return _assignment_problem(topic)
    brokers = len(context.services.cluster.brokers)
    if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
        return ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."
    if topic.replication_factor > brokers:
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {topic.replication_factor} time(s): The target replication factor of "
            f"{topic.replication_factor} cannot be reached because only {brokers} broker(s) are registered or some brokers have "
            "all their log directories cordoned.",
        )
    return ErrorCode.NONE, None


def _assignment_problem(topic: Any) -> tuple[ErrorCode, str | None]:
    for what, value in (("replication factor", topic.replication_factor), ("number of partitions", topic.num_partitions)):
        if value != DEFAULT:
            return ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {what} was not set to -1."
    if sorted(entry.partition_index for entry in topic.assignments) != list(range(len(topic.assignments))):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
    return ErrorCode.NONE, None


_MESSAGES = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "Topic '{}' already exists.",
    ErrorCode.INVALID_PARTITIONS: "Number of partitions was set to an invalid non-positive value.",
}

SPEC = ApiSpec(19, "CreateTopics", 2, 7, handle)
