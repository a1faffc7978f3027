"""DeleteGroups."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DeleteGroups
from kgctl.model.results import DeleteGroupsResult
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Answer, Values


def handle(context: RequestContext, body: Any) -> Answer:
    group_ids = tuple(dict.fromkeys(body.groups_names))
    elsewhere = {group_id for group_id in group_ids if context.not_coordinator(group_id)}

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
    return context.ask(DeleteGroups(**context.core(), group_ids=here), render)


SPEC = ApiSpec(42, "DeleteGroups", 0, 2, handle)
