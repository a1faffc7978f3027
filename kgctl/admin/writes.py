"""What changes groups over kgctl's own connection: commits, their deletion, that of groups and of their own topics; and which
rights this user lacks for it.

A request whose answer was lost is not sent again here: whoever planned the change looks first at what became of it
(`kgctl.admin.changes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgctl.admin import ACTIVE_GROUP, Committed, GroupResults, ItemError, PartitionResults, Results, item_error
from kgctl.admin.answers import group_results, partition_results, results_of_each
from kgctl.admin.groups import GROUPS_PER_REQUEST
from kgctl.model.access import NOT_TOLD
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.asking import (
    LEFT_OUT,
    Failure,
    ask_a_group_each,
    ask_coordinator,
    ask_coordinators,
    by_topic,
    failure_in,
    is_passing,
    partitions_in,
    topics_to_commit,
)
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import (
    DELETE_GROUPS,
    DELETE_TOPICS,
    DESCRIBE_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    Connection,
    Request,
)

_NO_MEMBER = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
"""An administrator commits as a client that assigns itself does; the broker's own retention holds."""

ACTIVE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
"""How coordinators answer a commit from outside where the group has members."""


def commit_offsets(
    cluster: ClusterClient, wanted: Mapping[str, Committed], deadline: Deadline
) -> dict[str, PartitionResults[None]]:
    """Commit for groups without members, a request a group; a group with members is NON_EMPTY_GROUP on each partition."""
    chosen = [group for group in wanted if wanted[group]]

    def values(group: str) -> dict[str, Any]:
        return {"group_id": group, "group_instance_id": None, "topics": topics_to_commit(wanted[group].items()), **_NO_MEMBER}

    answers = ask_a_group_each(cluster, chosen, OFFSET_COMMIT, values, deadline, failure=_passing)
    return {group: _committed(group, wanted[group], answer) for group, answer in answers.items()}


def _passing(answer: Any) -> Failure | None:
    """An error of a partition for which the whole commit is asked for again."""
    return next((failure for failure in _by_partition(answer).values() if is_passing(failure)), None)


def _committed(group_id: str, offsets: Committed, answer: Any) -> PartitionResults[None]:
    results = results_of_each(group_id, offsets, answer, _by_partition)
    if not any(error.code in ACTIVE for error in results.errors.values()):
        return results
    active = ItemError(ErrorCode.NON_EMPTY_GROUP, ACTIVE_GROUP.format(group=group_id))
    return Results(results.values, {key: active if error.code in ACTIVE else error for key, error in results.errors.items()})


def _by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
    return {partition: failure_in(each) for partition, each in partitions_in(answer.topics)}


def delete_offsets(
    cluster: ClusterClient, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Success also where nothing was committed. A failure of the whole request is on each partition."""
    wanted = list(dict.fromkeys(partitions))
    if not wanted:
        return partition_results({})
    topics = by_topic((partition, {"partition_index": partition.partition}) for partition in wanted)
    answer = ask_coordinator(cluster, group_id, OFFSET_DELETE, {"group_id": group_id, "topics": topics}, deadline)
    return results_of_each(group_id, wanted, answer, _by_partition)


def delete_topics(cluster: ClusterClient, topics: Sequence[str], deadline: Deadline) -> Results[str, None]:
    """Asked again where the connection is lost: one that is gone by then was deleted."""
    left_ms = int(deadline.seconds_left() * 1000)
    answer = cluster.call(DELETE_TOPICS, {"topic_names": list(topics), "timeout_ms": left_ms}, deadline)
    found = {each.name: failure_in(each) for each in answer.responses}
    errors: dict[str, ItemError] = {}
    for topic in topics:
        failure = found.get(topic, LEFT_OUT)
        if failure and failure.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            errors[topic] = item_error(failure.code, partition=TopicPartition(topic, 0), detail=failure.message)
    return Results({topic: None for topic in topics if topic not in errors}, errors)


_RIGHTS_SINCE, _OF_ALL_GROUPS = 3, 5  # KIP-430; from version 6 on groups of other types, and those that are not there, are errors


def lacking_on_groups(cluster: ClusterClient, group_ids: Sequence[str], bit: int, deadline: Deadline) -> dict[str, ItemError]:
    """The groups, of any type, there or not, on which this user lacks the operation of this bit; none where it is not told."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, int | Failure]]:
        version = min(connection.version(DESCRIBE_GROUPS), _OF_ALL_GROUPS)
        if version < _RIGHTS_SINCE:
            yield dict.fromkeys(groups, NOT_TOLD)
            return
        batches = [groups[at : at + GROUPS_PER_REQUEST] for at in range(0, len(groups), GROUPS_PER_REQUEST)]
        fields = {"include_authorized_operations": True}
        requests = [Request(DESCRIBE_GROUPS, version, {"groups": batch, **fields}) for batch in batches]
        for response in connection.stream(requests, deadline):
            yield {each.group_id: failure_in(each) or each.authorized_operations for each in response.groups}

    answers = ask_coordinators(cluster, group_ids, ask, deadline)
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return {group: item_error(code, group=group) for group, operations in answers.items() if _lacks(operations, bit)}


def lacking_on_topics(cluster: ClusterClient, topics: Sequence[str], bit: int, deadline: Deadline) -> dict[str, ItemError]:
    """As `lacking_on_groups`, of topics that this user may see."""
    asked = {"topics": [{"name": topic} for topic in topics], "include_topic_authorized_operations": True}
    answer = cluster.call(METADATA, {**asked, "allow_auto_topic_creation": False}, deadline)
    told = {each.name: failure_in(each) or getattr(each, "topic_authorized_operations", NOT_TOLD) for each in answer.topics}
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return {name: item_error(code, partition=TopicPartition(name, 0)) for name, found in told.items() if _lacks(found, bit)}


def _lacks(operations: int | Failure, bit: int) -> bool:
    return not isinstance(operations, Failure) and operations != NOT_TOLD and not operations & bit


def delete_groups(cluster: ClusterClient, group_ids: Sequence[str], deadline: Deadline) -> GroupResults[None]:
    """Delete groups of every type; NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND are errors of the one group."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Failure | None]]:
        answer = connection.call(DELETE_GROUPS, {"groups_names": groups}, deadline)
        yield {each.group_id: failure_in(each) for each in answer.results}

    return group_results(ask_coordinators(cluster, group_ids, ask, deadline, is_idempotent=False))
