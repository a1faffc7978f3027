"""ListGroups: the groups that the asked broker coordinates."""

from __future__ import annotations

from functools import partial
from typing import Any

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ListGroups
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Filters by state from version 4 on, by type from version 5 on."""
    request = ListGroups(
        **context.core(),
        states_filter=tuple(getattr(body, "states_filter", ())),
        types_filter=tuple(getattr(body, "types_filter", ())),
    )
    runtime = context.services.runtime
    runtime.fire_due()
    groups = []
    sees_all = context.may(AclOperation.DESCRIBE, Resource.CLUSTER)
    error = context.not_coordinator if sees_all else partial(context.group_error, AclOperation.DESCRIBE)
    for group in runtime.core.listed_groups(request):
        yield None
        if error(group.group_id) is None:
            groups.append(
                {
                    "group_id": group.group_id,
                    "protocol_type": group.protocol_type,
                    "group_state": group.state,
                    "group_type": group.type,
                }
            )
    return {"error_code": ErrorCode.NONE, "groups": groups}


SPEC = ApiSpec(16, "ListGroups", 0, 5, handle)
