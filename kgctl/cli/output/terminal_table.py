"""The same table for a person at a terminal, with colour where the terminal has any."""

from __future__ import annotations

import io
from collections.abc import Sequence

from kgctl.cli.environment import Environment
from kgctl.cli.output.report import Column

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
