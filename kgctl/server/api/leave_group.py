"""LeaveGroup: one member up to version 2, several from version 3 on."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import LeaveGroup, LeaveGroupResult, MemberIdentity, MemberLeaveResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.traffic import UNITS_A_PIECE, Work, each, waited

BATCHED_SINCE = 3


def handle(context: RequestContext, body: Any) -> Work[Answer]:
    """Some members after the other, each piece as one request."""
    error = context.group_error(AclOperation.READ, body.group_id)
    if error is not None:
        return {"error_code": error, "members": []}
    if context.version < BATCHED_SINCE:
        request = LeaveGroup(**context.core(), group_id=body.group_id, members=(MemberIdentity(member_id=body.member_id),))
        return context.ask(request, render_single)
    members = yield from each(body.members, _identity)
    answers = []
    for start in range(0, max(len(members), 1), UNITS_A_PIECE):
        piece = tuple(members[start : start + UNITS_A_PIECE])
        answers.append(context.result(LeaveGroup(**context.core(), group_id=body.group_id, members=piece)))
        for _ in piece:
            yield None
    left: list[dict[str, Any]] = []
    for answer in answers:
        result = yield from waited(answer)
        error = error or result.error
        left += yield from each(result.members, _left)
    return {"error_code": error, "members": left}


def _identity(member: Any) -> MemberIdentity:
    return MemberIdentity(
        member_id=member.member_id, group_instance_id=member.group_instance_id, reason=getattr(member, "reason", None)
    )


def render_single(result: LeaveGroupResult) -> Values:
    """The only member's error stands at the top level."""
    error = result.error
    if error is ErrorCode.NONE and result.members:
        error = result.members[0].error
    return {"error_code": error}


def _left(member: MemberLeaveResult) -> dict[str, Any]:
    return {"member_id": member.member_id, "group_instance_id": member.group_instance_id, "error_code": member.error}


SPEC = ApiSpec(13, "LeaveGroup", 0, 5, handle)
