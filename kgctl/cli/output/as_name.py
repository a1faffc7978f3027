"""Only the names of what the rows are about, one a line: input for another command."""

from __future__ import annotations

from kgctl.cli.environment import Environment
from kgctl.cli.output.report import Report


def render(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Each name once, in the order of the rows: a group, ``topic:partition``, a member."""
    names = (":".join(str(row[key]) for key in report.name_keys if row[key] is not None) for row in report.rows)
    return "".join(f"{name}\n" for name in dict.fromkeys(names))
