"""The rows as CSV (RFC 4180 quoting, lines end with a line feed), with one header line."""

from __future__ import annotations

from kgctl.admin.plan.offset_file import csv_text
from kgctl.cli.environment import Environment
from kgctl.cli.output.report import Cell, Report


def render(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """All columns, wide ones too. Unknown is an empty field; a list is joined by spaces."""
    keys = [column.key for column in report.columns]
    rows = [[_field(row[key]) for key in keys] for row in report.rows]
    return csv_text([keys, *rows] if keys else [])


def _field(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, (str, int, float)) else " ".join(value)
