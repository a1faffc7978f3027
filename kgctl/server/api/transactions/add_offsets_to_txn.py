"""AddOffsetsToTxn: the group's offsets belong to the transaction."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.checks import transaction_of
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values


def handle(context: RequestContext, body: Any) -> Values:
    """What is added is the partition of ``__consumer_offsets`` that the group's commits go to."""
    transaction, error = transaction_of(context, body)
    if transaction is not None:
        partition = context.services.cluster.offsets_partition(body.group_id)
        context.services.transactions.add(transaction, [partition], context.services.runtime.clock())
    return {"error_code": error}


SPEC = ApiSpec(25, "AddOffsetsToTxn", 0, 4, handle)
