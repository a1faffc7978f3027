"""``kgctl context use``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.completers import complete_contexts
from kgctl.cli.config_file import load_config_file, save_current_context
from kgctl.cli.output.context_rows import contexts_report
from kgctl.cli.output.report import Report
from kgctl.cli.session import session_of


def register(app: typer.Typer) -> None:
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
