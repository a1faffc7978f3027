"""TxnOffsetCommit: offsets that count when the transaction does."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.model.requests import OffsetCommitPartition, TxnOffsetCommit
from kgctl.model.results import PartitionErrors
from kgctl.server.api.checks import transaction_of
from kgctl.server.api.fields import TopicErrors
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values

ABORTABLE_SINCE = 4
"""From this version on a client knows that there are errors after which it has to abort."""
IMPLICIT_SINCE = 5
"""From this version on (KIP-890) the group need not have been added to the transaction before."""


def handle(context: RequestContext, body: Any) -> Answer:
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
    if not partitions:
        return {"topics": errors.topics()}

    def render(result: PartitionErrors) -> Values:
        errors.merge(result.partitions, {})
        return {"topics": errors.topics()}

    error = context.not_coordinator(body.group_id) or _transaction_error(context, body)
    if error is not ErrorCode.NONE:
        names = [TopicPartition(partition.topic, partition.partition) for partition in partitions]
        return render(PartitionErrors(partitions=tuple((name, error) for name in names)))
    return context.ask(_request(context, body, partitions), render)


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


def _request(context: RequestContext, body: Any, partitions: list[OffsetCommitPartition]) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        **context.core(),
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id=getattr(body, "generation_id", -1),
        member_id=getattr(body, "member_id", ""),
        group_instance_id=getattr(body, "group_instance_id", None),
        partitions=tuple(partitions),
    )


SPEC = ApiSpec(28, "TxnOffsetCommit", 0, 5, handle)
