"""DescribeGroups: groups of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import NOT_TOLD, AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DescribedGroup, DescribedMember, DescribeGroups, DescribeGroupsResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each, waited


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Describe each group by itself, in the order of the request."""
    with_operations = getattr(body, "include_authorized_operations", False)
    answers = []
    for group_id in body.groups:
        error = context.group_error(AclOperation.DESCRIBE, group_id)
        elsewhere = DescribeGroupsResult(groups=(DescribedGroup(group_id=group_id, error=error or ErrorCode.NONE),))
        found = elsewhere if error else context.result(DescribeGroups(**context.core(), group_ids=(group_id,)))
        answers.append(found)
        yield None
    groups = []
    for answer in answers:
        (group,) = (yield from waited(answer)).groups
        groups.append(_group(context, group, (yield from each(group.members, _member)), with_operations=with_operations))
        yield None
    return {"groups": groups}


def _group(
    context: RequestContext, group: DescribedGroup, members: list[dict[str, Any]], *, with_operations: bool
) -> dict[str, Any]:
    with_operations = with_operations and group.error is ErrorCode.NONE
    return {
        "error_code": group.error,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_data,
        "members": members,
        "authorized_operations": context.operations(Resource.GROUP, group.group_id or "") if with_operations else NOT_TOLD,
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
