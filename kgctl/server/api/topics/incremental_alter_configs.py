"""IncrementalAlterConfigs of groups; brokers and topics take theirs from the command line or not at all."""

from __future__ import annotations

from typing import Any

from kgctl.errors import UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import UpdateGroupConfig
from kgctl.server.api.topics.config_entries import BROKER, GROUP, TOPIC
from kgctl.server.pieces import Work, each
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import EVENT_ID, Values

SET, DELETE, APPEND, SUBTRACT = range(4)
Outcome = tuple[ErrorCode, str | None]


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    responses = yield from each(body.resources, lambda resource: _result(context, resource, validate_only=body.validate_only))
    return {"responses": responses}


def _result(context: RequestContext, resource: Any, *, validate_only: bool) -> dict[str, Any]:
    error, message = _outcome(context, resource, validate_only=validate_only)
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _outcome(context: RequestContext, resource: Any, *, validate_only: bool) -> Outcome:
    if resource.resource_type in (BROKER, TOPIC):
        return ErrorCode.POLICY_VIOLATION, "Only settings of groups can be altered here."
    if resource.resource_type != GROUP:
        return ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}"
    if not resource.resource_name:
        return ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."
    configs = context.services.group_configs
    wanted = configs.of(resource.resource_name)
    for change in resource.configs:
        if change.config_operation in (APPEND, SUBTRACT):
            return ErrorCode.INVALID_CONFIG, f"Can't append to or subtract from config {change.name}: it is no list."
        if change.config_operation == DELETE:
            wanted.pop(change.name, None)
        else:
            wanted[change.name] = change.value or ""
    try:
        configs.check(wanted)
    except UsageError as error:
        return ErrorCode.INVALID_CONFIG, error.message
    if not validate_only:
        configs.put(resource.resource_name, wanted)
        context.services.runtime.tell(UpdateGroupConfig(request_id=EVENT_ID, group_id=resource.resource_name, config=wanted))
    return ErrorCode.NONE, None


SPEC = ApiSpec(44, "IncrementalAlterConfigs", 0, 1, handle)
