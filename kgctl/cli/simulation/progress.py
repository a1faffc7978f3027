"""A bar on stderr while many runs go on; nothing where nobody looks at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kgctl.cli.environment import Environment


@contextmanager
def progress(environment: Environment, title: str, total: int) -> Iterator[Callable[[Any], None]]:
    """Gives what is to be called when a run is done."""
    if total < 2 or not environment.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=environment.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda _: bar.advance(task)
