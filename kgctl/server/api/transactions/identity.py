"""Who a request of a transaction comes from, and the error that its version knows."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.call import Call
from kgctl.server.producers.transactions import FENCED_SINCE, ProducerIdentity, Transaction


def transaction_of(call: Call, body: Any) -> tuple[Transaction | None, ErrorCode]:
    """The producer's transaction, or why there is none."""
    identity = ProducerIdentity(body.transactional_id, body.producer_id, body.producer_epoch)
    return known_to(call, *call.services.transactions.find(identity))


def known_to(call: Call, transaction: Transaction | None, error: ErrorCode) -> tuple[Transaction | None, ErrorCode]:
    """Versions 0 and 1 have no PRODUCER_FENCED."""
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return None, ErrorCode.INVALID_PRODUCER_EPOCH
    return transaction, error
