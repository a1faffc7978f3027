"""AlterClientQuotas: each entity for itself, all that are right together. Kafka: ClientQuotaControlManager."""

from __future__ import annotations

from typing import Any

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import NO_RIGHT, Refused, storage_failed
from kgctl.server.quotas import Entity, entity_of, entity_problem, value_problem
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values

Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)


def handle(context: RequestContext, body: Any) -> Values:
    """One result an entity."""
    outcomes: dict[Entity, Outcome] = {}
    changes: dict[Entity, dict[str, float | None]] = {}
    for entry in body.entries:
        entity = entity_of((each.entity_type, each.entity_name) for each in entry.entity)
        problem = _problem(entity, entry.ops, is_again=entity in outcomes)
        outcomes[entity] = DONE if problem is None else (ErrorCode.INVALID_REQUEST, problem)
        if problem is None:
            changes[entity] = {each.key: None if each.remove else each.value for each in entry.ops}
    if changes and not body.validate_only:
        try:
            context.services.quotas.put(changes)
        except StorageError as error:
            outcomes |= dict.fromkeys(changes, storage_failed(error))
    return {"entries": [_result(entity, outcome) for entity, outcome in outcomes.items()]}


def _problem(entity: Entity, operations: Any, *, is_again: bool) -> str | None:
    keys = [each.key for each in operations]
    if is_again or len(set(keys)) < len(keys):
        named = ", ".join(f"{kind}={name}" for kind, name in entity)
        return f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"
    problem = entity_problem(entity)
    wrong = (value_problem(entity, each.key, each.value) for each in operations if problem is None and not each.remove)
    return problem or next((each for each in wrong if each is not None), None)


def _result(entity: Entity, outcome: Outcome) -> Values:
    named = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
    return {"error_code": outcome[0], "error_message": outcome[1], "entity": named}


def _no_right(_context: RequestContext, body: Any, _: Refused) -> Values:
    entities = [entity_of((each.entity_type, each.entity_name) for each in entry.entity) for entry in body.entries]
    return {"entries": [_result(entity, NO_RIGHT[Resource.CLUSTER]) for entity in entities]}


SPEC = ApiSpec(
    *(49, "AlterClientQuotas", 0, 1, handle),
    runs_in_thread=lambda *_: True,
    right=ClusterRight(AclOperation.ALTER_CONFIGS, _no_right),
)
