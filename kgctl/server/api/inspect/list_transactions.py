"""ListTransactions. Kafka: TransactionStateManager#listTransactionStates."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.re2 import RegexSyntaxError, compiled
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.transactions import STATES, Transaction


def handle(context: RequestContext, body: Any) -> Values:
    """The ids of transactions that this broker coordinates, as far as they pass every filter that is given."""
    pattern = getattr(body, "transactional_id_pattern", None)
    try:
        expression = compiled(pattern) if pattern else None
    except RegexSyntaxError:
        return {"error_code": ErrorCode.INVALID_REGULAR_EXPRESSION, "unknown_state_filters": [], "transaction_states": []}
    producer_ids, states = set(body.producer_id_filters), set(body.state_filters)
    longer_than_ms, now_ms = getattr(body, "duration_filter", -1), context.services.runtime.clock()

    def passes(entry: Transaction) -> bool:
        return (
            context.services.cluster.is_coordinator(context.broker, entry.transactional_id)
            and context.may(AclOperation.DESCRIBE, Resource.TRANSACTIONAL_ID, entry.transactional_id)
            and (not producer_ids or entry.producer_id in producer_ids)
            and (not states or entry.state in states)
            and (longer_than_ms < 0 or now_ms - (-1 if entry.last_started_ms is None else entry.last_started_ms) > longer_than_ms)
            and (expression is None or expression.matches(entry.transactional_id))
        )

    found = [_row(entry) for entry in context.services.transactions if passes(entry)]
    unknown = [state for state in body.state_filters if state not in STATES]
    return {"error_code": ErrorCode.NONE, "unknown_state_filters": unknown, "transaction_states": found}


def _row(entry: Transaction) -> Values:
    names = {"transactional_id": entry.transactional_id, "producer_id": entry.producer_id}
    return {**names, "transaction_state": entry.state}


SPEC = ApiSpec(66, "ListTransactions", 0, 2, handle)
