"""``kgctl context``: the named clusters of the config file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.completers import complete_contexts
from kgctl.cli.context.config_file import ClusterContext, load_config_file, save_current_context
from kgctl.cli.output.report import Column, Report
from kgctl.cli.session import session_of
from kgctl.cli.settings import context_settings
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.admin.connect import ConnectionSettings


CONTEXTS = (
    Column("context"),
    Column("current"),
    Column("bootstrap_server"),
    Column("embedded"),
    Column("zookeeper"),
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
            "zookeeper": context.zookeeper,
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
        "zookeeper": settings.zookeeper,
        "timeout": f"{settings.timeout_ms} ms",
        **{key: HIDDEN if _is_secret(key) else value for key, value in sorted(settings.properties.items())},
    }
    rows = [{"context": name, "setting": key, "value": value} for key, value in values.items() if value is not None]
    return Report(SETTINGS, rows, name_keys=("setting",))


def _is_secret(key: str) -> bool:
    return any(word in key for word in _SECRET)


def register_list(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl context list")(context_list)


def context_list(ctx: typer.Context) -> Report:
    """List the contexts of the config file; the current one is marked."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    notices = () if config.contexts else (f"No contexts. They are defined in {config.path}.",)
    return contexts_report(sorted(config.contexts.values(), key=lambda one: one.name), config.current_context, notices)


def register_use(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl context use staging")(context_use)


def context_use(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A context of the config file.", autocompletion=complete_contexts)],
) -> Report:
    """Make a context the current one: the cluster of every command that names none."""
    config = load_config_file(session_of(ctx).environment.config_file)
    save_current_context(config, name)
    return contexts_report([config.context(name)], name, (f"Current context: {name}.",))


def register_show(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl context show staging -o yaml")(context_show)


def context_show(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A context; the current one if left out.", autocompletion=complete_contexts),
    ] = None,
) -> Report:
    """Show what a context amounts to, its files read: one row a setting, secrets hidden."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    wanted = name or environment.variables.get("KGCTL_CONTEXT") or config.current_context
    if not wanted:
        raise UsageError(f"no context is named, and {config.path} has no current-context")
    return settings_report(wanted, context_settings(config.context(wanted)))
