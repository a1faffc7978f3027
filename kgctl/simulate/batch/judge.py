"""Holds expectations against runs: those that watch a run while it goes on, and those of the values of all seeds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import itemgetter
from typing import Any

from kgctl.model.values import frozen, frozen_in_order
from kgctl.simulate.metrics.troubles import Trouble
from kgctl.simulate.recording.trace import Happened
from kgctl.simulate.report.outcome import RunPicture, show
from kgctl.simulate.scenario.checks import Check, CheckKind, KnownSource, RunSource, is_sum
from kgctl.simulate.scenario.expressions import (
    COMPARISONS,
    Binary,
    Metric,
    Node,
    ScenarioSetting,
    Value,
    ValueSource,
    apply,
    evaluate,
    key_of,
    metrics_of,
)
from kgctl.simulate.scenario.load import decided
from kgctl.simulate.scenario.metric import TASKS, metric_kinds
from kgctl.simulate.scenario.quantities import format_duration
from kgctl.simulate.scenario.vocabulary import EventStage


@frozen_in_order
class Watched:
    """What came of a check that watches the run. ``at_us``: when it was decided, from the end of the warm-up.

    ``undecided``: why it could not be decided, and does not hold for that; "" where it is.
    """

    passed: bool
    observed: Value
    at_us: int | None = None
    undecided: str = ""


@frozen
class RunValues:
    """One variant with one seed.

    ``metrics``: all that the JSON result has. ``named``: those that checks name, by `key_of`. ``watched``: by the check's
    number. ``stopped``: why it ended before its time; "" for a run that is complete. ``events`` is how many there were.
    ``took_s``: of the machine's time. ``odd_events``: those that were aborted, in words. ``left_out``: those whose ``when``
    did not hold, each with why. ``writes``: whether a record was ever written. ``troubles``: what went wrong though nobody asked;
    ``allowed``: what did so and is let through.
    """

    variant: str
    seed: int
    digest: str
    metrics: Mapping[str, float | None]
    named: Mapping[str, Value] = field(default_factory=dict)
    watched: Mapping[int, Watched] = field(default_factory=dict)
    final_assignment: Mapping[str, Mapping[str, list[int]]] = field(default_factory=dict)
    longest_gaps: Mapping[str, float] = field(default_factory=dict)
    picture: RunPicture | None = None
    stopped: str = ""
    took_s: float = field(default=0.0, compare=False)
    events: int = 0
    odd_events: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    writes: bool = True
    troubles: tuple[Trouble, ...] = ()
    allowed: tuple[Trouble, ...] = ()


@frozen_in_order
class SeedSource:
    """The values of one seed, for expressions over finished runs; ``settings`` by variant."""

    runs: Mapping[str, RunValues]
    settings: Mapping[str, Mapping[str, float | str]]
    variant: str

    def metric(self, metric: Metric) -> Value:
        return self.runs[metric.variant or self.variant].named.get(key_of(metric))

    def setting(self, setting: ScenarioSetting) -> Value:
        return self.settings[setting.variant or self.variant].get(setting.name)


def watchers_for(checks: Sequence[Check], variant: str, settings: Mapping[str, float | str]) -> dict[int, Watcher]:
    """A watcher for each check that needs one in this variant, by the check's number."""
    kinds: dict[CheckKind, type[Always | Eventually | Steady]] = {
        CheckKind.ALWAYS: Always,
        CheckKind.EVENTUALLY: Eventually,
        CheckKind.STEADY: Steady,
    }
    return {
        number: kinds[check.kind](check, settings)
        for number, check in enumerate(checks)
        if check.kind in kinds and _concerns(check, variant)
    }


def _concerns(check: Check, variant: str) -> bool:
    if check.named_variants:
        return variant in check.named_variants
    return check.variants is None or variant in check.variants


@frozen_in_order
class _ThenSource(RunSource):
    """Sums of records at a time of the past, all else as it is."""

    at_us: int = 0

    def metric(self, metric: Metric) -> Value:
        value: Value = self.metrics.at(metric.name, metric.filters, self.at_us)  # type: ignore[attr-defined]
        return value


