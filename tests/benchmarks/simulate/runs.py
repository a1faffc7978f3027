"""Single runs of the simulator in CPU seconds, with all invariants looked at, beside their targets.

The largest rolling restart is measured by its first pods and scaled up, and says so: every restart costs the same.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.trace import TraceEvent
from kgctl.simulate.scenario.load import Variant, load
from kgctl.yaml_files import read_yaml
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.benchmarks.simulate import scenarios

LONG_S = 5.0
"""What takes longer is run once."""


@dataclass(frozen=True)
class Rolling:
    """Of ``members`` pods the first ``restarted`` are restarted; the targets are for all of them, by variant.

    The smaller ones are held against another checkout: see `tests.benchmarks.simulate.beside`.
    """

    members: int
    partitions: int
    restarted: int
    targets_s: Mapping[str, float] = field(default_factory=dict)

    def scenario(self, name: str, restarted: int) -> Variant:
        """The variant of this name, with so many restarts."""
        return _variant(scenarios.rolling(self.members, self.partitions, restarted=restarted), name)


TARGETS_S = {"eager": 500.0, "kip848": 180.0}
ROLLING = (Rolling(40, 200, 40), Rolling(200, 2_000, 200), Rolling(1_000, 10_000, 10, TARGETS_S))
SMALL = (Rolling(4, 20, 4), Rolling(6, 20, 2, TARGETS_S))
IDLE_MEMBERS = 10_000
IDLE_TARGET_S = 1.0


def measure(_: Sequence[str], scale: Scale) -> Iterator[Row]:
    """Every row of the table."""
    for size in SMALL if scale.small else ROLLING:
        for name in ("eager", "cooperative", "kip848"):
            yield _rolling(size, name, scale)
    for name in ("eager", "kip848"):
        yield from _idle(20 if scale.small else IDLE_MEMBERS, name, scale)


def _rolling(size: Rolling, name: str, scale: Scale) -> Row:
    cpu_s, result = _best(size.scenario(name, size.restarted), scale)
    rate = result.tasks / cpu_s
    title = f"rolling restart {size.members:,} x {size.partitions:,}, {name}"
    if size.restarted < size.members:
        start_s, _ = _best(size.scenario(name, 0), scale)
        cpu_s = start_s + (cpu_s - start_s) * size.members / size.restarted
        title += f", by {size.restarted} pods"
    return _row(title, cpu_s, size.targets_s.get(name), rate)


def _idle(members: int, name: str, scale: Scale) -> Iterator[Row]:
    """The start of the group, and the day in which nothing happens after it: from the last change to the result."""
    variant = _variant(scenarios.idle(members, "24h"), name)
    start_s, day_s, tasks = _around_last_change(variant)
    for _ in range(scale.runs - 1 if start_s < LONG_S else 0):
        again = _around_last_change(variant)
        start_s, day_s = min(start_s, again[0]), min(day_s, again[1])
    yield _row(f"{members:,} members join, {name}", start_s, None, tasks / start_s)
    yield _row(f"{members:,} members, 24 idle hours, {name}", day_s, IDLE_TARGET_S, None)


def _around_last_change(variant: Variant) -> tuple[float, float, int]:
    """CPU seconds until the last change but the end of the run itself, CPU seconds after it, and the loop's tasks."""
    clock = _StepClock()
    started = time.process_time()
    result = run(variant.scenario, seed=1, observers=(clock,))
    ended = time.process_time()
    return clock.steps[-2] - started, ended - clock.steps[-2], result.tasks


class _StepClock:
    """Notes when each change was shown; the last one is the run's end."""

    def __init__(self) -> None:
        self.steps: list[float] = []

    def on_trace(self, event: TraceEvent) -> None:
        """Costs nothing."""

    def on_step(self, at_us: int, metrics: object) -> None:  # an observer's names
        """A moment in which something changed is over."""
        self.steps.append(time.process_time())


def _row(name: str, cpu_s: float, target_s: float | None, rate: float | None) -> Row:
    target = "" if target_s is None else f"{target_s:g} {'reached' if cpu_s < target_s else 'MISSED'}"
    return Row(name, (f"{cpu_s:.3f}", target, "" if rate is None else f"{rate:,.0f}"))


def _best(variant: Variant, scale: Scale) -> tuple[float, RunResult]:
    """The least disturbed of the runs, and what they come to."""
    best_s, result = _timed(variant)
    for _ in range(scale.runs - 1 if best_s < LONG_S else 0):
        best_s = min(best_s, _timed(variant)[0])
    return best_s, result


def _timed(variant: Variant) -> tuple[float, RunResult]:
    gc.collect()  # what the run before has left is not this one's
    started = time.process_time()
    result = run(variant.scenario, seed=1)
    return time.process_time() - started, result


def _variant(text: str, name: str) -> Variant:
    return load(read_yaml(text, "benchmark.yaml"), variants=[name]).variants[0]


RATES = Rates("simulate", "kgctl simulate, one run", ("CPU s", "target", "events/CPU s"), measure)
