"""AddPartitionsToTxn: one producer up to version 3, several from version 4 on (which brokers send, and may only ask)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.api.checks import known_to
from kgctl.server.pieces import Work, all_of, each
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.transactions import ProducerIdentity

BATCHED_SINCE = 4


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """All partitions of a transaction are added, or none."""
    if context.version >= BATCHED_SINCE:
        return {"results_by_transaction": (yield from all_of(_transaction(context, entry) for entry in body.transactions))}
    identity = ProducerIdentity(
        body.v3_and_below_transactional_id, body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
    )
    results = yield from _results(context, identity, body.v3_and_below_topics, verify_only=False)
    return {"results_by_topic_v3_and_below": results}


def _transaction(context: RequestContext, entry: Any) -> Work[dict[str, Any]]:
    identity = ProducerIdentity(entry.transactional_id, entry.producer_id, entry.producer_epoch)
    yield None
    results = yield from _results(context, identity, entry.topics, verify_only=entry.verify_only)
    return {"transactional_id": entry.transactional_id, "topic_results": results}


def _results(
    context: RequestContext, identity: ProducerIdentity, topics: Any, *, verify_only: bool
) -> Work[list[dict[str, Any]]]:
    exists: dict[TopicPartition, bool] = {}
    for topic in topics:
        for partition in (TopicPartition(topic.name, number) for number in topic.partitions):
            exists[partition] = context.services.catalog.has_partition(partition)
            yield None
        yield None
    errors = _errors(context, identity, exists, verify_only=verify_only)
    results = []
    for topic in topics:
        partitions = yield from each(topic.partitions, partial(_result, errors, topic.name))
        results.append({"name": topic.name, "results_by_partition": partitions})
        yield None
    return results


def _result(errors: Mapping[TopicPartition, ErrorCode], topic: str, partition: int) -> dict[str, Any]:
    return {"partition_index": partition, "partition_error_code": errors[TopicPartition(topic, partition)]}


def _errors(
    context: RequestContext, identity: ProducerIdentity, exists: Mapping[TopicPartition, bool], *, verify_only: bool
) -> dict[TopicPartition, ErrorCode]:
    transactions, partitions = context.services.transactions, list(exists)
    if not all(exists.values()):
        return {
            partition: ErrorCode.OPERATION_NOT_ATTEMPTED if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for partition, is_there in exists.items()
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
