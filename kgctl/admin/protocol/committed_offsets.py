"""OffsetFetch for all partitions of many groups: fifty groups a request, the coordinators at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kgctl.admin.protocol.answers import group_results
from kgctl.admin.results import GroupResults
from kgctl.model.error_codes import ErrorCode
from kgctl.model.offsets import OffsetAndMetadata
from kgctl.model.partitions import TopicPartition
from kgctl.wire.apis import OFFSET_FETCH
from kgctl.wire.cluster import Cluster
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.routing import Failure, ask_coordinators

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
