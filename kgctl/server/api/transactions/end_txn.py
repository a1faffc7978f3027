"""EndTxn: commit or abort. From version 5 on (KIP-890) the producer goes on under a new epoch."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.checks import transaction_of
from kgctl.server.request_context import Answer, ApiSpec, Call, Values
from kgctl.server.transaction_ends import end_transaction
from kgctl.server.transactions import Transaction

NEW_EPOCH_SINCE = 5


def handle(call: Call, body: Any) -> Answer:
    """Answered when every marker is written."""
    transaction, error = transaction_of(call, body)
    if transaction is None:
        return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
    bump = call.version >= NEW_EPOCH_SINCE
    if not transaction.is_ongoing:
        return _nothing_to_end(call, transaction, committed=body.committed, bump=bump)
    call.services.transactions.begin_end(transaction, committed=body.committed, bump=bump)
    return end_transaction(call.services, transaction, lambda: _done(transaction, bump=bump), call.core())


def _nothing_to_end(call: Call, transaction: Transaction, *, committed: bool, bump: bool) -> Values:
    """The same end sent again is fine; so is, with KIP-890, an abort of nothing."""
    if bump and not committed:
        call.services.transactions.begin_end(transaction, committed=False, bump=True)
        call.services.transactions.finish_end(transaction)
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
