"""DescribeClientQuotas. Kafka: ClientQuotasImage#describe."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.server.quotas import CLIENT, IP, USER, Entity
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values

EXACT, DEFAULT, SPECIFIED = range(3)
NAMES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}

Refused = tuple[ErrorCode, str]


def handle(context: RequestContext, body: Any) -> Values:
    """The entities that pass every part of the filter; with ``strict`` those alone that have no other part."""
    problem = _problem(body.components)
    if problem is not None:
        return {"error_code": problem[0], "error_message": problem[1], "entries": None}
    found = [row for row in context.services.quotas if _matches(row[0], body)]
    return {"error_code": ErrorCode.NONE, "error_message": "", "entries": [_row(*row) for row in found]}


def _problem(components: Any) -> Refused | None:
    seen: set[str] = set()
    for each in components:
        problem = _component_problem(each, is_again=each.entity_type in seen)
        if problem is not None:
            return problem
        seen.add(each.entity_type)
    if IP in seen and len(seen) > 1:
        text = "IP filter component should not be used with user or clientId filter component."
        return ErrorCode.INVALID_REQUEST, f"Invalid entity filter component combination. {text}"
    return None


def _component_problem(component: Any, *, is_again: bool) -> Refused | None:
    kind, how = component.entity_type, component.match_type
    if not kind:
        return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
    if is_again:
        return ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
    if kind not in (USER, CLIENT, IP):
        return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
    wrong = _match_problem(how, component.match)
    return None if wrong is None else (ErrorCode.INVALID_REQUEST, wrong)


def _match_problem(how: int, match: str | None) -> str | None:
    if how not in NAMES:
        return f"Unknown match type {how}"
    if how == EXACT and match is None:
        return f"Request specified {NAMES[how]}, but set match string to null."
    if how != EXACT and match is not None:
        return f"Request specified {NAMES[how]}, but also specified a match string."
    return None


def _matches(entity: Entity, body: Any) -> bool:
    kinds = dict(entity)
    return not (body.strict and len(kinds) != len(body.components)) and all(
        each.entity_type in kinds and (each.match_type == SPECIFIED or kinds[each.entity_type] == each.match)
        for each in body.components
    )


def _row(entity: Entity, values: dict[str, float]) -> Values:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "values": [{"key": name, "value": value} for name, value in sorted(values.items())],
    }


def _no_right(_context: RequestContext, _body: Any, refused: Refused) -> Values:
    return {"error_code": refused[0], "error_message": None, "entries": None}


SPEC = ApiSpec(48, "DescribeClientQuotas", 0, 1, handle, right=ClusterRight(AclOperation.DESCRIBE_CONFIGS, _no_right))
