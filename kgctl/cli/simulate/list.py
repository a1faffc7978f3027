"""``kgctl simulate list``."""

from __future__ import annotations

import re

import typer

from kgctl.cli.report import Column, Report

COLUMNS = (Column("name"), Column("question"))


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl simulate list")(simulate_list)


def simulate_list() -> Report:
    """List the built-in scenarios, with the question that each answers."""
    from kgctl.simulate.scenario.sources import builtin_names, builtin_text

    rows = [{"name": name, "question": _question(builtin_text(name))} for name in builtin_names()]
    return Report(COLUMNS, rows, name_keys=("name",))


def _question(text: str) -> str:
    """Its line alone: a list need not read every file as YAML."""
    found = re.search(r"^question: (.*)$", text, re.MULTILINE)
    return found.group(1).strip().strip("\"'") if found else ""