TOGETHER_US = 1_000_000


class Watcher(ABC):
    """Sees every moment of a run at which something has happened (`Observer.on_step`).

    Records are written and read in between, and states restored, too. An expression of sums of records alone is looked at
    wherever these bend, any other about records and states now and then (``needs_looks``).
    """

    source: type[RunSource] = KnownSource

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        self.check = check
        self.settings = settings
        named = [(metric_kinds().get(metric.name), metric.filters) for metric in metrics_of(check.node)]
        self.needs_looks = any(kind is not None and (kind.is_of_records or kind.about is TASKS) for kind, _ in named)
        self._is_of_sums = bool(named) and all(kind is not None and is_sum(kind, filters) for kind, filters in named)
        self._seen_us = 0
        self._is_over = False

    def on_trace(self, event: Any) -> None:  # noqa: B027 - only some look at single events
        """Take note of an event of the run."""

    @abstractmethod
    def on_step(self, at_us: int, metrics: Any) -> None:
        """Judge the metrics after all events of one moment."""

    @abstractmethod
    def result(self, end_us: int, metrics: Any) -> Watched:
        """Return the verdict at the end of the run."""

    def _value(self, metrics: Any) -> Value:
        return evaluate(self.check.node, self.source(metrics, self.settings))

    def _left(self, metrics: Any) -> Value:
        return evaluate(_left_of(self.check.node), self.source(metrics, self.settings))

    def _between(self, at_us: int, metrics: Any) -> Iterator[tuple[int, ValueSource]]:
        """Moments at which sums of records were most or least, each with what they were; those of a second together."""
        since_us = self._seen_us
        if not self._is_of_sums or at_us < since_us + (1 if self._is_over else TOGETHER_US):
            return
        self._seen_us = at_us
        bends = {when for bend in metrics.bends(since_us, at_us) for when in (bend, bend + 1) if when < at_us}
        for when in sorted(bends | {us for us in self._turns() if since_us < us < at_us}):
            yield when, _ThenSource(metrics, self.settings, when)

    def _turns(self) -> tuple[int, ...]:
        """Return the times at which the expectation begins and ends to be asked."""
        return ()


class Always(Watcher):
    """Watches a condition that has to hold at every moment after the warm-up: what has not come yet breaks nothing before the
    end."""

    source = RunSource

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._broken: Watched | None = None

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Evaluate the condition, until it has once been false."""
        if self._broken is not None or at_us < 0:
            return
        now: tuple[int, ValueSource] = (at_us, self.source(metrics, self.settings))
        for when, source in (*self._between(at_us, metrics), now):
            value = evaluate(self.check.node, source)
            if value is not None and not value:
                self._broken = Watched(passed=False, observed=evaluate(_left_of(self.check.node), source), at_us=when)
                return

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Return that the check has passed if its condition was never false."""
        self._is_over = True
        self.on_step(end_us, metrics)
        passed = bool(self._value(metrics))
        return self._broken or Watched(passed=passed, observed=self._left(metrics), at_us=None if passed else end_us)


