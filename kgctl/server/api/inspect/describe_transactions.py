"""DescribeTransactions. Kafka: TransactionCoordinator#handleDescribeTransactions."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each
from kgctl.server.transactions import Transaction


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result an id, in the order of the request."""
    return {"transaction_states": (yield from each(body.transactional_ids, partial(_described, context)))}


def _described(context: RequestContext, name: str) -> Values:
    entry = context.services.transactions.get(name)
    if not context.may(AclOperation.DESCRIBE, Resource.TRANSACTIONAL_ID, name):
        return {"error_code": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional_id": name}
    if not name:
        return {"error_code": ErrorCode.INVALID_REQUEST, "transactional_id": name}
    if not context.services.cluster.is_coordinator(context.broker, name):
        return {"error_code": ErrorCode.NOT_COORDINATOR, "transactional_id": name}
    return (
        {"error_code": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "transactional_id": name} if entry is None else _row(context, entry)
    )


def _row(context: RequestContext, entry: Transaction) -> Values:
    partitions = defaultdict(list)
    for partition in sorted(entry.partitions):
        partitions[partition.topic].append(partition.partition)
    seen = {topic for topic in partitions if context.may(AclOperation.DESCRIBE, Resource.TOPIC, topic)}
    return {
        "error_code": ErrorCode.NONE,
        "transactional_id": entry.transactional_id,
        "transaction_state": entry.state,
        "transaction_timeout_ms": entry.timeout_ms,
        "transaction_start_time_ms": -1 if entry.last_started_ms is None else entry.last_started_ms,
        "producer_id": entry.producer_id,
        "producer_epoch": entry.epoch,
        "topics": [{"topic": topic, "partitions": indexes} for topic, indexes in partitions.items() if topic in seen],
    }


SPEC = ApiSpec(65, "DescribeTransactions", 0, 0, handle)
