"""The reports of ``context``: named clusters, and what one amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.cli.config_file import ClusterContext
from kgctl.cli.output.report import Column, Report

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings

CONTEXTS = (
    Column("context"),
    Column("current"),
    Column("bootstrap_server"),
    Column("embedded"),
    Column("command_config", wide=True),
    Column("timeout", wide=True),
)
SETTINGS = (Column("context"), Column("setting"), Column("value"))
_SECRET = ("password", "secret", "jaas", "pem", "token", "credentials")
HIDDEN = "[hidden]"


def contexts_report(contexts: Sequence[ClusterContext], current: str | None, notices: Sequence[str] = ()) -> Report:
    """One row a context, as written in the file; properties are left out."""
    rows = [
        {
            "context": context.name,
            "current": context.name == current,
            "bootstrap_server": context.bootstrap_server,
            "embedded": context.embedded,
            "command_config": context.command_config,
            "timeout": context.timeout,
        }
        for context in contexts
    ]
    return Report(CONTEXTS, rows, (), notices, ("context",))


def settings_report(name: str, settings: ConnectionSettings) -> Report:
    """One row a setting, with librdkafka's names for properties; what may be a secret is hidden."""
    values = {
        "bootstrap-server": settings.bootstrap,
        "embedded": str(settings.embedded) if settings.embedded else None,
        "timeout": f"{settings.timeout_ms} ms",
        **{key: HIDDEN if _is_secret(key) else value for key, value in sorted(settings.properties.items())},
    }
    rows = [{"context": name, "setting": key, "value": value} for key, value in values.items() if value is not None]
    return Report(SETTINGS, rows, name_keys=("setting",))


def _is_secret(key: str) -> bool:
    return any(word in key for word in _SECRET)
