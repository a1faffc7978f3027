"""What changes groups over kgctl's own connection: commits, their deletion, that of groups and of their own topics.

A request whose answer was lost is not sent again here: whoever planned the change looks first at what became of it
(`kgctl.admin.changes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kgctl.admin import ACTIVE_GROUP, GroupResults, ItemError, PartitionResults, Results, item_error
from kgctl.admin.answers import group_results, partition_results
from kgctl.errors import UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.asking import LEFT_OUT, Failure, ask_coordinators, is_passing
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import DELETE_GROUPS, DELETE_TOPICS, OFFSET_COMMIT, OFFSET_DELETE, Connection, Request

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_NO_MEMBER = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time_ms": -1}
"""An administrator commits as a client that assigns itself does; the broker's own retention holds."""

ACTIVE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION})
"""How coordinators answer a commit from outside where the group has members."""


def commit_offsets(
    cluster: ClusterClient, wanted: Mapping[str, Offsets], deadline: Deadline
) -> dict[str, PartitionResults[None]]:
    """Commit for groups without members, a request a group; a group with members is NON_EMPTY_GROUP on each partition."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        version, unsent = connection.version(OFFSET_COMMIT), list(groups)

        def requests() -> Iterator[Request]:
            for group in groups:
                unsent.remove(group)
                yield Request(OFFSET_COMMIT, version, _commit(group, wanted[group]))

        try:
            for group, answer in zip(groups, connection.stream(requests(), deadline), strict=True):
                passing = next((failure for failure in _by_partition(answer).values() if is_passing(failure)), None)
                yield {group: passing or answer}
        except UnreachableError as error:
            error.unsent = unsent
            raise

    answers = ask_coordinators(cluster, [group for group in wanted if wanted[group]], ask, deadline, is_idempotent=False)
    return {group: _committed(group, wanted[group], answer) for group, answer in answers.items()}


def _commit(group_id: str, offsets: Offsets) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, partition), commit in offsets.items():
        topics.setdefault(topic, []).append(
            {
                "partition_index": partition,
                "committed_offset": commit.offset,
                "committed_leader_epoch": commit.leader_epoch,
                "committed_metadata": commit.metadata,
            }
        )
    named = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    return {"group_id": group_id, "group_instance_id": None, "topics": named, **_NO_MEMBER}


def _committed(group_id: str, offsets: Offsets, answer: Any) -> PartitionResults[None]:
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(offsets, answer), group_id)
    found = _by_partition(answer)
    results = partition_results({partition: found.get(partition, LEFT_OUT) for partition in offsets}, group_id)
    if not any(error.code in ACTIVE for error in results.errors.values()):
        return results
    active = ItemError(ErrorCode.NON_EMPTY_GROUP, ACTIVE_GROUP.format(group=group_id))
    return Results(results.values, {key: active if error.code in ACTIVE else error for key, error in results.errors.items()})


def _by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
    return {
        TopicPartition(topic.name, each.partition_index): Failure(ErrorCode(each.error_code)) if each.error_code else None
        for topic in answer.topics
        for each in topic.partitions
    }


def delete_offsets(
    cluster: ClusterClient, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Success also where nothing was committed. A failure of the whole request is on each partition."""
    wanted = list(dict.fromkeys(partitions))
    if not wanted:
        return partition_results({})

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Any]]:
        answer = connection.call(OFFSET_DELETE, {"group_id": group_id, "topics": _topics(wanted)}, deadline)
        yield dict.fromkeys(groups, Failure(ErrorCode(answer.error_code)) if answer.error_code else answer)

    answer = ask_coordinators(cluster, [group_id], ask, deadline, is_idempotent=False)[group_id]
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(wanted, answer), group_id)
    found = _by_partition(answer)
    return partition_results({partition: found.get(partition, LEFT_OUT) for partition in wanted}, group_id)


def _topics(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[dict[str, int]]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append({"partition_index": partition})
    return [{"name": topic, "partitions": numbers} for topic, numbers in by_topic.items()]


def delete_topics(cluster: ClusterClient, topics: Sequence[str], deadline: Deadline) -> Results[str, None]:
    """Asked again where the connection is lost: one that is gone by then was deleted."""
    left_ms = int(deadline.seconds_left() * 1000)
    answer = cluster.call(DELETE_TOPICS, {"topic_names": list(topics), "timeout_ms": left_ms}, deadline)
    found = {each.name: Failure(ErrorCode(each.error_code), getattr(each, "error_message", None)) for each in answer.responses}
    errors: dict[str, ItemError] = {}
    for topic in topics:
        code, detail, _ = found.get(topic, LEFT_OUT)
        if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            errors[topic] = item_error(code, partition=TopicPartition(topic, 0), detail=detail)
    return Results({topic: None for topic in topics if topic not in errors}, errors)


def delete_groups(cluster: ClusterClient, group_ids: Sequence[str], deadline: Deadline) -> GroupResults[None]:
    """Delete groups of every type; NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND are errors of the one group."""

    def ask(connection: Connection, groups: list[str]) -> Iterator[Mapping[str, Failure | None]]:
        answer = connection.call(DELETE_GROUPS, {"groups_names": groups}, deadline)
        yield {each.group_id: Failure(ErrorCode(each.error_code)) if each.error_code else None for each in answer.results}

    return group_results(ask_coordinators(cluster, group_ids, ask, deadline, is_idempotent=False))
