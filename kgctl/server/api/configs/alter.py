"""AlterConfigs: all settings of a resource at once. Those that are not named fall back to their defaults."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.configs.altering import alter
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    return alter(context, body, is_whole=True)


SPEC = ApiSpec(33, "AlterConfigs", 0, 2, handle)
