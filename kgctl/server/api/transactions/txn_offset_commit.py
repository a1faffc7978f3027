"""TxnOffsetCommit: offsets that count when the transaction does."""

from __future__ import annotations

from functools import partial
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import OffsetCommitPartition, TxnOffsetCommit
from kgctl.server.api.checks import transaction_of
from kgctl.server.api.fields import TopicErrors
from kgctl.server.api.groups.offset_commit import fills_more_than_a_batch, in_pieces
from kgctl.server.pieces import Work
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

ABORTABLE_SINCE = 4
"""From this version on a client knows that there are errors after which it has to abort."""
IMPLICIT_SINCE = 5
"""From this version on (KIP-890) the group need not have been added to the transaction before."""


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Unknown topics and partitions are answered here, as for OffsetCommit."""
    errors = TopicErrors()
    partitions: list[OffsetCommitPartition] = []
    for topic in body.topics:
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if context.services.catalog.has_partition(partition):
                partitions.append(_to_core(partition, entry))
            else:
                errors.add(topic.name, None, entry.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            yield None
        yield None
    if not partitions:
        return {"topics": errors.topics()}
    error = context.not_coordinator(body.group_id) or _transaction_error(context, body)
    results: list[tuple[TopicPartition, ErrorCode]]
    if error is not ErrorCode.NONE:
        results = [(TopicPartition(partition.topic, partition.partition), error) for partition in partitions]
    else:
        too_large = yield from fills_more_than_a_batch(context, body.group_id, partitions)
        results = yield from in_pieces(context, partitions, partial(_request, context, body, is_too_large=too_large))
    yield from errors.merge(results, {})
    return {"topics": errors.topics()}


def _transaction_error(context: RequestContext, body: Any) -> ErrorCode:
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    transaction, error = transaction_of(context, body)
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
    partition = context.services.cluster.offsets_partition(body.group_id)
    if partition in transaction.partitions:
        return ErrorCode.NONE
    if context.version < IMPLICIT_SINCE:
        return ErrorCode.INVALID_TXN_STATE if context.version < ABORTABLE_SINCE else ErrorCode.TRANSACTION_ABORTABLE
    context.services.transactions.add(transaction, [partition], context.services.runtime.clock())
    return ErrorCode.NONE


def _to_core(partition: TopicPartition, entry: Any) -> OffsetCommitPartition:
    return OffsetCommitPartition(
        topic=partition.topic,
        partition=partition.partition,
        offset=entry.committed_offset,
        leader_epoch=getattr(entry, "committed_leader_epoch", -1),
        metadata=entry.committed_metadata,
    )


def _request(
    context: RequestContext, body: Any, partitions: list[OffsetCommitPartition], *, is_too_large: bool
) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        **context.core(),
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id=getattr(body, "generation_id", -1),
        member_id=getattr(body, "member_id", ""),
        group_instance_id=getattr(body, "group_instance_id", None),
        partitions=tuple(partitions),
        is_too_large=is_too_large,
    )


SPEC = ApiSpec(28, "TxnOffsetCommit", 0, 5, handle)
