"""SaslHandshake: which mechanism a login is to have. From version 1 on tokens come in SaslAuthenticate, before as they are."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.security import conversation

WRAPPED_SINCE = 1


def handle(context: RequestContext, body: Any) -> Values:
    """Kafka: SaslServerAuthenticator#handleHandshakeRequest."""
    session = context.session
    if session.is_authenticated or session.login is None:
        return {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "mechanisms": []}
    mechanisms = list(session.login.mechanisms)
    if body.mechanism not in mechanisms:
        return {"error_code": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "mechanisms": mechanisms}
    session.login.begin(conversation(body.mechanism, session.login.credentials), is_raw=context.version < WRAPPED_SINCE)
    return {"error_code": ErrorCode.NONE, "mechanisms": mechanisms}


SPEC = ApiSpec(17, "SaslHandshake", 0, 1, handle, before_authentication=True)
