"""DeleteGroups."""

from __future__ import annotations

from typing import Any

from kgctl.coordinator.requests import DeleteGroups
from kgctl.coordinator.results import DeleteGroupsResult
from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import Answer, ApiSpec, Call, Values


def handle(call: Call, body: Any) -> Answer:
    """In the order of the request, each group once."""
    group_ids = tuple(dict.fromkeys(body.groups_names))
    elsewhere = {group_id for group_id in group_ids if call.not_coordinator(group_id)}

    def render(result: DeleteGroupsResult) -> Values:
        done = iter(result.groups)
        return {
            "results": [
                {
                    "group_id": group_id,
                    "error_code": ErrorCode.NOT_COORDINATOR if group_id in elsewhere else next(done)[1],
                }
                for group_id in group_ids
            ]
        }

    here = tuple(group_id for group_id in group_ids if group_id not in elsewhere)
    return call.ask(DeleteGroups(**call.core(), group_ids=here), render)


SPEC = ApiSpec(42, "DeleteGroups", 0, 2, handle)
