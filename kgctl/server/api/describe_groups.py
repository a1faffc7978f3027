"""DescribeGroups: groups of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DescribedGroup, DescribedMember, DescribeGroups, DescribeGroupsResult
from kgctl.server.api.fields import NOT_ASKED, group_operations
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Describe each group by itself, in the order of the request."""
    operations = group_operations(context.profile) if getattr(body, "include_authorized_operations", False) else NOT_ASKED
    answers = []
    for group_id in body.groups:
        error = context.not_coordinator(group_id)
        elsewhere = DescribeGroupsResult(groups=(DescribedGroup(group_id=group_id, error=error or ErrorCode.NONE),))
        found = elsewhere if error else context.result(DescribeGroups(**context.core(), group_ids=(group_id,)))
        answers.append(found)
        yield None
    groups = []
    for answer in answers:
        (group,) = (yield from waited(answer)).groups
        groups.append(_group(group, (yield from each(group.members, _member)), operations))
        yield None
    return {"groups": groups}


def _group(group: DescribedGroup, members: list[dict[str, Any]], operations: int) -> dict[str, Any]:
    return {
        "error_code": group.error,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_data,
        "members": members,
        "authorized_operations": operations if group.error is ErrorCode.NONE else NOT_ASKED,
    }


def _member(member: DescribedMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": member.metadata,
        "member_assignment": member.assignment,
    }


SPEC = ApiSpec(15, "DescribeGroups", 0, 6, handle)
