"""IncrementalAlterConfigs: single settings of topics, brokers, groups, loggers and subscriptions to clients' metrics."""

from __future__ import annotations

from typing import Any

from kgctl.server.api.configs.altering import alter
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.traffic import Work


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    return alter(context, body, is_whole=False)


SPEC = ApiSpec(44, "IncrementalAlterConfigs", 0, 1, handle)
