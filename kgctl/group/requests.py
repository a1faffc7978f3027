"""The member's requests as the wire has them, and the wire's answers as the member takes them: one entry an API.

The mirror image of ``kgctl.server.api``. Versions go up to the last in which topics have names, not ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicPartition
from kgctl.model.requests import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResult,
    FetchedOffset,
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupMember,
    JoinGroupResult,
    LeaveGroup,
    LeaveGroupResult,
    OffsetCommit,
    OffsetFetch,
    OffsetFetchResult,
    PartitionErrors,
    Request,
    Result,
    SyncGroup,
    SyncGroupResult,
)
from kgctl.model.values import frozen_in_order
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_topics
from kgctl.wire.asking import by_topic, partitions_in, topics_to_commit
from kgctl.wire.connection import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    Api,
)

SEVERAL_GROUPS_SINCE = 8
"""OffsetFetch names groups, each with its topics, from this version on (KIP-709)."""

Values = Mapping[str, Any]


@frozen_in_order
class RequestCodec:
    """How one kind of request goes over the wire: its API, its fields in a version, and what its answer says."""

    api: Api
    encode: Callable[[Any, int], Values]
    decode: Callable[[Any, Any], Result]


R = TypeVar("R")
_OF_ALL = frozenset(each.name for each in fields(Request))


def _as_named(request: Request, **otherwise: Any) -> dict[str, Any]:
    """A request's own fields, which the wire calls so too; ``otherwise``: those that it has in another form."""
    return {each.name: getattr(request, each.name) for each in fields(request) if each.name not in _OF_ALL} | otherwise


def _join_group(request: JoinGroup, _: int) -> Values:
    protocols = [{"name": protocol.name, "metadata": protocol.metadata} for protocol in request.protocols]
    return _as_named(request, protocols=protocols)


def _told(kind: Callable[..., R], answer: Any, **otherwise: Any) -> R:
    """A result, whose own fields the wire calls so too; what this version has not is as by default. ``otherwise``: as above."""
    known = {name: getattr(answer, name) for name in _names(kind) - otherwise.keys() if hasattr(answer, name)}
    return kind(error=ErrorCode(answer.error_code), **known, **otherwise)


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind))


def _join_group_result(_: JoinGroup, answer: Any) -> JoinGroupResult:
    members = tuple(
        JoinGroupMember(
            member_id=each.member_id,
            group_instance_id=getattr(each, "group_instance_id", None),
            metadata=bytes(each.metadata),
        )
        for each in answer.members
    )
    return _told(JoinGroupResult, answer, members=members)


def subscribed_topics(members: Iterable[JoinGroupMember]) -> frozenset[str]:
    """Return all topics that these members of a group subscribe to; a subscription that cannot be read counts as none."""
    found: set[str] = set()
    for member in members:
        with suppress(MalformedConsumerProtocol):
            found.update(decode_topics(member.metadata))
    return frozenset(found)


def _sync_group(request: SyncGroup, _: int) -> Values:
    assignments = [{"member_id": member, "assignment": assignment} for member, assignment in request.assignments]
    return _as_named(request, assignments=assignments)


def _leave_group(request: LeaveGroup, _: int) -> Values:
    return _as_named(request, members=[asdict(each) for each in request.members])


def _offset_commit(request: OffsetCommit, _: int) -> Values:
    return {
        "group_id": request.group_id,
        "generation_id_or_member_epoch": request.generation_id,
        "member_id": request.member_id,
        "group_instance_id": request.group_instance_id,
        "retention_time_ms": -1 if request.retention_ms is None else request.retention_ms,
        "topics": topics_to_commit((TopicPartition(each.topic, each.partition), each) for each in request.partitions),
    }


def _offset_commit_result(_: OffsetCommit, answer: Any) -> PartitionErrors:
    return PartitionErrors(
        partitions=tuple((partition, ErrorCode(each.error_code)) for partition, each in partitions_in(answer.topics))
    )


def _offset_fetch(request: OffsetFetch, version: int) -> Values:
    wanted = ((partition, partition.partition) for partition in request.partitions or ())
    named = by_topic(wanted, partitions="partition_indexes")
    if version < SEVERAL_GROUPS_SINCE:
        return {"group_id": request.group_id, "topics": named, "require_stable": request.require_stable}
    group = {
        "group_id": request.group_id,
        "member_id": request.member_id,
        "member_epoch": request.member_epoch,
        "topics": named,
    }
    return {"groups": [group], "require_stable": request.require_stable}


def _offset_fetch_result(request: OffsetFetch, answer: Any) -> OffsetFetchResult:
    part = next(iter(answer.groups)) if hasattr(answer, "groups") else answer
    offsets = (
        FetchedOffset(
            partition=partition,
            offset=each.committed_offset,
            leader_epoch=getattr(each, "committed_leader_epoch", -1),
            metadata=each.metadata or "",
            error=ErrorCode(each.error_code),
        )
        for partition, each in partitions_in(part.topics)
    )
    return OffsetFetchResult(group_id=request.group_id, error=ErrorCode(part.error_code), offsets=tuple(offsets))


def _consumer_group_heartbeat(request: ConsumerGroupHeartbeat, _: int) -> Values:
    owned = request.topic_partitions
    told = None if owned is None else [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in owned]
    return _as_named(request, topic_partitions=told)


def _consumer_group_heartbeat_result(_: ConsumerGroupHeartbeat, answer: Any) -> ConsumerGroupHeartbeatResult:
    assignment: tuple[tuple[UUID, tuple[int, ...]], ...] | None = None
    if answer.assignment is not None:
        assigned = answer.assignment.topic_partitions
        assignment = tuple((each.topic_id or ZERO_UUID, tuple(each.partitions)) for each in assigned)
    return _told(ConsumerGroupHeartbeatResult, answer, assignment=assignment)


CODECS: Mapping[type[Request], RequestCodec] = {
    JoinGroup: RequestCodec(JOIN_GROUP, _join_group, _join_group_result),
    SyncGroup: RequestCodec(
        SYNC_GROUP, _sync_group, lambda _, told: _told(SyncGroupResult, told, assignment=bytes(told.assignment))
    ),
    Heartbeat: RequestCodec(HEARTBEAT, lambda request, _: _as_named(request), lambda _, told: _told(HeartbeatResult, told)),
    LeaveGroup: RequestCodec(LEAVE_GROUP, _leave_group, lambda _, told: _told(LeaveGroupResult, told, members=())),
    OffsetCommit: RequestCodec(OFFSET_COMMIT, _offset_commit, _offset_commit_result),
    OffsetFetch: RequestCodec(OFFSET_FETCH, _offset_fetch, _offset_fetch_result),
    ConsumerGroupHeartbeat: RequestCodec(CONSUMER_GROUP_HEARTBEAT, _consumer_group_heartbeat, _consumer_group_heartbeat_result),
}
