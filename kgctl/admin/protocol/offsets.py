"""Committed offsets: read (OffsetFetch), deleted (OffsetDelete, KIP-496). Bounds of logs (ListOffsets). Topics (Metadata)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kgctl.admin.protocol.groups import group_results, partition_results
from kgctl.admin.results import GroupResults, PartitionResults, Results
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import LogOffsets, OffsetAndMetadata, TopicPartition
from kgctl.wire.cluster import EARLIEST, LATEST, LEFT_OUT, Answers, Cluster, Failure, ask_coordinators, ask_leaders, list_offsets
from kgctl.wire.connection import OFFSET_DELETE, OFFSET_FETCH, Connection, Request
from kgctl.wire.deadline import Deadline

_GROUPS_PER_REQUEST = 50
_SEVERAL_GROUPS_SINCE = 8  # KIP-709

Committed = Mapping[TopicPartition, OffsetAndMetadata]
_new_partition = partial(tuple.__new__, TopicPartition)


def list_committed_offsets(
    cluster: Cluster, group_ids: Sequence[str], deadline: Deadline, *, require_stable: bool = False
) -> GroupResults[Committed]:
    """All committed offsets of each group, by topic and partition; a group that does not exist has none.

    With ``require_stable`` a group with offsets of an open transaction has the error UNSTABLE_OFFSET_COMMIT.
    """

    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Committed | Failure]:
        if connection.version(OFFSET_FETCH) >= _SEVERAL_GROUPS_SINCE:
            return _in_batches(connection, groups, deadline, require_stable=require_stable)
        return _one_by_one(connection, groups, deadline, require_stable=require_stable)

    return group_results(ask_coordinators(cluster, group_ids, ask, deadline))


def _in_batches(
    connection: Connection, groups: list[str], deadline: Deadline, *, require_stable: bool
) -> Mapping[str, Committed | Failure]:
    version = connection.version(OFFSET_FETCH)
    requests = []
    for start in range(0, len(groups), _GROUPS_PER_REQUEST):
        asked = [{"group_id": group, "topics": None} for group in groups[start : start + _GROUPS_PER_REQUEST]]
        requests.append(Request(OFFSET_FETCH, version, {"groups": asked, "require_stable": require_stable}))
    responses = connection.stream(requests, deadline)
    return {group.group_id: _committed(group) for response in responses for group in response.groups}


def _one_by_one(
    connection: Connection, groups: list[str], deadline: Deadline, *, require_stable: bool
) -> Mapping[str, Committed | Failure]:
    version = connection.version(OFFSET_FETCH)
    fields = {"topics": None, "require_stable": require_stable}
    requests = [Request(OFFSET_FETCH, version, {"group_id": group, **fields}) for group in groups]
    responses = connection.stream(requests, deadline)
    return {group: _committed(response) for group, response in zip(groups, responses, strict=True)}


def _committed(answer: Any) -> Committed | Failure:
    """A partition without a commit is left out; any partition's error is the group's, as its picture would have a hole."""
    if answer.error_code:
        return Failure(ErrorCode(answer.error_code))
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in answer.topics:
        name = topic.name
        for each in topic.partitions:
            if each.error_code:
                return Failure(ErrorCode(each.error_code))
            if each.committed_offset >= 0:
                found[_new_partition((name, each.partition_index))] = _offset(each)
    return dict(sorted(found.items()))


def _offset(each: Any) -> OffsetAndMetadata:
    """librdkafka ends metadata with a NUL that is not part of it."""
    metadata = each.metadata or ""
    if metadata[-1:] == "\0":
        metadata = metadata[:-1]
    return OffsetAndMetadata(each.committed_offset, metadata, getattr(each, "committed_leader_epoch", -1))


def list_log_offsets(
    cluster: Cluster, partitions: Sequence[TopicPartition], deadline: Deadline, *, read_committed: bool = False
) -> PartitionResults[LogOffsets]:
    """Log start and log end (the high watermark, or the last stable offset) of each partition, both asked at once."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Mapping[TopicPartition, LogOffsets | Failure]:
        starts, ends = list_offsets(connection, wanted, (EARLIEST, LATEST), deadline, read_committed=read_committed)
        return {partition: _both(starts[partition], ends[partition]) for partition in wanted}

    return partition_results(ask_leaders(cluster, partitions, ask, deadline))


def list_offsets_at(
    cluster: Cluster, partitions: Sequence[TopicPartition], timestamp_ms: int, deadline: Deadline
) -> PartitionResults[int | None]:
    """The first offset at or after the time; None where there is no such record."""

    def ask(connection: Connection, wanted: list[TopicPartition]) -> Answers:
        (found,) = list_offsets(connection, wanted, (timestamp_ms,), deadline)
        return found

    results = partition_results(ask_leaders(cluster, partitions, ask, deadline))
    return Results({key: None if offset < 0 else offset for key, offset in results.values.items()}, results.errors)


def _both(start: int | Failure, end: int | Failure) -> LogOffsets | Failure:
    if isinstance(start, Failure):
        return start
    if isinstance(end, Failure):
        return end
    return LogOffsets(start, end)


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition], deadline: Deadline
) -> PartitionResults[None]:
    """Success also where nothing was committed. A failure of the whole request is on each partition."""
    wanted = list(dict.fromkeys(partitions))
    if not wanted:
        return partition_results({})

    def ask(connection: Connection, groups: list[str]) -> Mapping[str, Any]:
        answer = connection.call(OFFSET_DELETE, {"group_id": group_id, "topics": _topics(wanted)}, deadline)
        return dict.fromkeys(groups, Failure(ErrorCode(answer.error_code)) if answer.error_code else answer)

    answer = ask_coordinators(cluster, [group_id], ask, deadline)[group_id]
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(wanted, answer), group_id)
    found = _by_partition(answer)
    return partition_results({partition: found.get(partition, LEFT_OUT) for partition in wanted}, group_id)


def _topics(partitions: Sequence[TopicPartition]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[dict[str, int]]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append({"partition_index": partition})
    return [{"name": topic, "partitions": numbers} for topic, numbers in by_topic.items()]


def _by_partition(answer: Any) -> dict[TopicPartition, Failure | None]:
    return {
        TopicPartition(topic.name, each.partition_index): Failure(ErrorCode(each.error_code)) if each.error_code else None
        for topic in answer.topics
        for each in topic.partitions
    }


def list_topics(cluster: Cluster, topics: Sequence[str] | None, deadline: Deadline) -> Mapping[str, int]:
    """Topic -> number of partitions, sorted; None asks for all. Topics that do not exist, or may not be seen, are left out."""
    if topics is not None and not topics:
        return {}
    found = cluster.layout(None if topics is None else sorted(set(topics)), deadline).topics
    return {name: len(found[name].leaders) for name in sorted(found) if not found[name].error_code}
