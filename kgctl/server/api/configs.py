"""DescribeConfigs and IncrementalAlterConfigs: of brokers, topics and groups; only those of groups can be altered here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from kgctl.errors import StorageError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import UpdateGroupConfig
from kgctl.server.api.fields import storage_failed
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import EVENT_ID, Values
from kgctl.server.traffic import Work, each

BOOLEAN, STRING, INT, LIST = 1, 2, 3, 7
STATIC_BROKER_CONFIG, DEFAULT_CONFIG, GROUP_CONFIG = 4, 5, 8


def entries_of(config: Any, given: set[str], source: int, *, read_only: bool) -> list[dict[str, Any]]:
    """One entry a field that has a ``name`` of Kafka's; those in ``given`` come from ``source``, the others are defaults."""
    return [
        entry(
            item.metadata["name"],
            getattr(config, item.name),
            source if item.metadata["name"] in given else DEFAULT_CONFIG,
            read_only=read_only,
        )
        for item in fields(config)
    ]


def entry(name: str, value: Any, source: int, *, read_only: bool) -> dict[str, Any]:
    """Return one config with its value as text."""
    return {
        "name": name,
        "value": _text(value),
        "read_only": read_only,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": _type(value),
        "documentation": None,
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _type(value: Any) -> int:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INT
    return LIST if isinstance(value, tuple) else STRING


TOPIC, BROKER, GROUP = 2, 4, 32


Described = tuple[ErrorCode, str, list[dict[str, Any]]]


def describe_configs(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    results = []
    for resource in body.resources:
        result = _described(context, resource)
        results.append(result)
        yield from each(result["configs"], str)
        yield None
    return {"results": results}


def _described(context: RequestContext, resource: Any) -> dict[str, Any]:
    describe = _KINDS.get(resource.resource_type)
    if describe is None:
        outcome: Described = (ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource.resource_type}", [])
    else:
        outcome = describe(context, resource.resource_name)
    error, message, configs = outcome
    wanted = resource.configuration_keys
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "configs": [config for config in configs if wanted is None or config["name"] in wanted],
    }


def _broker(context: RequestContext, name: str) -> Described:
    if name and name not in {str(broker.node_id) for broker in context.services.cluster.brokers}:
        return (
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {context.broker.node_id} or empty string, but got {name}",
            [],
        )
    given = set(context.services.given_config)
    configs = entries_of(context.services.group_configs.broker, given, STATIC_BROKER_CONFIG, read_only=True)
    own = entries_of(context.services.config, given, STATIC_BROKER_CONFIG, read_only=True)
    return ErrorCode.NONE, "", own + configs


def _topic(context: RequestContext, name: str) -> Described:
    if context.services.catalog.get(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", []
    policy = "compact" if name == OFFSETS_TOPIC else "delete"
    values = {"cleanup.policy": policy, "retention.ms": -1, "max.message.bytes": context.services.config.message_max_bytes}
    return ErrorCode.NONE, "", [entry(key, value, DEFAULT_CONFIG, read_only=True) for key, value in values.items()]


def _group(context: RequestContext, name: str) -> Described:
    if not name:
        return ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.", []
    own = context.services.group_configs.of(name)
    config = context.services.group_configs.check(own)
    return ErrorCode.NONE, "", entries_of(config, set(own), GROUP_CONFIG, read_only=False)


_KINDS = {BROKER: _broker, TOPIC: _topic, GROUP: _group}

DESCRIBE_CONFIGS = ApiSpec(32, "DescribeConfigs", 1, 4, describe_configs)


SET, DELETE, APPEND, SUBTRACT = range(4)
Altered = tuple[ErrorCode, str | None]


def alter_configs(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    responses = yield from each(body.resources, lambda resource: _altered(context, resource, validate_only=body.validate_only))
    return {"responses": responses}


def _altered(context: RequestContext, resource: Any, *, validate_only: bool) -> dict[str, Any]:
    error, message = _outcome(context, resource, validate_only=validate_only)
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def _outcome(  # noqa: PLR0911 - one answer a reason
    context: RequestContext, resource: Any, *, validate_only: bool
) -> Altered:
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
        try:
            configs.put(resource.resource_name, wanted)
        except StorageError as error:
            return storage_failed(error)
        context.services.runtime.tell(UpdateGroupConfig(request_id=EVENT_ID, group_id=resource.resource_name, config=wanted))
    return ErrorCode.NONE, None


INCREMENTAL_ALTER_CONFIGS = ApiSpec(44, "IncrementalAlterConfigs", 0, 1, alter_configs)
