"""ShareAcknowledge (KIP-932)."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import unsupported
from kgctl.server.api.share.acknowledging import (
    ShareLeaders,
    acknowledge,
    by_topic,
    cannot_tell,
    lock_timeout_ms,
    manager_of,
    named,
    refusal,
)
from kgctl.server.request_context import SHARE_VERSION, ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.share.manager import WholeRequestFailed
from kgctl.server.share.sessions import FINAL_EPOCH, SessionKey, SessionRefused
from kgctl.server.traffic import Work


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """With the last epoch of a session it ends, and what the member has still acquired is there for others."""
    error = refusal(context, body)
    if error is not None:
        return {"error_code": error}
    manager, who = manager_of(context), SessionKey(body.group_id, body.member_id)
    try:
        manager.sessions.acknowledges(who, body.share_session_epoch)
        entries = yield from named(context, body.topics)
        if cannot_tell(context, [name.topic for name, _ in entries]):
            return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}
        results = yield from (yield from acknowledge(context, body, entries)).end()
    except (SessionRefused, WholeRequestFailed) as refused:
        return {"error_code": refused.error}
    if body.share_session_epoch == FINAL_EPOCH:
        manager.release_session(who)
    leaders, answers = ShareLeaders(context), {}
    for partition, failure in results.items():
        error = ErrorCode.NONE if failure is None else failure.error
        answers[partition] = {
            "error_code": error,
            "error_message": None if failure is None else failure.message,
            "current_leader": leaders.of(partition, error),
        }
        yield None
    return {
        "error_code": ErrorCode.NONE,
        "acquisition_lock_timeout_ms": lock_timeout_ms(context, body.group_id),
        "responses": by_topic(answers),
        "node_endpoints": leaders.endpoints(),
    }


SPEC = ApiSpec(79, "ShareAcknowledge", 1, 2, handle, feature=SHARE_VERSION, when_off=unsupported)
