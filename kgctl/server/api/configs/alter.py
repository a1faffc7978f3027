"""AlterConfigs: all settings of a resource at once. Those that are not named fall back to their defaults."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.configs.altering import SET, Change, alter
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values


def handle(context: RequestContext, body: Any) -> Values:
    """One result a resource, in the order of the request."""
    resources = [
        (resource.resource_type, resource.resource_name, [Change(each.name, SET, each.value) for each in resource.configs])
        for resource in body.resources
    ]
    return {"responses": alter(context, resources, validate_only=body.validate_only, is_whole=True)}


SPEC = ApiSpec(33, "AlterConfigs", 0, 2, handle)