class Eventually(Watcher):
    """Watches a condition that has to hold at some moment from ``after`` on, at most ``within`` later."""

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._from_us: int | None = None if isinstance(check.after, str) else check.after
        self._held_us: int | None = None
        self._before: tuple[Value, Value] = None, None
        self._observed: Value = None

    def on_trace(self, event: Any) -> None:
        """Wait for the end of the event named in ``after``; of every event for ``last``."""
        after = self.check.after
        is_end = isinstance(event, Happened) and event.what is EventStage.ENDS
        if is_end and after in {"last", event.event}:
            self._from_us, self._held_us = event.at_us, None

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Evaluate the condition, until it has once been true."""
        if self._held_us is not None:
            return
        now: tuple[int, ValueSource] = (at_us, self.source(metrics, self.settings))
        for when, source in (*self._between(at_us, metrics), now):
            self._look(when, (evaluate(self.check.node, source), evaluate(_left_of(self.check.node), source)))

    def _turns(self) -> tuple[int, ...]:
        within_us = self.check.within_us
        return () if self._from_us is None else (self._from_us, *(() if within_us is None else (self._from_us + within_us,)))

    def _look(self, at_us: int, seen: tuple[Value, Value]) -> None:
        """``seen``: whether it holds then, and its left side."""
        if self._held_us is not None:
            return
        from_us = self._from_us
        if from_us is None or at_us < from_us:
            self._before = seen
            return
        if at_us > from_us and self._before[0] and not self._is_late(from_us):
            self._held_us, self._observed = from_us, self._before[1]
            return
        self._before = None, None
        if not self._is_late(at_us) and seen[0]:
            self._held_us, self._observed = at_us, seen[1]

    def _is_late(self, at_us: int) -> bool:
        within = self.check.within_us
        return self._from_us is None or (within is not None and at_us > self._from_us + within)

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Return that the check has passed if its condition became true in time."""
        self._is_over = True
        self.on_step(end_us, metrics)
        if self._held_us is not None:
            return Watched(passed=True, observed=self._observed, at_us=self._held_us)
        return Watched(passed=False, observed=self._left(metrics), undecided=self._why_undecided(end_us))

    def _why_undecided(self, end_us: int) -> str:
        if self._from_us is None:
            return f"no event had ended that it is after ({self.check.after})"
        within_us = self.check.within_us
        if within_us is not None and end_us < self._from_us + within_us:
            left = f"only {format_duration(round(max(end_us - self._from_us, 0), -6))} of {format_duration(within_us)} were left"
            return f"{left} when the run ended: say a `duration`"
        return ""


_STEADY_FOR_US = 300_000_000


