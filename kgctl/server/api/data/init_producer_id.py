"""InitProducerId: an identity for an idempotent or a transactional producer."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.transaction_ends import abort
from kgctl.server.transactions import ProducerIdentity

FENCED_SINCE = 4


def handle(context: RequestContext, body: Any) -> Values:
    """A new producer id, or the next epoch of a transactional id, whose earlier producer is fenced."""
    if body.transactional_id is None:
        return {"error_code": ErrorCode.NONE, "producer_id": context.services.producers.new_id(), "producer_epoch": 0}
    transactions = context.services.transactions
    timeout_ms = body.transaction_timeout_ms
    identity = ProducerIdentity(body.transactional_id, getattr(body, "producer_id", -1), getattr(body, "producer_epoch", -1))
    error = transactions.init_error(identity, timeout_ms)
    if error is not ErrorCode.NONE:
        return _refused(context, error)
    known = transactions.get(body.transactional_id)
    if known is not None and known.is_ongoing:
        abort(context.services, known)  # as Kafka does before it looks at the epoch: a fenced producer ends what is open, too
    transaction = transactions.init(identity, timeout_ms)
    if transaction is None:
        return _refused(context, ErrorCode.PRODUCER_FENCED)
    return {"error_code": ErrorCode.NONE, "producer_id": transaction.producer_id, "producer_epoch": transaction.epoch}


def _refused(context: RequestContext, error: ErrorCode) -> Values:
    if error is ErrorCode.PRODUCER_FENCED and context.version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return {"error_code": error, "producer_id": -1, "producer_epoch": -1}


SPEC = ApiSpec(22, "InitProducerId", 0, 5, handle)
