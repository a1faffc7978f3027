"""DescribeAcls, CreateAcls, DeleteAcls. Without an authorizer each says so. Kafka: AclApis, AclControlManager."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.server.acls import ANY, CLUSTER_NAME, Acl, AclFilter, AclPattern, Permission
from kgctl.server.api.fields import Refused, refuse, storage_failed
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values

Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)
NO_RULES: Outcome = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
"""Kafka's answer to a request in which any kind stands for several."""
OFF: Outcome = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
_NO_CLUSTER = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
_KNOWN = tuple(frozenset((ANY, *kinds)) for kinds in (Resource, AclPattern, AclOperation, Permission))
_SEVERAL = tuple(frozenset((ANY, AclPattern.MATCH)) if kinds is _KNOWN[1] else frozenset((ANY,)) for kinds in _KNOWN)


def describe(context: RequestContext, body: Any) -> Values:
    """The rules that pass the filter, each resource once."""
    if not context.services.access.is_on:
        return {"error_code": OFF[0], "error_message": "No Authorizer is configured on the broker", "resources": []}
    wanted = _filter(body)
    resources: dict[tuple[int, str, int], list[Values]] = defaultdict(list)
    for rule in context.services.access.rules:
        if wanted.matches(rule):
            resources[rule.resource, rule.name, rule.pattern].append(_entry(rule))
    rows = [
        {"resource_type": kind, "resource_name": name, "pattern_type": pattern, "acls": entries}
        for (kind, name, pattern), entries in resources.items()
    ]
    return {"error_code": ErrorCode.NONE, "error_message": "", "resources": rows}


def create(context: RequestContext, body: Any) -> Values:
    """One result a rule; whatever is right is made, together."""
    access = context.services.access
    if not access.is_on:
        return _results(OFF for _ in body.creations)
    rules = [_rule(entry) for entry in body.creations]
    if any(kind in several for rule in rules for kind, several in zip(_kinds(rule), _SEVERAL, strict=True)):
        return _results(NO_RULES for _ in rules)
    outcomes = [_problem(rule) for rule in rules]
    try:
        access.put((*access.rules, *(rule for rule, outcome in zip(rules, outcomes, strict=True) if outcome is DONE)))
    except StorageError as error:
        outcomes = [storage_failed(error) if outcome is DONE else outcome for outcome in outcomes]
    return _results(outcomes)


def delete(context: RequestContext, body: Any) -> Values:
    """One result a filter, with the rules that it took away."""
    access = context.services.access
    if not access.is_on:
        return _filter_results([(OFF, ())] * len(body.filters))
    filters = [_filter(entry) for entry in body.filters]
    outcomes = [_filter_problem(wanted) for wanted in filters]
    found = [
        [rule for rule in access.rules if outcome is DONE and wanted.matches(rule)]
        for wanted, outcome in zip(filters, outcomes, strict=True)
    ]
    gone = {rule for rules in found for rule in rules}
    try:
        access.put(rule for rule in access.rules if rule not in gone)
    except StorageError as error:
        return _filter_results([(storage_failed(error), ())] * len(filters))
    return _filter_results(list(zip(outcomes, found, strict=True)))


def _rule(entry: Any) -> Acl:
    resource, pattern = entry.resource_type, entry.resource_pattern_type
    return Acl(resource, entry.resource_name, pattern, entry.principal, entry.host, entry.operation, entry.permission_type)


def _filter(entry: Any) -> AclFilter:
    resource, name, pattern = entry.resource_type_filter, entry.resource_name_filter, entry.pattern_type_filter
    principal, host = entry.principal_filter, entry.host_filter
    return AclFilter(resource, name, pattern, principal, host, entry.operation, entry.permission_type)


def _filter_problem(wanted: AclFilter) -> Outcome:
    """Kafka: AclControlManager#validateFilter."""
    resource, pattern, operation, permission = _are_known(wanted)
    if not (resource and pattern):
        return ErrorCode.INVALID_REQUEST, "Unknown patternFilter."
    return DONE if operation and permission else (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def _are_known(rule: Acl | AclFilter) -> list[bool]:
    return [kind in known for kind, known in zip(_kinds(rule), _KNOWN, strict=True)]


def _kinds(rule: Acl | AclFilter) -> tuple[int, ...]:
    return rule.resource, rule.pattern, rule.operation, rule.permission


def _problem(rule: Acl) -> Outcome:
    """Kafka: AclApis#handleCreateAcls, AclControlManager#validateNewAcl."""
    if rule.resource == Resource.CLUSTER and rule.name != CLUSTER_NAME:
        return ErrorCode.INVALID_REQUEST, _NO_CLUSTER
    if not rule.name:
        return ErrorCode.INVALID_REQUEST, "Invalid empty resource name"
    for is_known, what in zip(_are_known(rule), ("resourceType", "patternType", "operation", "permissionType"), strict=True):
        if not is_known:
            return ErrorCode.INVALID_REQUEST, f"Invalid {what} UNKNOWN"
    return DONE


def _entry(rule: Acl) -> Values:
    return {
        "principal": rule.principal,
        "host": rule.host,
        "operation": rule.operation,
        "permission_type": rule.permission,
    }


def _results(outcomes: Iterable[Outcome]) -> Values:
    """An empty text where nothing failed, as Kafka's."""
    texts = ((code, "" if code is ErrorCode.NONE else text) for code, text in outcomes)
    return {"results": [{"error_code": code, "error_message": text} for code, text in texts]}


def _filter_results(found: Sequence[tuple[Outcome, Sequence[Acl]]]) -> Values:
    return {
        "filter_results": [
            {"error_code": code, "error_message": text, "matching_acls": [_matching(rule) for rule in rules]}
            for (code, text), rules in found
        ]
    }


def _matching(rule: Acl) -> Values:
    named = {"resource_type": rule.resource, "resource_name": rule.name, "pattern_type": rule.pattern}
    return {"error_code": ErrorCode.NONE, "error_message": None, **named, **_entry(rule)}


def _may_not_create(_context: RequestContext, body: Any, refused: Refused) -> Values:
    return _results(refused for _ in body.creations)


def _may_not_delete(_context: RequestContext, body: Any, refused: Refused) -> Values:
    return _filter_results([(refused, ())] * len(body.filters))


DESCRIBE = ApiSpec(29, "DescribeAcls", 1, 3, describe, right=ClusterRight(AclOperation.DESCRIBE, refuse))
CREATE = ApiSpec(
    *(30, "CreateAcls", 1, 3, create), runs_in_thread=lambda *_: True, right=ClusterRight(AclOperation.ALTER, _may_not_create)
)
DELETE = ApiSpec(
    *(31, "DeleteAcls", 1, 3, delete), runs_in_thread=lambda *_: True, right=ClusterRight(AclOperation.ALTER, _may_not_delete)
)
