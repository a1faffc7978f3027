"""What is kept of one run when it is over: small, and ready to be handed from one process to another."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kgctl.errors import InvariantViolation
from kgctl.simulate.batch.timeline import picture_of
from kgctl.simulate.batch.values import RunValues, key_of
from kgctl.simulate.batch.watch import Watcher, metric_keys, watchers_for
from kgctl.simulate.engine.run import RunLimits
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.history import Identity
from kgctl.simulate.scenario.checks import Check
from kgctl.simulate.scenario.expressions import Metric
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import Cause

_COLLECT_AFTER = 10_000


class _Litter:
    """Finished runs are cycles of objects, of some ten megabytes: they go once so many lines of logs have left theirs."""

    events = 0

    @classmethod
    def add(cls, events: int) -> None:
        """A run of so many events is over."""
        cls.events += events
        if cls.events >= _COLLECT_AFTER:
            cls.events = 0
            gc.collect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``settings``: Kafka's, for expressions. ``twice``: run it again and compare. ``draws``: keep who consumed what when.

    ``deadline_s``: by the clock of ``time.monotonic``. ``is_lone``: the scenario has no variants. ``metrics``: wanted beside
    those that the checks name.
    """

    variant: str
    scenario: Scenario
    settings: Mapping[str, float | str]
    checks: tuple[Check, ...]
    seed: int
    twice: bool = False
    draws: bool = False
    deadline_s: float | None = None
    is_lone: bool = True
    identity: Identity = Identity.POD
    metrics: tuple[Metric, ...] = ()


def run_task(task: Task) -> RunValues | None:
    """Run it; None if there was no time left to begin.

    Raises:
        InvariantViolation: something that must always hold did not, or the second run differs from the first.
    """
    if _is_late(task):
        return None
    begin_s = time.perf_counter()
    try:
        values = _run(task)
        if task.twice:
            again = _run(task)
            if not (values.stopped or again.stopped) and again.digest != values.digest:
                raise InvariantViolation(f"two runs differ: digests {values.digest[:12]} and {again.digest[:12]}")
    except InvariantViolation as error:
        where = f"seed {task.seed}" if task.is_lone else f"variant {task.variant}, seed {task.seed}"
        raise InvariantViolation(f"{where}: {error.message}", group=error.group, story=error.story) from None
    _Litter.add(values.events)
    return replace(values, took_s=time.perf_counter() - begin_s)


def _is_late(task: Task) -> bool:
    return task.deadline_s is not None and time.monotonic() > task.deadline_s


def _run(task: Task) -> RunValues:
    watchers = watchers_for(task.checks, task.variant, task.settings)
    limits = RunLimits() if task.deadline_s is None else RunLimits(is_over=lambda: _is_late(task))
    result = run(task.scenario, task.seed, observers=tuple(watchers.values()), limits=limits, identity=task.identity)
    return values_of(result, task, watchers)


def _summary(result: RunResult) -> dict[str, float | None]:
    return {name: value for name, value in result.summary().items() if not isinstance(value, str)}


def by_cause(result: RunResult) -> dict[str, float]:
    """Return the unavailable time of each cause, under the names that expectations have for it."""
    parts = {f"unavailable(cause {cause.label})": (f"cause {cause.label}",) for cause in Cause}
    return {name: float(result.metric("unavailable", filters) or 0) for name, filters in parts.items()}


def values_of(result: RunResult, task: Task, watchers: Mapping[int, Watcher]) -> RunValues:
    """Return what is kept of a run that is over and that these watched."""
    asked = dict.fromkeys([*metric_keys(task.checks, task.variant), *((each.name, each.filters) for each in task.metrics)])
    named = {key_of(Metric(name, filters)): result.metric(name, filters) for name, filters in asked}
    return RunValues(
        variant=task.variant,
        seed=task.seed,
        digest=result.digest,
        metrics={**_summary(result), **by_cause(result)},
        named=named,
        watched={number: watcher.result(result.end_us, result.metrics) for number, watcher in watchers.items()},
        final_assignment=result.final_assignment(),
        picture=picture_of(result) if task.draws else None,
        stopped=result.stopped,
        events=result.events,
    )
