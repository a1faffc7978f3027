"""AlterPartitionReassignments: a partition moves at once, as the brokers share what they have.

Kafka: ReplicationControlManager#alterPartitionReassignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.fields import TIMED_OUT, Refused, assignment_problem, has_no_time
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values

Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)
NOTHING_TO_CANCEL: Outcome = (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)


def handle(context: RequestContext, body: Any) -> Values:
    """One result a partition, in the order of the request."""
    may_resize = getattr(body, "allow_replication_factor_change", True)
    if has_no_time(body):
        return {**_refused_all(body, *TIMED_OUT), "allow_replication_factor_change": may_resize}
    responses = []
    for topic in body.topics:
        found = [(each, _outcome(context, topic.name, each, may_resize=may_resize)) for each in topic.partitions]
        partitions = [
            {"partition_index": each.partition_index, "error_code": code, "error_message": text} for each, (code, text) in found
        ]
        responses.append({"name": topic.name, "partitions": partitions})
    error = {"error_code": ErrorCode.NONE, "error_message": None}
    return {**error, "allow_replication_factor_change": may_resize, "responses": responses}


def _outcome(context: RequestContext, topic: str, entry: Any, *, may_resize: bool) -> Outcome:
    known, index = context.services.catalog.get(topic), entry.partition_index
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
    if not 0 <= index < known.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}."
    if entry.replicas is None:
        return NOTHING_TO_CANCEL
    return _moved(context, TopicPartition(topic, index), entry.replicas, may_resize=may_resize)


def _moved(context: RequestContext, partition: TopicPartition, replicas: Sequence[int], *, may_resize: bool) -> Outcome:
    problem = assignment_problem(context, [replicas])
    if problem is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem
    now = context.services.cluster.replicas(*partition)
    if not may_resize and len(now) != len(replicas):
        text = f"The replication factor is changed from {len(now)} to {len(replicas)}"
        return ErrorCode.INVALID_REPLICATION_FACTOR, text
    if tuple(replicas) != now and partition.topic == OFFSETS_TOPIC:
        return ErrorCode.INVALID_REQUEST, "The coordinator's own log cannot be moved."
    context.services.cluster.place(partition, replicas)
    return DONE


def _no_right(_context: RequestContext, body: Any, refused: Refused) -> Values:
    return _refused_all(body, *refused)


def _refused_all(body: Any, code: ErrorCode, message: str | None) -> Values:
    error = {"error_code": code, "error_message": message}
    responses = [
        {"name": topic.name, "partitions": [{"partition_index": each.partition_index, **error} for each in topic.partitions]}
        for topic in body.topics
    ]
    return {**error, "responses": responses}


SPEC = ApiSpec(45, "AlterPartitionReassignments", 0, 1, handle, right=ClusterRight(AclOperation.ALTER, _no_right))
