"""`kgctl.simulate`: a scenario, run over its variants and seeds, with what its expectations say."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from kgctl.arguments import checked
from kgctl.errors import NotFoundError, UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of, with_worst
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import FileError, Problem


@frozen_in_order
class Run:
    """One run, whole: what it recorded, and its trace in order."""

    recording: Recording
    events: tuple[TraceEvent, ...]


class _Trace:
    """An observer that keeps all events."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def on_trace(self, event: TraceEvent) -> None:
        self.events.append(event)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Do nothing: the recording says how things stand."""


@frozen_in_order
class Simulated(Outcome):
    """What `kgctl.simulate` answers: an outcome, whose runs can be done once more and looked into.

    ``failures``: those of the ``expectations`` that do not hold, and do more than warn.
    """

    scenarios: Mapping[str, Scenario] = field(default_factory=dict, repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether all expectations hold, but those that only warn, and no run was cut short."""
        return not self.failures and not self.stopped

    @checked(not_empty=("variant",))
    def run(self, variant: str | None = None, seed: int | None = None) -> Run:
        """Do a run once more, the first variant's with the first seed where none is named: the same run, and all of it.

        Raises:
            NotFoundError: this outcome has no such variant.
        """
        name = next(iter(self.scenarios)) if variant is None else variant
        if name not in self.scenarios:
            raise NotFoundError(f"there is no variant '{name}'; known: {', '.join(self.scenarios)}")
        trace = _Trace()
        result = run(self.scenarios[name], self.seeds[0] if seed is None else seed, observers=(trace,))
        return Run(result.recording, tuple(trace.events))


@checked(not_empty=("scenario",))
def simulate(
    scenario: str | Path | Mapping[str, Any],
    *,
    seed: int | None = None,
    runs: int | None = None,
    variants: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    jobs: int = 1,
) -> Simulated:
    """Run a scenario and return its metrics, expectations and timelines; ``passed`` says whether all expectations hold.

    ``variants`` of it has the ``metrics`` of each (``metrics["max_gap"].worst``), ``expectations`` and ``failures`` what was
    checked; ``run(variant=None, seed=None)`` does one of the runs once more and has its ``recording`` (who owned which partition
    when, pods, traffic, the group's history) and its ``events``, the trace in order. Times there are virtual microseconds.

    ``scenario``: a file's path, the name of a built-in, or the document itself. ``seed`` alone runs that one; ``runs`` seeds are
    run from ``seed`` (or the file's) on. ``settings`` change values by their path (``{"members.app.count": 8}``), as ``--set``
    does. The same arguments give the same result on every machine, for any number of ``jobs`` (processes).

    Raises:
        UsageError: the scenario is wrong; the message has every mistake with its place.
        NotFoundError: no such file, built-in or variant.
    """
    for name, value, least in (("seed", seed, 0), ("runs", runs, 1), ("jobs", jobs, 1)):
        if value is not None and value < least:
            raise UsageError(f"{name} must be {least} or more, not {value}")
    try:
        tree = read_source("-", io.StringIO(json.dumps(scenario))) if isinstance(scenario, Mapping) else _tree(str(scenario))
        loaded = load(tree, settings=[f"{path}={value}" for path, value in (settings or {}).items()], variants=variants)
    except FileError as error:
        shown = (_without_place(problem) if isinstance(scenario, Mapping) else str(problem) for problem in error.problems)
        raise UsageError("\n".join(shown)) from None
    first = loaded.seed if seed is None else seed
    count = runs if runs is not None else 1 if seed is not None else loaded.runs
    seeds = list(range(first, first + count))
    tasks = tasks_of(loaded, seeds, BatchOptions(pictures=True), None)
    values = run_all(tasks, jobs, lambda _: None)
    outcome = with_worst(outcome_of(loaded, seeds, values), loaded, pictures=True, stories=False, jobs=jobs)
    scenarios = {task.variant: task.scenario for task in tasks}
    return Simulated(**{each.name: getattr(outcome, each.name) for each in fields(outcome)}, scenarios=scenarios)


def _tree(name: str) -> Any:
    return read_source(name, io.StringIO())


def _without_place(problem: Problem) -> str:
    """A document that was handed in has paths, but no lines."""
    return f"{problem.where}: {problem.message}" if problem.path else problem.message
