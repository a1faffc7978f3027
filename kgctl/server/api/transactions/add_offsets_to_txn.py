"""AddOffsetsToTxn: the group's offsets belong to the transaction."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.checks import transaction_of
from kgctl.server.request_context import ApiSpec, Call, Values


def handle(call: Call, body: Any) -> Values:
    """What is added is the partition of ``__consumer_offsets`` that the group's commits go to."""
    transaction, error = transaction_of(call, body)
    if transaction is not None:
        partition = call.services.cluster.offsets_partition(body.group_id)
        call.services.transactions.add(transaction, [partition], call.services.runtime.clock())
    return {"error_code": error}


SPEC = ApiSpec(25, "AddOffsetsToTxn", 0, 4, handle)
