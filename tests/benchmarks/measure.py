"""Times whole processes, wall clock and CPU, with the commands that are compared taking turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP_LIMIT_S = 5.0
# A user's Python keeps compiled modules; a variable that forbids it would have every run compile all of them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


class BenchmarkError(Exception):
    """A command did not do what it is timed for."""


@dataclass(frozen=True)
class Command:
    """One way to do the job. ``expect`` must be in what it prints; ``times`` scales a part of the job up to the whole."""

    name: str
    argv: Sequence[str]
    expect: str = ""
    times: int = 1


@dataclass
class Measurement:
    """The runs of one command, in seconds, scaled."""

    command: Command
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    @property
    def wall_min_s(self) -> float:
        """The least disturbed run."""
        return min(self.wall_s)

    @property
    def wall_median_s(self) -> float:
        """What a user sees on this machine as it is."""
        return statistics.median(self.wall_s)

    @property
    def cpu_median_s(self) -> float:
        """User and system time, that of children included."""
        return statistics.median(self.cpu_s)


def measure(commands: Sequence[Command], *, runs: int, budget_s: float, output: Path) -> list[Measurement]:
    """Runs each command up to ``runs`` times in turn; one that has used ``budget_s`` already is left out of later rounds.

    A quick command's first run fills caches and does not count. What the commands print goes to the file ``output``.

    Raises:
        BenchmarkError: a command failed, or printed something else.
    """
    measured = [Measurement(command) for command in commands]
    for one in measured:
        wall_s, cpu_s = run_once(one.command, output)
        if wall_s > WARM_UP_LIMIT_S:
            _note(one, wall_s, cpu_s)
    for _ in range(runs):
        for one in measured:
            if not one.wall_s or (sum(one.wall_s) < budget_s and len(one.wall_s) < runs):
                _note(one, *run_once(one.command, output))
    return measured


def _note(one: Measurement, wall_s: float, cpu_s: float) -> None:
    one.wall_s.append(wall_s * one.command.times)
    one.cpu_s.append(cpu_s * one.command.times)


def run_once(command: Command, output: Path) -> tuple[float, float]:
    """(wall seconds, CPU seconds) of one run.

    Raises:
        BenchmarkError: it failed, or printed something else.
    """
    with output.open("wb") as file:
        start = time.perf_counter()
        process = subprocess.Popen(command.argv, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    printed = output.read_text(errors="replace")
    if process.returncode != 0 or command.expect not in printed:
        raise BenchmarkError(f"{command.name} ended with {process.returncode} and printed:\n{printed[-2000:]}")
    return wall_s, usage.ru_utime + usage.ru_stime
