"""Heartbeat of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.requests import Heartbeat
from kgctl.coordinator.results import HeartbeatResult
from kgctl.server.request_context import Answer, ApiSpec, Call, Values


def handle(call: Call, body: Any) -> Answer:
    """Answered at once."""
    error = call.not_coordinator(body.group_id)
    if error is not None:
        return {"error_code": error}
    request = Heartbeat(
        **call.core(),
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
    )
    return call.ask(request, render)


def render(result: HeartbeatResult) -> Values:
    """Only an error code."""
    return {"error_code": result.error}


SPEC = ApiSpec(12, "Heartbeat", 0, 4, handle)
