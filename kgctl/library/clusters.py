"""`kgctl.connect`: the groups of a cluster, or of a data folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin


def connect(
    bootstrap: str | None = None,
    *,
    embedded: Path | str | None = None,
    properties: Mapping[str, str] | None = None,
    timeout_ms: int = 10_000,
) -> GroupAdmin:
    """Return what administers the groups there; close it, or use ``with``. Nothing is contacted before the first call.

    One of ``bootstrap`` (``host:port[,host:port]``) and ``embedded`` (the data folder of ``kgctl serve``). ``properties`` have
    librdkafka's names. ``timeout_ms`` covers each call as a whole.

    Raises:
        UsageError: none of the two, or both; settings that cannot be.
    """
    from kgctl.admin import connect as admin

    named = [name for name, value in (("bootstrap", bootstrap), ("embedded", embedded)) if value]
    if len(named) != 1:
        raise UsageError(f"name one cluster: bootstrap or embedded (given: {', '.join(named) or 'none'})")
    settings = admin.ConnectionSettings(
        bootstrap=bootstrap,
        embedded=None if embedded is None else Path(embedded),
        properties=dict(properties or {}),
        timeout_ms=timeout_ms,
    )
    return admin.connect(settings)
