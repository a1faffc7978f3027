"""``kgctl simulate show``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.completion import complete_scenarios
from kgctl.cli.report import Column, Report

COLUMNS = (Column("name"), Column("text"))


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl simulate show rolling-restart > mine.yaml")(simulate_show)


def simulate_show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A built-in scenario.", show_default=False, autocompletion=complete_scenarios)
    ],
) -> Report:
    """Print a built-in scenario, to read it or to start from it."""
    from kgctl.simulate.scenario.sources import BUILTIN, builtin_text

    text = builtin_text(name.removeprefix(BUILTIN))
    return Report(COLUMNS, [{"name": name, "text": text}], name_keys=("name",), text=text)
