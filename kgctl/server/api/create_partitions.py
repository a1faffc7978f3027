"""CreatePartitions: more partitions for topics that exist.

Kafka: ControllerApis#createPartitions, ReplicationControlManager#createPartitions.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kgctl.errors import StorageError, UsageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import hash_map_order
from kgctl.server.api.fields import TIMED_OUT, assignment_problem, has_no_time, storage_failed
from kgctl.server.cluster import MAX_RECORDS_OF_A_CHANGE, OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

Problem = tuple[ErrorCode, str | None]
NO_PROBLEM: Problem = (ErrorCode.NONE, None)


def handle(context: RequestContext, body: Any) -> Values:
    """One result a topic, names that come twice first, then in the order of a HashSet, in which Kafka takes them.

    What a request may add in all is bounded. The topic that is beyond fills Kafka's list of records with what fits, so that each
    topic behind it fails, too (BoundedListTooLongException).
    """
    names = Counter(topic.name for topic in body.topics)
    twice: Problem = (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    problems = {name: twice for name, times in names.items() if times > 1}
    room, grown = MAX_RECORDS_OF_A_CHANGE, {}
    asked = {topic.name: topic for topic in body.topics}
    for name in hash_map_order([name for name in names if name not in problems]):
        topic = asked[name]
        problem = _problem(context, topic, has_no_time=has_no_time(body))
        if problem is NO_PROBLEM:
            added = topic.count - _current(context, topic.name)
            if added > room:
                problem = ErrorCode.UNKNOWN_SERVER_ERROR, None
            else:
                grown[name] = topic.count
            room = max(0, room - added)
        problems[name] = problem
    if grown and not body.validate_only:
        problems |= _grow(context, grown)
    return {"results": [{"name": name, "error_code": error, "error_message": text} for name, (error, text) in problems.items()]}


def _grow(context: RequestContext, counts: dict[str, int]) -> dict[str, Problem]:
    try:
        context.services.catalog.grow(counts)
    except StorageError as error:
        return dict.fromkeys(counts, storage_failed(error))
    except UsageError as error:
        return dict.fromkeys(counts, (ErrorCode.POLICY_VIOLATION, error.message))
    return {}


def _current(context: RequestContext, name: str) -> int:
    known = context.services.catalog.get(name)
    return 0 if known is None else known.partition_count


def _problem(context: RequestContext, topic: Any, *, has_no_time: bool) -> Problem:
    may_alter = context.may(AclOperation.ALTER, Resource.TOPIC, topic.name)
    if has_no_time or not may_alter:
        return TIMED_OUT if may_alter else (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
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
    return NO_PROBLEM if topic.assignments is None else _assignment_problem(context, topic.assignments, topic.count - current)


def _assignment_problem(context: RequestContext, assignments: Any, added: int) -> Problem:
    problem = assignment_problem(context, [each.broker_ids for each in assignments], replication=1)
    if len(assignments) != added:
        problem = f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) were specified."
    return NO_PROBLEM if problem is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


SPEC = ApiSpec(37, "CreatePartitions", 0, 3, handle, runs_in_thread=lambda *_: True)
