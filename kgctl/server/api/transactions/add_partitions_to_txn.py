"""AddPartitionsToTxn: one producer up to version 3, several from version 4 on (which brokers send, and may only ask)."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.server.api.checks import known_to
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.transactions import ProducerIdentity

BATCHED_SINCE = 4


def handle(context: RequestContext, body: Any) -> Values:
    """All partitions of a transaction are added, or none."""
    if context.version >= BATCHED_SINCE:
        return {"results_by_transaction": [_transaction(context, entry) for entry in body.transactions]}
    identity = ProducerIdentity(
        body.v3_and_below_transactional_id, body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
    )
    return {"results_by_topic_v3_and_below": _results(context, identity, body.v3_and_below_topics, verify_only=False)}


def _transaction(context: RequestContext, entry: Any) -> dict[str, Any]:
    identity = ProducerIdentity(entry.transactional_id, entry.producer_id, entry.producer_epoch)
    results = _results(context, identity, entry.topics, verify_only=entry.verify_only)
    return {"transactional_id": entry.transactional_id, "topic_results": results}


def _results(context: RequestContext, identity: ProducerIdentity, topics: Any, *, verify_only: bool) -> list[dict[str, Any]]:
    partitions = [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]
    errors = _errors(context, identity, partitions, verify_only=verify_only)
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {"partition_index": partition, "partition_error_code": errors[TopicPartition(topic.name, partition)]}
                for partition in topic.partitions
            ],
        }
        for topic in topics
    ]


def _errors(
    context: RequestContext, identity: ProducerIdentity, partitions: list[TopicPartition], *, verify_only: bool
) -> dict[TopicPartition, ErrorCode]:
    catalog, transactions = context.services.catalog, context.services.transactions
    if not all(catalog.has_partition(partition) for partition in partitions):
        return {
            partition: ErrorCode.OPERATION_NOT_ATTEMPTED
            if catalog.has_partition(partition)
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for partition in partitions
        }
    transaction, error = known_to(context, *transactions.find(identity))
    if transaction is None:
        return dict.fromkeys(partitions, error)
    if verify_only:
        return {
            partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }
    transactions.add(transaction, partitions, context.services.runtime.clock())
    return dict.fromkeys(partitions, ErrorCode.NONE)


SPEC = ApiSpec(24, "AddPartitionsToTxn", 0, 5, handle)
