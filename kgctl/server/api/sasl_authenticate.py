"""SaslAuthenticate: the tokens of a login."""

from __future__ import annotations

import logging
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.security import AuthenticationFailed

log = logging.getLogger(__name__)


def handle(context: RequestContext, body: Any) -> Values:
    """Kafka: SaslServerAuthenticator#handleSaslToken. A login that fails ends the connection after its answer."""
    session = context.session
    if session.is_authenticated or session.login is None or not session.login.has_begun:
        message = "SaslAuthenticate request received after successful authentication"
        return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": message, "auth_bytes": b""}
    try:
        token = session.login.answer(bytes(body.auth_bytes), session)
    except AuthenticationFailed as error:
        log.warning("a login from %s failed: %s", session.client_host, error.message)
        session.is_refused = True
        return {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": error.message, "auth_bytes": b""}
    return {"error_code": ErrorCode.NONE, "error_message": None, "auth_bytes": token}


SPEC = ApiSpec(36, "SaslAuthenticate", 0, 2, handle, before_authentication=True)
