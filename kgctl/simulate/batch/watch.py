"""Checks that watch a run while it goes on: always, eventually, steady."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.simulate.batch.values import Watched
from kgctl.simulate.scenario.checks import Check, CheckKind, RunSource
from kgctl.simulate.scenario.expressions import Binary, Value, evaluate, metrics_of


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


class Watcher(ABC):
    """Sees every moment of a run at which something has happened (`Observer.on_step`)."""

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        self.check = check
        self.settings = settings

    def on_trace(self, event: Any) -> None:  # noqa: B027 - only some look at single events
        """Something happened."""

    @abstractmethod
    def on_step(self, at_us: int, metrics: Any) -> None:
        """Everything of this moment is done."""

    @abstractmethod
    def result(self, end_us: int, metrics: Any) -> Watched:
        """The run is over."""

    def _value(self, metrics: Any) -> Value:
        return evaluate(self.check.node, RunSource(metrics, self.settings))

    def _left(self, metrics: Any) -> Value:
        node = self.check.node
        return evaluate(node.left if isinstance(node, Binary) else node, RunSource(metrics, self.settings))


class Always(Watcher):
    """It has held at every moment after the warm-up."""

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._broken: Watched | None = None

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Look, until it has once not held."""
        if self._broken is None and at_us >= 0 and not self._value(metrics):
            self._broken = Watched(passed=False, observed=self._left(metrics), at_us=at_us)

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Passed unless it has once not held."""
        self.on_step(end_us, metrics)
        return self._broken or Watched(passed=True, observed=self._left(metrics))


class Eventually(Watcher):
    """It held at some moment from ``after`` on, at most ``within`` later."""

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._from_us: int | None = None if isinstance(check.after, str) else check.after
        self._held_us: int | None = None
        self._before: Value = None

    def on_trace(self, event: Any) -> None:
        """Wait for the end of the event named in ``after``; of every event for ``last``."""
        after = self.check.after
        is_end = event.kind == "event" and event.what == "ends"
        if is_end and after in {"last", event.event}:
            self._from_us, self._held_us = event.at_us, None

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Look, until it holds."""
        if self._held_us is not None:
            return
        from_us = self._from_us
        if from_us is None or at_us < from_us:
            self._before = self._value(metrics)
            return
        if at_us > from_us and self._before and not self._is_late(from_us):
            self._held_us = from_us
            return
        self._before = None
        if not self._is_late(at_us) and self._value(metrics):
            self._held_us = at_us

    def _is_late(self, at_us: int) -> bool:
        within = self.check.within_us
        return self._from_us is None or (within is not None and at_us > self._from_us + within)

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Passed if it held in time."""
        self.on_step(end_us, metrics)
        return Watched(self._held_us is not None, self._left(metrics), self._held_us)


class Steady(Watcher):
    """In its last stretch of time the metric never left its own mean by more than the share that is allowed."""

    def __init__(self, check: Check, settings: Mapping[str, float | str]) -> None:
        super().__init__(check, settings)
        self._points: list[tuple[int, float]] = []

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Note the value where it changes."""
        value = self._value(metrics)
        if isinstance(value, int | float) and (not self._points or self._points[-1][1] != value):
            self._points.append((at_us, float(value)))

    def result(self, end_us: int, metrics: Any) -> Watched:
        """Passed if it has settled; observed is the largest distance from the mean, as a share of it."""
        self.on_step(end_us, metrics)
        from_us = max(end_us - self.check.last_us, self._points[0][0] if self._points else end_us)
        stretches = self._stretches(from_us, end_us)
        length = sum(stop - start for start, stop, _ in stretches)
        if not length:
            return Watched(passed=False, observed=None, at_us=end_us)
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
