"""OffsetCommit: unknown topics and partitions are answered here, the rest goes to the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from kgctl.model.access import AclOperation, Resource
from kgctl.model.coordinator_records import OffsetCommitKey, OffsetCommitValue
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ZERO_UUID, TopicMetadata
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, PartitionErrors, Request
from kgctl.serde.coordinator_records import encode_key, encode_value, older_value
from kgctl.serde.record_batch import HEADER_BYTES, record_size
from kgctl.server.api.fields import TopicErrors
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.traffic import UNITS_A_PIECE, Work, finish, waited

TOPIC_IDS_SINCE = 10
_RECORD_BYTES = 120
"""More than a commit's record has besides names and metadata."""


def handle(context: RequestContext, body: Any) -> Work[Answer]:
    """Unknown topics and partitions are answered here; the others reach the coordinator in pieces, in the request's order.

    All of it is refused when its records fill more than a batch may have, as in Kafka (CoordinatorRuntime).
    """
    errors = TopicErrors()
    partitions: list[OffsetCommitPartition] = []
    ids: dict[str, UUID | None] = {}
    with_ids = context.version >= TOPIC_IDS_SINCE
    resolves_ids = context.profile.resolves_topic_ids
    group_error = context.group_error(AclOperation.READ, body.group_id)
    for topic in body.topics:
        asked_id = topic.topic_id if with_ids else None
        known = context.services.catalog.find(None if with_ids else topic.name, (asked_id or ZERO_UUID) if with_ids else None)
        name = known.name if known is not None else ("" if with_ids else topic.name)
        ids[name] = asked_id
        error_of_all = _first_error(context, name, group_error)
        for partition in topic.partitions:
            error = error_of_all or topic_error(known, partition.partition_index, with_ids=with_ids)
            if error is ErrorCode.NONE:
                partitions.append(_to_core(name, known if with_ids or resolves_ids else None, partition))
            else:
                errors.add(name, asked_id, partition.partition_index, error)
            yield None
        yield None
    too_large = yield from fills_more_than_a_batch(context, body.group_id, partitions)
    request = partial(_request, context, body, is_too_large=too_large)
    return (yield from commit_in_pieces(context, partitions, request, errors, ids))


def _first_error(context: RequestContext, topic: str, group_error: ErrorCode | None) -> ErrorCode | None:
    """No right to the group, then to the topic (an id that nobody knows has no name), then another coordinator."""
    is_refused = group_error is not ErrorCode.GROUP_AUTHORIZATION_FAILED and topic
    if is_refused and not context.may(AclOperation.READ, Resource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return group_error


def topic_error(topic: TopicMetadata | None, partition: int, *, with_ids: bool) -> ErrorCode:
    """What the metadata alone says against a partition."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if with_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not 0 <= partition < topic.partition_count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _to_core(name: str, topic: TopicMetadata | None, partition: Any) -> OffsetCommitPartition:
    return OffsetCommitPartition(
        topic=name,
        partition=partition.partition_index,
        offset=partition.committed_offset,
        leader_epoch=getattr(partition, "committed_leader_epoch", -1),
        metadata=partition.committed_metadata,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
    )


def commit_in_pieces(
    context: RequestContext,
    partitions: list[OffsetCommitPartition],
    request: Callable[[list[OffsetCommitPartition]], Request],
    errors: TopicErrors,
    ids: dict[str, UUID | None],
) -> Work[Answer]:
    """Ask the coordinator for some partitions after the other, all of them before the first is waited for, and answer.

    A commit of an everyday size is one piece, and whatever writes its records answers it.
    """
    if 0 < len(partitions) <= UNITS_A_PIECE:
        return context.ask(request(partitions), partial(_answer, errors, ids))
    answers = []
    for start in range(0, len(partitions), UNITS_A_PIECE):
        piece = partitions[start : start + UNITS_A_PIECE]
        answers.append(context.result(request(piece)))
        for _ in piece:
            yield None
    for answer in answers:
        result = yield from waited(answer)
        yield from errors.merge(result.partitions, ids)
    return {"topics": errors.topics()}


def _answer(errors: TopicErrors, ids: dict[str, UUID | None], result: PartitionErrors) -> Values:
    finish(errors.merge(result.partitions, ids))
    return {"topics": errors.topics()}


def fills_more_than_a_batch(context: RequestContext, group_id: str, partitions: list[OffsetCommitPartition]) -> Work[bool]:
    """Whether the records of a commit need more than ``message.max.bytes``. Commits of an everyday size are not measured."""
    limit: int = context.services.settings.of_topic(OFFSETS_TOPIC, "max.message.bytes", context.broker.node_id)
    texts = sum(len(partition.topic) + len(partition.metadata or "") for partition in partitions)
    if len(partitions) * (_RECORD_BYTES + 3 * len(group_id)) + 3 * texts <= limit:
        return False
    longest = context.services.runtime.core.shard.config.offset_metadata_max_bytes
    partitions = [partition for partition in partitions if len(partition.metadata or "") <= longest]  # others fail alone
    size = HEADER_BYTES
    for offset_delta, partition in enumerate(partitions):
        key = OffsetCommitKey(group_id, partition.topic, partition.partition)
        text = partition.metadata or ""
        value = OffsetCommitValue(partition.offset, partition.leader_epoch, text, 0, topic_id=partition.topic_id)
        key_bytes, value_bytes = encode_key(key), encode_value(key, value)
        if not context.profile.keeps_topic_ids:
            value_bytes = older_value(key_bytes, value_bytes)
        size += record_size(len(key_bytes), len(value_bytes or b""), offset_delta)
        yield None
    return size > limit


def _request(context: RequestContext, body: Any, partitions: list[OffsetCommitPartition], *, is_too_large: bool) -> OffsetCommit:
    retention_ms = getattr(body, "retention_time_ms", -1)
    return OffsetCommit(
        **context.core(),
        group_id=body.group_id,
        generation_id=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        retention_ms=None if retention_ms == -1 else retention_ms,
        partitions=tuple(partitions),
        is_too_large=is_too_large,
    )


SPEC = ApiSpec(8, "OffsetCommit", 2, 10, handle)
