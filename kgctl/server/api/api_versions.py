"""ApiVersions: what else is served."""

from __future__ import annotations

import re
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.versions import features_of

CLIENT_SOFTWARE_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(context: RequestContext, body: Any) -> Values:
    """``body`` is None for a version of the future, to which only ApiVersions' own range is told (KIP-511)."""
    if body is None:
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [_range(SPEC)]}
    if context.version >= CLIENT_SOFTWARE_SINCE and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return {"error_code": ErrorCode.INVALID_REQUEST}
    features = features_of(context.profile)
    return {
        "error_code": ErrorCode.NONE,
        "api_keys": [_range(spec) for spec in context.services.registry.specs()],
        "supported_features": [{"name": name, "min_version": 0, "max_version": level} for name, level in features.items()],
        "finalized_features_epoch": 0,
        "finalized_features": [
            {"name": name, "max_version_level": level, "min_version_level": level} for name, level in features.items()
        ],
    }


def _range(spec: ApiSpec) -> dict[str, int]:
    min_version = spec.min_version if spec.advertised_min is None else spec.advertised_min
    return {"api_key": spec.key, "min_version": min_version, "max_version": spec.max_version}


SPEC = ApiSpec(18, "ApiVersions", 0, 4, handle, before_authentication=True)