class Steady(Watcher):
    """Watches a metric that, in its last stretch of time, may leave its own mean by no more than a share of it, and has a value
    at the end."""

    source = RunSource

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._points: list[tuple[int, float]] = []

    def on_step(self, at_us: int, metrics: Any) -> None:
        for when, source in self._between(at_us, metrics):
            self._keep(when, evaluate(self.check.node, source))
        self._keep(at_us, self._value(metrics))

    def _keep(self, at_us: int, value: Value) -> None:
        if isinstance(value, int | float) and (not self._points or self._points[-1][1] != value):
            self._points.append((at_us, float(value)))

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Passed if it has settled; observed is the largest distance from the mean, as a share of it."""
        self._is_over = True
        self.on_step(end_us, metrics)
        last_us = min(_STEADY_FOR_US, end_us) if self.check.last_us is None else self.check.last_us
        from_us = end_us - last_us
        if self._value(metrics) is None or not self._points or self._points[0][0] > max(from_us, 0):
            return Watched(passed=False, observed=None, at_us=end_us)
        if from_us < 0:
            asked = f"{format_duration(last_us)} are asked about, and the run took {format_duration(end_us)}"
            return Watched(passed=False, observed=None, undecided=f"{asked}: say a `duration`, or a shorter `last`")
        stretches = self._stretches(from_us, end_us)
        if not stretches:
            return Watched(passed=False, observed=None, undecided="no time was measured: say a `duration`")
        length = sum(stop - start for start, stop, _ in stretches)
        mean = math.fsum((stop - start) * value for start, stop, value in stretches) / length
        furthest = max(abs(value - mean) for _, _, value in stretches)
        off = 0.0 if furthest == 0 else math.inf if mean == 0 else furthest / abs(mean)
        return Watched(off * 1_000_000 <= self.check.within_ppm, off)

    def _stretches(self, from_us: int, end_us: int) -> list[tuple[int, int, float]]:
        ends = [at_us for at_us, _ in self._points[1:]] + [end_us]
        found = [(max(at_us, from_us), stop, value) for (at_us, value), stop in zip(self._points, ends, strict=True)]
        return [(start, stop, value) for start, stop, value in found if stop > start]


def metric_keys(checks: Sequence[Check], variant: str) -> list[Any]:
    """Every metric that checks of finished runs name of this variant, each once."""
    nodes = [node for check in checks for node in (check.node, check.when) if node is not None]
    found = [metric for node in nodes for metric in metrics_of(node) if metric.variant in (None, variant)]
    return list(dict.fromkeys((metric.name, metric.filters) for metric in found))


def _left_of(node: Node) -> Node:
    return node.left if isinstance(node, Binary) else node


_PERCENT = {"worst": 100, "p99": 99, "p95": 95, "p90": 90, "p75": 75, "p50": 50, "median": 50, "best": 0}


def let_through(values: RunValues, checks: Sequence[Check]) -> list[Trouble]:
    """Return what went wrong in a run and fails nothing, but for what an expectation that is asked decides."""
    own = decided(values.variant, checks)
    return [each for each in values.allowed if each.kind not in own]


@frozen_in_order
class Judgement:
    """What came of one check for one variant; ``seed`` is the one that decides. ``is_asked``: its ``when`` held in some seed.

    ``held_in``: in how many seeds it held; of a mean it is not told, 0.
    """

    check: Check
    number: int
    variant: str
    passed: bool
    observed: Value
    seed: int
    note: str = ""
    is_decided: bool = True
    is_asked: bool = True
    held_in: int = 0


class Judge:
    """``runs``: variant -> seed -> values; ``settings``: variant -> Kafka's settings. Every variant has the same seeds."""

    def __init__(
        self, runs: Mapping[str, Mapping[int, RunValues]], settings: Mapping[str, Mapping[str, float | str]], seeds: Sequence[int]
    ) -> None:
        self._runs, self._settings, self._seeds = runs, settings, seeds

    def verdicts(self, checks: Sequence[Check]) -> list[Judgement]:
        """A verdict for each check and each variant it is made for, in the order of the file."""
        return [self._verdict(check, number, name) for number, check in enumerate(checks) for name in self.variants_for(check)]

    def variants_for(self, check: Check) -> tuple[str, ...]:
        """The variants that a check is made for, of those that were run."""
        named = check.named_variants
        if any(name not in self._runs for name in named):
            return ()
        if not check.is_about_one_more:
            return named[:1] if check.variants is None or named[0] in check.variants else ()
        return tuple(name for name in self._runs if check.variants is None or name in check.variants)

    def _verdict(self, check: Check, number: int, variant: str) -> Judgement:
        seeds = [seed for seed in self._seeds if self._is_asked(check, variant, seed)]
        if not seeds:
            note = _joined("not asked: `when` held in no seed", check)
            return Judgement(check, number, variant, passed=True, observed=None, seed=self._seeds[0], note=note, is_asked=False)
        judge = self._of_means if check.at == "mean" else self._of_ranked
        found = judge(check, number, variant, seeds)
        if found.passed and not self._is_fed(check, variant):
            return replace(found, is_asked=False, note=_joined("not asked: nothing is written", check))
        return found

    def _is_fed(self, check: Check, variant: str) -> bool:
        """Whether what it asks about could be otherwise: of records that nobody ever writes nothing is known."""
        named = metrics_of(check.node)
        if not named or not all(metric_kinds()[metric.name].is_of_records for metric in named):
            return True
        return any(run.writes for metric in named for run in self._runs[metric.variant or variant].values())

    def _of_ranked(self, check: Check, number: int, variant: str, seeds: Sequence[int]) -> Judgement:
        found = (self._of_seed(check, number, variant, seed) for seed in seeds)
        ranked = [one for _, one in sorted(found, key=itemgetter(0))]
        rank = max(math.ceil(len(ranked) * _PERCENT[check.at] / 100), 1) - 1
        passed, held_in = all(one.passed for one in ranked[: rank + 1]), sum(one.passed for one in ranked)
        shown = ranked[rank] if passed else next(one for one in reversed(ranked[: rank + 1]) if not one.passed)
        return replace(shown, passed=passed, held_in=held_in, note=_joined(shown.note, check))

    def _source(self, variant: str, seed: int) -> SeedSource:
        return SeedSource({name: runs[seed] for name, runs in self._runs.items()}, self._settings, variant)

    def _is_asked(self, check: Check, variant: str, seed: int) -> bool:
        return check.when is None or bool(evaluate(check.when, self._source(variant, seed)))

    def _of_seed(self, check: Check, number: int, variant: str, seed: int) -> tuple[float, Judgement]:
        """How near it is to not holding (larger is worse), and what came of it."""
        if check.kind is CheckKind.CHECK:
            source = self._source(variant, seed)
            passed = bool(evaluate(check.node, source))
            observed, margin, note = _looked_at(check.node, source, passed=passed)
            return margin, Judgement(check, number, variant, passed, observed, seed, note)
        watched = self._runs[check.named_variants[0] if check.named_variants else variant][seed].watched.get(number)
        if watched is None:
            return 1.0, Judgement(check, number, variant, passed=False, observed=None, seed=seed, note=_CUT_OFF)
        note = watched.undecided if watched.at_us is None else f"at {watched.at_us / 1_000_000:g}s"
        found = Judgement(check, number, variant, watched.passed, watched.observed, seed, note, not watched.undecided)
        return 0.0 if watched.passed else 1.0, found

    def _of_means(self, check: Check, number: int, variant: str, seeds: Sequence[int]) -> Judgement:
        asked = {name: {seed: runs[seed] for seed in seeds} for name, runs in self._runs.items()}
        source = _MeanSource({}, self._settings, variant, asked)
        passed = bool(evaluate(check.node, source))
        observed, _, note = _looked_at(check.node, source, passed=passed)
        return Judgement(check, number, variant, passed, observed, seeds[0], _joined(_joined(note, None, "mean"), check))


