"""``kgctl context list``."""

from __future__ import annotations

import typer

from kgctl.cli.config_file import load_config_file
from kgctl.cli.output.context_rows import contexts_report
from kgctl.cli.output.report import Report
from kgctl.cli.session import session_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl context list")(context_list)


def context_list(ctx: typer.Context) -> Report:
    """List the contexts of the config file; the current one is marked."""
    environment = session_of(ctx).environment
    config = load_config_file(environment.config_file)
    notices = () if config.contexts else (f"No contexts. They are defined in {config.path}.",)
    return contexts_report(sorted(config.contexts.values(), key=lambda one: one.name), config.current_context, notices)
