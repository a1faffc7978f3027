"""SyncGroup."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import SyncGroup, SyncGroupResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values

PROTOCOL_SINCE = 5


def handle(context: RequestContext, body: Any) -> Answer:
    protocol_type = getattr(body, "protocol_type", None)
    protocol_name = getattr(body, "protocol_name", None)
    # both are mandatory from version 5 on, though nullable; Kafka: KafkaApis, handleSyncGroupRequest
    if context.version >= PROTOCOL_SINCE and (protocol_type is None or protocol_name is None):
        return render(SyncGroupResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    error = context.group_error(AclOperation.READ, body.group_id)
    if error is not None:
        return render(SyncGroupResult(error=error))
    request = SyncGroup(
        **context.core(),
        group_id=body.group_id,
        generation_id=body.generation_id,
        member_id=body.member_id,
        group_instance_id=getattr(body, "group_instance_id", None),
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=tuple((entry.member_id, entry.assignment) for entry in body.assignments),
    )
    return context.ask(request, render)


def render(result: SyncGroupResult) -> Values:
    return {
        "error_code": result.error,
        "protocol_type": result.protocol_type,
        "protocol_name": result.protocol_name,
        "assignment": result.assignment,
    }


SPEC = ApiSpec(14, "SyncGroup", 0, 5, handle)
