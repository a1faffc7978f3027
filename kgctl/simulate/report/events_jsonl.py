"""The event log as JSON lines: for each run a line that names it, then its log as `kgctl.simulate.engine.trace` writes it.

::

    {"kind":"run","scenario":"crash","variant":"eager","seed":1}
    {"at_us":-60000000,"kind":"pod","pod":"app-0","what":"boot"}

The lines after the first one of a run are the very bytes that its digest is made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from kgctl.simulate.engine.trace import TraceEvent


class EventLines:
    """An observer of runs: hands each line, with its newline, to ``write``. UTF-8 and ``\\n`` are the caller's to keep."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin_run(self, scenario: str, variant: str, seed: int) -> None:
        """What is observed from now on belongs to this run."""
        self._write(run_line(scenario, variant, seed))

    def on_trace(self, event: TraceEvent) -> None:
        """One line."""
        self._write(f"{event.line()}\n")

    def on_step(self, at_us: int, metrics: object) -> None:
        """Nothing: the log has what happened, not how things stand."""


def run_line(scenario: str, variant: str, seed: int) -> str:
    """The line that begins a run's events."""
    names = {"kind": "run", "scenario": scenario, "variant": variant, "seed": seed}
    return json.dumps(names, separators=(",", ":")) + "\n"
