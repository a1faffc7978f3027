"""SaslHandshake and SaslAuthenticate: which mechanism a login is to have, and its tokens.

From version 1 of SaslHandshake on tokens come in SaslAuthenticate, before as they are.
"""

from __future__ import annotations

import logging
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.security import AuthenticationFailed, conversation

WRAPPED_SINCE = 1


def sasl_handshake(context: RequestContext, body: Any) -> Values:
    """Kafka: SaslServerAuthenticator#handleHandshakeRequest."""
    session = context.session
    if session.is_authenticated or session.login is None:
        return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
    mechanisms = list(session.login.mechanisms)
    if body.mechanism not in mechanisms:
        return {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": mechanisms}
    talk = conversation(body.mechanism, session.login.credentials, session.login.is_right)
    session.login.begin(talk, is_raw=context.version < WRAPPED_SINCE)
    return {"error_code": ErrorCode.NONE, "mechanisms": mechanisms}


HANDSHAKE = ApiSpec(17, "SaslHandshake", 0, 1, sasl_handshake, before_authentication=True)


log = logging.getLogger(__name__)


def sasl_authenticate(context: RequestContext, body: Any) -> Values:
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


AUTHENTICATE = ApiSpec(36, "SaslAuthenticate", 0, 2, sasl_authenticate, before_authentication=True)
