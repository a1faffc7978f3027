"""ListGroups: the groups that the asked broker coordinates."""

from __future__ import annotations

from typing import Any

from kgctl.model.requests import ListGroups
from kgctl.model.results import ListGroupsResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values


def handle(context: RequestContext, body: Any) -> Answer:
    """Filters by state from version 4 on, by type from version 5 on."""

    def render(result: ListGroupsResult) -> Values:
        return {
            "error_code": result.error,
            "groups": [
                {
                    "group_id": group.group_id,
                    "protocol_type": group.protocol_type,
                    "group_state": group.state,
                    "group_type": group.type,
                }
                for group in result.groups
                if context.not_coordinator(group.group_id) is None
            ],
        }

    request = ListGroups(
        **context.core(),
        states_filter=tuple(getattr(body, "states_filter", ())),
        types_filter=tuple(getattr(body, "types_filter", ())),
    )
    return context.ask(request, render)


SPEC = ApiSpec(16, "ListGroups", 0, 5, handle)