@frozen_in_order
class _MeanSource(SeedSource):
    of_seeds: Mapping[str, Mapping[int, RunValues]]

    def metric(self, metric: Metric) -> Value:
        """The mean over all seeds; None where a seed has no number."""
        found = [run.named.get(key_of(metric)) for run in self.of_seeds[metric.variant or self.variant].values()]
        numbers = [value for value in found if isinstance(value, int | float)]
        return math.fsum(numbers) / len(numbers) if len(numbers) == len(found) else None


_CUT_OFF = "the run stopped before it was decided"
_MISSING = "there is no such value"


def _looked_at(node: Node, source: ValueSource, *, passed: bool) -> tuple[Value, float, str]:
    """What a report shows of a comparison: its left side; how near it is to not holding (larger is worse); its right side."""
    if not isinstance(node, Binary) or node.op not in COMPARISONS:
        if evaluate(node, source) is None:
            return None, math.inf, _MISSING
        return passed, 0.0 if passed else 1.0, ""
    left, right = evaluate(node.left, source), evaluate(node.right, source)
    note = f"against {show(_metric_of(node), right)}" if _is_number(right) and _is_looked_up(node.right) else ""
    if not _is_number(left) or not _is_number(right):
        missing = _MISSING if left is None or right is None else note
        return left, -math.inf if passed else math.inf, missing
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    return left, _margin(node.op, left, right), note


def _metric_of(comparison: Binary) -> str:
    """The metric that says the unit of both sides; "": none does."""
    return next((side.name for side in (comparison.left, comparison.right) if isinstance(side, Metric)), "")


def _margin(op: str, left: float, right: float) -> float:
    if math.isinf(left) or math.isinf(right):
        return -math.inf if apply(op, left, right) else math.inf
    if op in ("<", "<="):
        return left - right
    if op in (">", ">="):
        return right - left
    return abs(left - right) if op == "==" else -abs(left - right)


def _is_looked_up(node: Node) -> bool:
    return bool(metrics_of(node)) or isinstance(node, ScenarioSetting)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joined(note: str, check: Check | None, more: str = "") -> str:
    return "; ".join(filter(None, (more, note, check.why if check else "")))
