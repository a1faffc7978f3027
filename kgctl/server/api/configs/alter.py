"""AlterConfigs: all settings of a resource at once. Those that are not named fall back to their defaults."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.configs.altering import SET, Change, alter
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work, each


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    resources = yield from each(body.resources, _resource)
    return {"responses": (yield from alter(context, resources, validate_only=body.validate_only, is_whole=True))}


def _resource(resource: Any) -> tuple[int, str, list[Change]]:
    changes = [Change(one.name, SET, one.value) for one in resource.configs]
    return resource.resource_type, resource.resource_name, changes


SPEC = ApiSpec(33, "AlterConfigs", 0, 2, handle)
