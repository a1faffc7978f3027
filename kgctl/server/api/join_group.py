"""JoinGroup."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.requests import JoinGroup, JoinGroupResult, JoinProtocol
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.traffic import TooMuchWorkError

REBALANCE_TIMEOUT_SINCE = 1

MAX_PROTOCOLS = 1_000
"""Clients have a handful of assignors, and each join compares those of all members."""


def handle(context: RequestContext, body: Any) -> Answer:
    """Parked until the join phase ends, unless the answer is clear at once."""
    error = context.group_error(AclOperation.READ, body.group_id)
    if error is not None:
        return render(JoinGroupResult(error=error, member_id=body.member_id))
    if len(body.protocols) > MAX_PROTOCOLS:
        raise TooMuchWorkError(f"a member with {len(body.protocols)} protocols")
    request = JoinGroup(
        **context.core(),
        group_id=body.group_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        protocol_type=body.protocol_type,
        protocols=tuple(JoinProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in body.protocols),
        session_timeout_ms=body.session_timeout_ms,
        rebalance_timeout_ms=body.rebalance_timeout_ms if context.version >= REBALANCE_TIMEOUT_SINCE else None,
        reason=getattr(body, "reason", None),
    )
    return context.ask(request, render)


def render(result: JoinGroupResult) -> Values:
    return {
        "error_code": result.error,
        "generation_id": result.generation_id,
        "protocol_type": result.protocol_type,
        "protocol_name": result.protocol_name,
        "leader": result.leader,
        "skip_assignment": result.skip_assignment,
        "member_id": result.member_id,
        "members": [
            {"member_id": member.member_id, "group_instance_id": member.group_instance_id, "metadata": member.metadata}
            for member in result.members
        ],
    }


SPEC = ApiSpec(11, "JoinGroup", 0, 9, handle)
