"""Rows in aligned columns, with colour where a person looks at a terminal, and bare names. Nothing is cut or boxed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from kgctl.cli.environment import Environment
from kgctl.cli.output.report import Cell, Column, Report

UNKNOWN = "-"


def render_table(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Render the columns that are not wide."""
    columns = [column for column in report.columns if not column.wide]
    limits = {column.key: column.most for column in columns if column.most is not None}
    if limits:
        rows = [{**row, **{key: _first(row[key], most) for key, most in limits.items()}} for row in report.rows]
        report = replace(report, rows=rows)
    return render_columns(report, columns, environment)


def _first(value: Cell, most: int) -> Cell:
    """The first values of a list and how many more there are."""
    if value is None or isinstance(value, (str, int, float)) or len(value) <= most:
        return value
    return [*value[:most], f"({len(value) - most} more)"]


def render_columns(report: Report, columns: Sequence[Column], environment: Environment) -> str:
    """Header and rows; nothing at all, not even a header, where there are no rows. Or the report's own text."""
    if report.text:
        return report.text
    if not report.rows:
        return ""
    if report.omits_empty_columns:
        columns = [column for column in columns if any(row[column.key] not in (None, "", [], ()) for row in report.rows)]
    cells = [[cell_text(row[column.key]) for column in columns] for row in report.rows]
    right = [_is_number(report, column) for column in columns]
    if environment.stdout_is_terminal:
        return render_for_terminal(columns, cells, right, environment)
    return _aligned([[column.title for column in columns], *cells], right)


def cell_text(value: Cell) -> str:
    """A cell as one printable word or phrase: ``-`` for unknown and empty, control characters escaped."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else " ".join(value)
    return printable(text) or UNKNOWN


def printable(text: str) -> str:
    """The text with everything that could move a cursor or end a line written as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _is_number(report: Report, column: Column) -> bool:
    values = [row[column.key] for row in report.rows]
    return any(isinstance(value, int) for value in values) and not any(isinstance(value, (str, bool)) for value in values)


def _aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(_line(line, widths, right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip() + "\n"


UNLIMITED = 1_000_000
STYLES = {
    "Stable": "green",
    "Empty": "yellow",
    "Dead": "red",
    "PreparingRebalance": "magenta",
    "CompletingRebalance": "magenta",
    "Assigning": "magenta",
    "Reconciling": "magenta",
    "failed": "red",
    "refused": "red",
    "below-log-start": "red",
    "past-log-end": "red",
    "no-consumer": "yellow",
    "-": "dim",
}
"""Whole cells that stand out."""


def render_for_terminal(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], right: Sequence[bool], environment: Environment
) -> str:
    """The table as text with escape codes. Nothing is cut or folded: a line that is too long is the terminal's to wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, to_right in zip(columns, right, strict=True):
        table.add_column(column.title, justify="right" if to_right else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=UNLIMITED, _environ=dict(environment.variables), highlight=False)
    console.print(table)
    return stream.getvalue()


def render_wide(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Render all columns, the wide ones too."""
    return render_columns(report, report.columns, environment)


def render_names(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Each name once, in the order of the rows: a group, ``topic:partition``, a member.

    Control characters are escaped: a name with a line feed must not be two names for the command that reads them.
    """
    names = (":".join(str(row[key]) for key in report.name_keys if row[key] is not None) for row in report.rows)
    return "".join(f"{printable(name)}\n" for name in dict.fromkeys(names))
