"""LeaveGroup: one member up to version 2, several from version 3 on."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import LeaveGroup, MemberIdentity
from kgctl.model.results import LeaveGroupResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values

BATCHED_SINCE = 3


def handle(context: RequestContext, body: Any) -> Answer:
    error = context.not_coordinator(body.group_id)
    if error is not None:
        return {"error_code": error, "members": []}
    if context.version < BATCHED_SINCE:
        request = LeaveGroup(**context.core(), group_id=body.group_id, members=(MemberIdentity(member_id=body.member_id),))
        return context.ask(request, render_single)
    members = tuple(
        MemberIdentity(
            member_id=member.member_id, group_instance_id=member.group_instance_id, reason=getattr(member, "reason", None)
        )
        for member in body.members
    )
    return context.ask(LeaveGroup(**context.core(), group_id=body.group_id, members=members), render)


def render_single(result: LeaveGroupResult) -> Values:
    """The only member's error stands at the top level."""
    error = result.error
    if error is ErrorCode.NONE and result.members:
        error = result.members[0].error
    return {"error_code": error}


def render(result: LeaveGroupResult) -> Values:
    return {
        "error_code": result.error,
        "members": [
            {"member_id": member.member_id, "group_instance_id": member.group_instance_id, "error_code": member.error}
            for member in result.members
        ],
    }


SPEC = ApiSpec(13, "LeaveGroup", 0, 5, handle)
