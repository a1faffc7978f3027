"""IncrementalAlterConfigs: single settings of topics, brokers, groups, loggers and subscriptions to clients' metrics."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.configs.altering import Change, alter
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values


def handle(context: RequestContext, body: Any) -> Values:
    """One result a resource, in the order of the request."""
    resources = [
        (
            resource.resource_type,
            resource.resource_name,
            [Change(each.name, each.config_operation, each.value) for each in resource.configs],
        )
        for resource in body.resources
    ]
    return {"responses": alter(context, resources, validate_only=body.validate_only, is_whole=False)}


SPEC = ApiSpec(44, "IncrementalAlterConfigs", 0, 1, handle)
