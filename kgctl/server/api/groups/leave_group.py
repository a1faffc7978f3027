"""LeaveGroup: one member up to version 2, several from version 3 on."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.requests import LeaveGroup, MemberIdentity
from kgctl.coordinator.results import LeaveGroupResult
from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import Answer, ApiSpec, Call, Values

BATCHED_SINCE = 3


def handle(call: Call, body: Any) -> Answer:
    """Answered at once."""
    error = call.not_coordinator(body.group_id)
    if error is not None:
        return {"error_code": error, "members": []}
    if call.version < BATCHED_SINCE:
        request = LeaveGroup(**call.core(), group_id=body.group_id, members=(MemberIdentity(member_id=body.member_id),))
        return call.ask(request, render_single)
    members = tuple(
        MemberIdentity(
            member_id=member.member_id, group_instance_id=member.group_instance_id, reason=getattr(member, "reason", None)
        )
        for member in body.members
    )
    return call.ask(LeaveGroup(**call.core(), group_id=body.group_id, members=members), render)


def render_single(result: LeaveGroupResult) -> Values:
    """The only member's error stands at the top level."""
    error = result.error
    if error is ErrorCode.NONE and result.members:
        error = result.members[0].error
    return {"error_code": error}


def render(result: LeaveGroupResult) -> Values:
    """One entry an identity."""
    return {
        "error_code": result.error,
        "members": [
            {"member_id": member.member_id, "group_instance_id": member.group_instance_id, "error_code": member.error}
            for member in result.members
        ],
    }


SPEC = ApiSpec(13, "LeaveGroup", 0, 5, handle)
