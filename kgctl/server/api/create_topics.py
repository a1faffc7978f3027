"""CreateTopics.

Kafka: ControllerApis#createTopics, ReplicationControlManager#createTopics, whose bounds count before anything is allocated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kgctl.errors import StorageError, UsageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import topic_name_problem
from kgctl.server.api.fields import NO_RIGHT, TIMED_OUT, assignment_problem, has_no_time, storage_failed
from kgctl.server.cluster import MAX_RECORDS_OF_A_CHANGE, new_topic_id
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.settings import check_topic

DEFAULT = -1
MAX_INT32 = 2**31 - 1
Problem = tuple[ErrorCode, str | None]
NO_PROBLEM: Problem = (ErrorCode.NONE, None)
TOO_MANY_PARTITIONS: Problem = (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
TOO_LARGE: Problem = (ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
TWICE: Problem = (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
NOT_ALLOWED: Problem = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
OVERFLOW: Problem = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
"""Kafka adds partitions up as int32, exactly."""


def handle(context: RequestContext, body: Any) -> Values:
    """One result a name; names that come twice stand last, as in Kafka. Every topic without an error is made, or none is."""
    names = Counter(topic.name for topic in body.topics)
    may_make_all = context.may(AclOperation.CREATE, Resource.CLUSTER)
    once = [topic for topic in body.topics if names[topic.name] == 1]
    topics = [topic for topic in once if may_make_all or context.may(AclOperation.CREATE, Resource.TOPIC, topic.name)]
    refused = [topic.name for topic in once if topic not in topics]
    counts = {topic.name: _partition_count(context, topic) for topic in topics}
    problems = _problems(context, topics, counts, has_no_time=has_no_time(body))
    made = {name: counts[name] for name, problem in problems.items() if problem is NO_PROBLEM}
    if made and not body.validate_only:
        try:
            _create(context, made, topics)
        except StorageError as error:
            problems |= dict.fromkeys(made, storage_failed(error))
    asked = {topic.name: topic for topic in topics}
    results = [_result(context, asked[name], counts[name], problem) for name, problem in problems.items()]
    twice = [name for name, times in names.items() if times > 1]
    wrong = {**dict.fromkeys(twice, TWICE), **dict.fromkeys(refused, NOT_ALLOWED)}
    return {"topics": [*results, *(_refusal(name, problem) for name, problem in wrong.items())]}


def _create(context: RequestContext, counts: dict[str, int], topics: Sequence[Any]) -> None:
    settings = context.services.settings
    settings.put_topics({topic.name: _config(topic) for topic in topics if topic.name in counts})
    try:
        context.services.catalog.create(counts)
    except StorageError:
        settings.put_topics({name: {} for name in counts})
        raise


def _config(topic: Any) -> dict[str, str]:
    return {each.name: each.value for each in topic.configs}


def _result(context: RequestContext, topic: Any, count: int, problem: Problem) -> dict[str, Any]:
    if problem is not NO_PROBLEM:
        return _refusal(topic.name, problem)
    created = context.services.catalog.get(topic.name)
    topic_id = new_topic_id() if created is None else created.topic_id
    if not context.may(AclOperation.DESCRIBE_CONFIGS, Resource.TOPIC, topic.name):
        return {**_refusal(topic.name, NO_PROBLEM), "topic_config_error_code": NO_RIGHT[Resource.TOPIC][0], "topic_id": topic_id}
    return {
        "name": topic.name,
        "topic_id": topic_id,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "num_partitions": count,
        "replication_factor": 1,
        "configs": [
            {
                "name": found.setting.name,
                "value": found.value,
                "read_only": False,
                "config_source": found.source,
                "is_sensitive": False,
            }
            for found in context.services.settings.topic(_config(topic), context.broker.node_id)
        ],
    }


def _refusal(name: str, problem: Problem) -> dict[str, Any]:
    error, message = problem
    return {"name": name, "error_code": error, "error_message": message, "num_partitions": -1, "replication_factor": -1}


def _partition_count(context: RequestContext, topic: Any) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.services.config.num_partitions if topic.num_partitions == DEFAULT else int(topic.num_partitions)


def _problems(context: RequestContext, topics: Sequence[Any], counts: dict[str, int], *, has_no_time: bool) -> dict[str, Problem]:
    """What is wrong with each topic; a request that is too large, or has no time, is refused whole."""
    refusal: Problem | None = TIMED_OUT if has_no_time else _refusal_of_all(counts)
    if refusal is not None:
        return dict.fromkeys(counts, refusal)
    problems = {topic.name: _problem(context, topic, counts[topic.name]) for topic in topics}
    records = sum(1 + len(topic.configs) + counts[topic.name] for topic in topics if problems[topic.name] is NO_PROBLEM)
    return dict.fromkeys(counts, TOO_LARGE) if records > MAX_RECORDS_OF_A_CHANGE else problems


def _refusal_of_all(counts: dict[str, int]) -> Problem | None:
    """Kafka: ReplicationControlManager#validateTotalNumberOfPartitions."""
    total = sum(max(count, 0) for count in counts.values())
    if total > MAX_INT32:
        return OVERFLOW
    return TOO_MANY_PARTITIONS if total > MAX_RECORDS_OF_A_CHANGE else None


def _problem(context: RequestContext, topic: Any, count: int) -> Problem:
    for least in (1, count):
        error = context.services.catalog.creation_error(topic.name, least)
        if error is not ErrorCode.NONE:
            existing = context.services.catalog.collides_with(topic.name)
            return error, topic_name_problem(topic.name) or _MESSAGES[error].format(topic.name, existing)
        problem = _config_problem(topic)
        if problem is not NO_PROBLEM:
            return problem
    if topic.assignments:
        return _assignment_problem(context, topic)
    brokers = len(context.services.cluster.brokers)
    if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
        return ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."
    default = context.services.config.default_replication_factor
    factor = default if topic.replication_factor == DEFAULT else topic.replication_factor
    if factor > brokers:
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be reached "
            f"because only {brokers} broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    return NO_PROBLEM


def _config_problem(topic: Any) -> Problem:
    """Kafka: ControllerConfigurationValidator#validate."""
    nulls = [each.name for each in topic.configs if each.value is None]
    if nulls:
        return ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
    try:
        check_topic(_config(topic))
    except UsageError as error:
        return ErrorCode.INVALID_CONFIG, error.message
    return NO_PROBLEM


def _assignment_problem(context: RequestContext, topic: Any) -> Problem:
    for what, value in (("replication factor", topic.replication_factor), ("number of partitions", topic.num_partitions)):
        if value != DEFAULT:
            return ErrorCode.INVALID_REQUEST, f"A manual partition assignment was specified, but {what} was not set to -1."
    if sorted(entry.partition_index for entry in topic.assignments) != list(range(len(topic.assignments))):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
    problem = assignment_problem(context, [entry.broker_ids for entry in topic.assignments])
    return NO_PROBLEM if problem is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


_MESSAGES = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic '{}' collides with existing topic: {}",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Topic '{}' already exists.",
    ErrorCode.INVALID_PARTITIONS: "Number of partitions was set to an invalid non-positive value.",
}

SPEC = ApiSpec(19, "CreateTopics", 2, 7, handle, runs_in_thread=lambda *_: True)
