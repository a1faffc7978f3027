"""InitProducerId: an identity for an idempotent producer."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.call import Call
from kgctl.server.registry import ApiSpec, Values


def handle(call: Call, body: Any) -> Values:
    """A new producer id; transactional ids have no coordinator here."""
    if body.transactional_id is not None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE if body.transactional_id else ErrorCode.INVALID_REQUEST
        return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
    return {"error_code": ErrorCode.NONE, "producer_id": call.services.producers.new_id(), "producer_epoch": 0}


SPEC = ApiSpec(22, "InitProducerId", 0, 5, handle)
