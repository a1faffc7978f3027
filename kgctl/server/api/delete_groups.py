"""DeleteGroups."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import DeleteGroups
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import UNITS_A_PIECE, Work, each, waited

GROUPS_A_PIECE = 50


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Each group once. Some at a time reach the coordinator, which takes each piece in Kafka's order."""
    group_ids = list(dict.fromkeys(body.groups_names))
    answers: list[Any] = []
    errors: dict[str, ErrorCode] = {}
    for start in range(0, len(group_ids), GROUPS_A_PIECE):
        some = group_ids[start : start + GROUPS_A_PIECE]
        refused = {group_id: error for group_id in some if (error := context.group_error(AclOperation.DELETE, group_id))}
        errors |= refused
        piece = tuple(group_id for group_id in some if group_id not in refused)
        answers.append(context.result(DeleteGroups(**context.core(), group_ids=piece)))
        yield from each(range(UNITS_A_PIECE), int)  # deleting is dear: others have the loop after each piece
    for answer in answers:
        errors.update((yield from waited(answer)).groups)
    results = yield from each(group_ids, lambda group_id: _result(group_id, errors[group_id]))
    return {"results": results}


def _result(group_id: str, error: ErrorCode) -> dict[str, Any]:
    return {"group_id": group_id, "error_code": error}


SPEC = ApiSpec(42, "DeleteGroups", 0, 2, handle)
