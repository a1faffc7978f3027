"""EndTxn: commit or abort. From version 5 on (KIP-890) the producer goes on under a new epoch."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.checks import transaction_of
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.transaction_ends import end_transaction
from kgctl.server.transactions import Transaction

NEW_EPOCH_SINCE = 5


def handle(context: RequestContext, body: Any) -> Answer:
    transaction, error = transaction_of(context, body)
    if transaction is None:
        return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
    bump = context.version >= NEW_EPOCH_SINCE
    if not transaction.is_ongoing:
        return _nothing_to_end(context, transaction, committed=body.committed, bump=bump)
    context.services.transactions.begin_end(transaction, committed=body.committed, bump=bump)
    return end_transaction(context.services, transaction, lambda: _done(transaction, bump=bump), context.core())


def _nothing_to_end(context: RequestContext, transaction: Transaction, *, committed: bool, bump: bool) -> Values:
    """The same end sent again is fine; so is, with KIP-890, an abort of nothing."""
    if bump and not committed:
        context.services.transactions.begin_end(transaction, committed=False, bump=True)
        context.services.transactions.finish_end(transaction)
        return _done(transaction, bump=True)
    if not bump and transaction.last_outcome is committed:
        return _done(transaction, bump=False)
    return {"error_code": ErrorCode.INVALID_TXN_STATE, "producer_id": -1, "producer_epoch": -1}


def _done(transaction: Transaction, *, bump: bool) -> Values:
    return {
        "error_code": ErrorCode.NONE,
        "producer_id": transaction.producer_id if bump else -1,
        "producer_epoch": transaction.epoch if bump else -1,
    }


SPEC = ApiSpec(26, "EndTxn", 0, 5, handle)
