"""FindCoordinator: which broker looks after a group, or a transactional id."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import KAFKAS_WORDS, ErrorCode
from kgctl.server.api.fields import endpoint_of
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each

GROUP_KEY_TYPE, TRANSACTION_KEY_TYPE = 0, 1
BATCHED_SINCE = 4
INVALID_REQUEST_MESSAGE = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
"""Kafka: Errors.INVALID_REQUEST."""


_RIGHTS = {
    GROUP_KEY_TYPE: (
        Resource.GROUP,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "Group authorization failed.",
    ),
    TRANSACTION_KEY_TYPE: (
        Resource.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Answer for one key up to version 3, for several from version 4 on."""
    if context.version < BATCHED_SINCE:
        found = _coordinator(context, getattr(body, "key_type", GROUP_KEY_TYPE), body.key)
        return {"error_message": "NONE", **found}
    coordinators = yield from each(body.coordinator_keys, lambda key: {"key": key, **_coordinator(context, body.key_type, key)})
    return {"coordinators": coordinators}


def _coordinator(context: RequestContext, key_type: int, key: str) -> dict[str, Any]:
    if key_type not in (GROUP_KEY_TYPE, TRANSACTION_KEY_TYPE):
        return _nobody(ErrorCode.INVALID_REQUEST, INVALID_REQUEST_MESSAGE)
    resource, error, message = _RIGHTS[key_type]
    if not context.may(AclOperation.DESCRIBE, resource, key):
        return _nobody(error, message if context.version < BATCHED_SINCE else "")
    broker = context.services.cluster.coordinator(key)
    if not broker.is_up:
        return _nobody(ErrorCode.COORDINATOR_NOT_AVAILABLE, KAFKAS_WORDS[ErrorCode.COORDINATOR_NOT_AVAILABLE])
    return {
        "error_code": ErrorCode.NONE,
        "node_id": broker.node_id,
        **endpoint_of(broker, context),
    }


def _nobody(error: ErrorCode, message: str) -> dict[str, Any]:
    return {"error_code": error, "error_message": message, "node_id": -1, "host": "", "port": -1}


SPEC = ApiSpec(10, "FindCoordinator", 0, 6, handle)
