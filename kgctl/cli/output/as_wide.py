"""The table with every column."""

from __future__ import annotations

from kgctl.cli.environment import Environment
from kgctl.cli.output.as_table import render_columns
from kgctl.cli.output.report import Report


def render(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Like ``table``, with the wide columns too."""
    return render_columns(report, report.columns, environment)
