"""``kgctl context show``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.completers import complete_contexts
from kgctl.cli.config_file import load_config_file
from kgctl.cli.output.context_rows import settings_report
from kgctl.cli.output.report import Report
from kgctl.cli.session import session_of
from kgctl.cli.settings import context_settings
from kgctl.errors import UsageError


def register(app: typer.Typer) -> None:
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
