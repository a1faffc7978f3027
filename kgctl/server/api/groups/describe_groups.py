"""DescribeGroups: groups of the classic protocol."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DescribeGroups
from kgctl.model.results import DescribedGroup, DescribeGroupsResult
from kgctl.server.api.fields import GROUP_OPERATIONS, NOT_ASKED
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values


def handle(context: RequestContext, body: Any) -> Answer:
    operations = GROUP_OPERATIONS if getattr(body, "include_authorized_operations", False) else NOT_ASKED
    elsewhere = {group_id for group_id in body.groups if context.not_coordinator(group_id)}

    def render(result: DescribeGroupsResult) -> Values:
        groups = iter(result.groups)
        described = (
            DescribedGroup(group_id=group_id, error=ErrorCode.NOT_COORDINATOR) if group_id in elsewhere else next(groups)
            for group_id in body.groups
        )
        return {"groups": [_group(group, operations) for group in described]}

    here = tuple(group_id for group_id in body.groups if group_id not in elsewhere)
    return context.ask(DescribeGroups(**context.core(), group_ids=here), render)


def _group(group: DescribedGroup, operations: int) -> dict[str, Any]:
    return {
        "error_code": group.error,
        "error_message": group.error_message,
        "group_id": group.group_id,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_data,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "member_metadata": member.metadata,
                "member_assignment": member.assignment,
            }
            for member in group.members
        ],
        "authorized_operations": operations if group.error is ErrorCode.NONE else NOT_ASKED,
    }


SPEC = ApiSpec(15, "DescribeGroups", 0, 6, handle)
