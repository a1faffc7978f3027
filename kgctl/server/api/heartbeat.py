"""Heartbeat of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.model.requests import Heartbeat, HeartbeatResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values


def handle(context: RequestContext, body: Any) -> Answer:
    error = context.not_coordinator(body.group_id)
    if error is not None:
        return {"error_code": error}
    request = Heartbeat(
        **context.core(),
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
    )
    return context.ask(request, render)


def render(result: HeartbeatResult) -> Values:
    return {"error_code": result.error}


SPEC = ApiSpec(12, "Heartbeat", 0, 4, handle)
