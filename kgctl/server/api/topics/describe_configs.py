"""DescribeConfigs of brokers, topics and groups."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.topics.config_entries import (
    BROKER,
    DEFAULT_CONFIG,
    GROUP,
    GROUP_CONFIG,
    STATIC_BROKER_CONFIG,
    TOPIC,
    entries_of,
    entry,
)
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.pieces import Work, each
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values

Outcome = tuple[ErrorCode, str, list[dict[str, Any]]]


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    results = []
    for resource in body.resources:
        result = _result(context, resource)
        results.append(result)
        yield from each(result["configs"], str)
        yield None
    return {"results": results}


def _result(context: RequestContext, resource: Any) -> dict[str, Any]:
    describe = _KINDS.get(resource.resource_type)
    if describe is None:
        outcome: Outcome = (ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource.resource_type}", [])
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


def _broker(context: RequestContext, name: str) -> Outcome:
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


def _topic(context: RequestContext, name: str) -> Outcome:
    if context.services.catalog.get(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", []
    policy = "compact" if name == OFFSETS_TOPIC else "delete"
    values = {"cleanup.policy": policy, "retention.ms": -1, "max.message.bytes": context.services.config.message_max_bytes}
    return ErrorCode.NONE, "", [entry(key, value, DEFAULT_CONFIG, read_only=True) for key, value in values.items()]


def _group(context: RequestContext, name: str) -> Outcome:
    if not name:
        return ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.", []
    own = context.services.group_configs.of(name)
    config = context.services.group_configs.check(own)
    return ErrorCode.NONE, "", entries_of(config, set(own), GROUP_CONFIG, read_only=False)


_KINDS = {BROKER: _broker, TOPIC: _topic, GROUP: _group}

SPEC = ApiSpec(32, "DescribeConfigs", 1, 4, handle)
