"""The manual's table of what ``kgctl serve`` answers, made from its registry."""

from __future__ import annotations

from kgctl.server.request_context import ApiSpec
from kgctl.server.service import default_registry


def serve_apis() -> str:
    """One row an API, by name."""
    specs = sorted(default_registry().specs(), key=lambda spec: spec.name)
    return "".join(f"| {spec.name} | {spec.key} | {_versions(spec)} |\n" for spec in specs)


def _versions(spec: ApiSpec) -> str:
    served = f"{spec.min_version}-{spec.max_version}" if spec.max_version > spec.min_version else str(spec.min_version)
    notes = []
    if spec.advertised_min is not None:
        notes.append(f"advertised from {spec.advertised_min}")
    if spec.hidden_versions:
        notes.append(f"also {', '.join(map(str, sorted(spec.hidden_versions)))}, not advertised")
    return f"{served} ({'; '.join(notes)})" if notes else served
