"""Heartbeat of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.model.requests import Heartbeat, HeartbeatResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.responses import HeartbeatHandler
from kgctl.server.runtime import Values


def question(context: RequestContext, body: Any) -> Heartbeat:
    return Heartbeat(
        **context.core(),
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
    )


def render(result: HeartbeatResult) -> Values:
    return {"error_code": result.error}


SPEC = ApiSpec(12, "Heartbeat", 0, 4, HeartbeatHandler(question, render))
