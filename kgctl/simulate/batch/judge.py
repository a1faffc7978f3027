"""Holds expectations against the values of all seeds. By default the worst seed decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.simulate.batch.values import RunValues, SeedSource, key_of
from kgctl.simulate.scenario.checks import Check, CheckKind
from kgctl.simulate.scenario.expressions import (
    COMPARISONS,
    Binary,
    Metric,
    Node,
    Setting,
    Source,
    Value,
    apply,
    evaluate,
    metrics_of,
)

_PERCENT = {"worst": 100, "p99": 99, "p95": 95, "p90": 90, "p75": 75, "p50": 50, "median": 50, "best": 0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check for one variant; ``seed`` is the one that decides."""

    check: Check
    number: int
    variant: str
    passed: bool
    observed: Value
    seed: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class _OfSeed:
    seed: int
    passed: bool
    observed: Value
    margin: float
    note: str


class Judge:
    """``runs``: variant -> seed -> values; ``settings``: variant -> Kafka's settings. Every variant has the same seeds."""

    def __init__(
        self, runs: Mapping[str, Mapping[int, RunValues]], settings: Mapping[str, Mapping[str, float | str]], seeds: Sequence[int]
    ) -> None:
        self._runs, self._settings, self._seeds = runs, settings, seeds

    def verdicts(self, checks: Sequence[Check]) -> list[Verdict]:
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

    def _verdict(self, check: Check, number: int, variant: str) -> Verdict:
        if check.at == "mean":
            return self._of_means(check, number, variant)
        found = [self._of_seed(check, number, variant, seed) for seed in self._seeds]
        asked = [one for one in found if one is not None]
        if not asked:
            note = _joined("not asked: `when` held in no seed", check)
            return Verdict(check, number, variant, passed=True, observed=None, seed=self._seeds[0], note=note)
        ranked = sorted(asked, key=lambda one: one.margin)
        rank = max(math.ceil(len(ranked) * _PERCENT[check.at] / 100), 1) - 1
        passed = all(one.passed for one in ranked[: rank + 1])
        shown = ranked[rank] if passed else next(one for one in reversed(ranked[: rank + 1]) if not one.passed)
        return Verdict(check, number, variant, passed, shown.observed, shown.seed, _joined(shown.note, check))

    def _of_seed(self, check: Check, number: int, variant: str, seed: int) -> _OfSeed | None:
        source = SeedSource({name: runs[seed] for name, runs in self._runs.items()}, self._settings, variant)
        if check.when is not None and not evaluate(check.when, source):
            return None
        if check.kind is not CheckKind.CHECK:
            watched = self._runs[self._watched_variant(check, variant)][seed].watched.get(number)
            if watched is None:
                return _OfSeed(seed, passed=False, observed=None, margin=1.0, note="the run stopped before it was decided")
            note = "" if watched.at_us is None else f"at {watched.at_us / 1_000_000:g}s"
            return _OfSeed(seed, watched.passed, watched.observed, 0.0 if watched.passed else 1.0, note)
        passed = bool(evaluate(check.node, source))
        observed, margin, note = _looked_at(check.node, source, passed=passed)
        return _OfSeed(seed, passed, observed, margin, note)

    @staticmethod
    def _watched_variant(check: Check, variant: str) -> str:
        return check.named_variants[0] if check.named_variants else variant

    def _of_means(self, check: Check, number: int, variant: str) -> Verdict:
        source = _MeanSource(self._runs, self._settings, variant)
        passed = bool(evaluate(check.node, source))
        observed, _, note = _looked_at(check.node, source, passed=passed)
        return Verdict(check, number, variant, passed, observed, self._seeds[0], _joined(_joined(note, None, "mean"), check))


@dataclass(frozen=True, slots=True)
class _MeanSource:
    runs: Mapping[str, Mapping[int, RunValues]]
    settings: Mapping[str, Mapping[str, float | str]]
    variant: str

    def metric(self, metric: Metric) -> Value:
        """The mean over all seeds; None where a seed has no number."""
        found = [run.named.get(key_of(metric)) for run in self.runs[metric.variant or self.variant].values()]
        numbers = [value for value in found if isinstance(value, int | float)]
        return math.fsum(numbers) / len(numbers) if len(numbers) == len(found) else None

    def setting(self, setting: Setting) -> Value:
        """The setting's value."""
        return self.settings[setting.variant or self.variant].get(setting.name)


def _looked_at(node: Node, source: Source, *, passed: bool) -> tuple[Value, float, str]:
    """What a report shows of a comparison: its left side; how near it is to not holding (larger is worse); its right side."""
    if not isinstance(node, Binary) or node.op not in COMPARISONS:
        return passed, 0.0 if passed else 1.0, ""
    left, right = evaluate(node.left, source), evaluate(node.right, source)
    note = f"against {right:g}" if _is_number(right) and _is_looked_up(node.right) else ""
    if not _is_number(left) or not _is_number(right):
        missing = "there is no such value" if left is None or right is None else note
        return left, -math.inf if passed else math.inf, missing
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    return left, _margin(node.op, left, right), note


def _margin(op: str, left: float, right: float) -> float:
    if math.isinf(left) or math.isinf(right):
        return -math.inf if apply(op, left, right) else math.inf
    if op in ("<", "<="):
        return left - right
    if op in (">", ">="):
        return right - left
    return abs(left - right) if op == "==" else -abs(left - right)


def _is_looked_up(node: Node) -> bool:
    """Whether it is more than a number that the check itself has."""
    return bool(metrics_of(node)) or isinstance(node, Setting)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _joined(note: str, check: Check | None, more: str = "") -> str:
    return "; ".join(filter(None, (more, note, check.why if check else "")))
