"""OffsetCommit: unknown topics and partitions are answered here, the rest goes to the coordinator."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import ZERO_UUID, TopicMetadata
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition
from kgctl.model.results import PartitionErrors
from kgctl.server.api.fields import TopicErrors
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values

TOPIC_IDS_SINCE = 10


def handle(context: RequestContext, body: Any) -> Answer:
    errors = TopicErrors()
    partitions: list[OffsetCommitPartition] = []
    ids: dict[str, UUID | None] = {}
    with_ids = context.version >= TOPIC_IDS_SINCE
    not_coordinator = context.not_coordinator(body.group_id)
    for topic in body.topics:
        asked_id = topic.topic_id if with_ids else None
        known = context.services.catalog.find(None if with_ids else topic.name, (asked_id or ZERO_UUID) if with_ids else None)
        name = known.name if known is not None else ("" if with_ids else topic.name)
        ids[name] = asked_id
        for partition in topic.partitions:
            error = not_coordinator or topic_error(known, partition.partition_index, with_ids=with_ids)
            if error is ErrorCode.NONE:
                partitions.append(_to_core(name, known, partition))
            else:
                errors.add(name, asked_id, partition.partition_index, error)
    if not partitions:
        return {"topics": errors.topics()}

    def render(result: PartitionErrors) -> Values:
        errors.merge(result.partitions, ids)
        return {"topics": errors.topics()}

    return context.ask(_request(context, body, partitions), render)


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


def _request(context: RequestContext, body: Any, partitions: list[OffsetCommitPartition]) -> OffsetCommit:
    retention_ms = getattr(body, "retention_time_ms", -1)
    return OffsetCommit(
        **context.core(),
        group_id=body.group_id,
        generation_id=body.generation_id_or_member_epoch,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        retention_ms=None if retention_ms == -1 else retention_ms,
        partitions=tuple(partitions),
    )


SPEC = ApiSpec(8, "OffsetCommit", 2, 10, handle)
