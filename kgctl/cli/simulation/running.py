"""Runs a loaded scenario over its seeds, as `run` and `compare` do."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgctl.cli.session import Session
from kgctl.cli.simulation.progress import progress
from kgctl.errors import UsageError
from kgctl.simulate.metrics.identity import Identity

if TYPE_CHECKING:
    from kgctl.simulate.runs.values import RunValues
    from kgctl.simulate.scenario.load import LoadedFile

_WORTH_PROCESSES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options that both commands have, as they were given."""

    seed: int | None = None
    runs: int | None = None
    jobs: int | None = None
    time_limit: str | None = None
    twice: bool = False
    pictures: bool = False
    identity: Identity = Identity.POD

    def seeds(self, loaded: LoadedFile) -> list[int]:
        """Which seeds: one that is named is run alone, unless ``--runs`` says how many from it on."""
        first = loaded.seed if self.seed is None else self.seed
        count = self.runs if self.runs is not None else 1 if self.seed is not None else loaded.runs
        return list(range(first, first + count))

    def time_limit_s(self) -> float | None:
        """The limit in seconds. Raises `UsageError` for what is no time."""
        from kgctl.simulate.scenario.values.durations import parse_duration

        if self.time_limit is None:
            return None
        try:
            limit_us = parse_duration(self.time_limit, bare_unit="s")
        except ValueError as error:
            raise UsageError(f"--time-limit: {error}") from None
        if not limit_us:
            raise UsageError("--time-limit must be above 0")
        return limit_us / 1_000_000


def run_scenario(session: Session, loaded: LoadedFile, options: RunOptions, seeds: Sequence[int]) -> list[RunValues]:
    """All runs that the time limit allows."""
    from kgctl.simulate.runs.plan import Options, run_all, tasks_of

    limit_s = options.time_limit_s()
    deadline_s = None if limit_s is None else time.monotonic() + limit_s
    plan = Options(twice=options.twice, pictures=options.pictures, identity=options.identity)
    tasks = tasks_of(loaded, seeds, plan, deadline_s)
    jobs = options.jobs or (_processors() if len(tasks) >= _WORTH_PROCESSES else 1)
    with progress(session.environment, loaded.name, len(tasks)) as on_done:
        return run_all(tasks, jobs, on_done)


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
