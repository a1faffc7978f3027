"""ElectLeaders: every partition that can be led is led by its preferred replica. Kafka: ReplicationControlManager#electLeader."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import TIMED_OUT, Refused, has_no_time
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values

PREFERRED, UNCLEAN = 0, 1
NOT_NEEDED = "Leader election not needed for topic partition."
NOT_AVAILABLE = {
    PREFERRED: (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."),
    UNCLEAN: (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."),
}


def handle(context: RequestContext, body: Any) -> Values:
    """One result a partition; where none is named, of those alone that need an election."""
    kind = getattr(body, "election_type", PREFERRED)
    if has_no_time(body):
        return _refused(body, *TIMED_OUT)
    if kind not in NOT_AVAILABLE and body.topic_partitions != ():
        return _refused(body, ErrorCode.INVALID_REQUEST, f"Unknown election type {body.election_type}")
    if body.topic_partitions is None:
        topics = context.services.catalog.topics.values()
        every = [
            (topic.name, [_elected(context, topic.name, index, kind) for index in range(topic.partition_count)])
            for topic in topics
        ]
        found = [(name, [row for row in rows if row["error_code"] != ErrorCode.ELECTION_NOT_NEEDED]) for name, rows in every]
    else:
        found = [
            (each.topic, [_elected(context, each.topic, index, kind) for index in each.partitions])
            for each in body.topic_partitions
        ]
    return {
        "error_code": ErrorCode.NONE,
        "replica_election_results": [{"topic": name, "partition_result": rows} for name, rows in found],
    }


def _elected(context: RequestContext, topic: str, partition: int, kind: int) -> Values:
    code, text = _outcome(context, topic, partition, kind)
    return {"partition_id": partition, "error_code": code, "error_message": text}


def _outcome(context: RequestContext, topic: str, partition: int, kind: int) -> tuple[ErrorCode, str]:
    known = context.services.catalog.get(topic)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}"
    if not 0 <= partition < known.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{partition}"
    if context.services.cluster.leader(topic, partition).is_up:
        return ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED
    return NOT_AVAILABLE[kind]


def _refused(body: Any, code: ErrorCode, message: str | None) -> Values:
    """The same for all that was named. Kafka: ElectLeadersRequest#getErrorResponse."""
    error = {"error_code": code, "error_message": message}
    results = [
        {"topic": topic.topic, "partition_result": [{"partition_id": index, **error} for index in topic.partitions]}
        for topic in body.topic_partitions or ()
    ]
    return {"error_code": code, "replica_election_results": results}


def _no_right(_context: RequestContext, body: Any, refused: Refused) -> Values:
    return _refused(body, *refused)


SPEC = ApiSpec(43, "ElectLeaders", 0, 2, handle, right=ClusterRight(AclOperation.ALTER, _no_right))
