"""Two results compared seed by seed: what differs, which is better, and whether they are of the same question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from kgctl.errors import UsageError
from kgctl.member.api import Rng
from kgctl.model.values import frozen
from kgctl.simulate.batch.judge import RunValues
from kgctl.simulate.batch.outcome import is_better_higher
from kgctl.simulate.engine.context import Randomness
from kgctl.simulate.report.outcome import show
from kgctl.simulate.scenario.metric import headlines, metric_kinds
from kgctl.simulate.scenario.vocabulary import TROUBLES, did_you_mean

_DRAWS = 2_000
FEW_SEEDS = 5
"""With fewer, an interval says little."""


def decided_by(names: Sequence[str], option: str) -> tuple[str, ...]:
    """The metrics that are named; ``any``: those that a verdict goes by. Raises `UsageError` for what is no metric."""
    for name in names:
        if name != "any" and name not in metric_kinds():
            raise UsageError(f"{option}: there is no metric {name!r}{did_you_mean(name, metric_kinds())}")
    return tuple(dict.fromkeys(each for name in names for each in (deciding() if name == "any" else (name,))))


def deciding() -> tuple[str, ...]:
    """The metrics that a verdict goes by, in their order: of what fails a run unasked, those that are always shown, and how long
    records wait: fewer pods make fewer rebalances and shorter gaps, and may read too little."""
    troubles, waits = (kind.metric for kind in TROUBLES.values()), (kind.name for kind in metric_kinds().values() if kind.is_wait)
    return (*filter(None, troubles), *(kind.name for kind in headlines()), *waits)


class Comparison(StrEnum):
    """What b is beside a: the interval of the difference leaves out 0, or it does not."""

    BETTER = "better"
    WORSE = "worse"
    UNCLEAR = "unclear"
    EQUAL = "equal"


@frozen
class MetricDifference:
    """One metric. ``difference`` is b minus a, the mean over ``seeds`` pairs, most likely between ``low`` and ``high``
    (None for a single pair, which says nothing about others).

    ``a_better``, ``b_better``: in how many seeds; the rest is equal.
    """

    metric: str
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None
    a_better: int
    b_better: int
    seeds: int

    @property
    def verdict(self) -> Comparison:
        """Return whether b is better. Of a single pair: which of the two is."""
        if not self.a_better and not self.b_better:
            return Comparison.EQUAL
        low, high = (self.difference, self.difference) if self.low is None or self.high is None else (self.low, self.high)
        if low <= 0 <= high:
            return Comparison.UNCLEAR
        return Comparison.BETTER if self.b_better > self.a_better else Comparison.WORSE


def differences(a: Mapping[int, RunValues], b: Mapping[int, RunValues]) -> list[MetricDifference]:
    """Every metric that both have, over the seeds that both were run with."""
    seeds = [seed for seed in a if seed in b]
    if not seeds:
        return []
    names = [name for name in a[seeds[0]].metrics if name in b[seeds[0]].metrics]
    found = [_difference(name, [(a[seed].metrics.get(name), b[seed].metrics.get(name)) for seed in seeds]) for name in names]
    return [each for each in found if each is not None]


def _difference(name: str, pairs: Sequence[tuple[float | None, float | None]]) -> MetricDifference | None:
    known = [(left, right) for left, right in pairs if left is not None and right is not None]
    if not known:
        return None
    gaps = [_gap(left, right) for left, right in known]
    low, high = _interval(gaps, Randomness(0).stream("bootstrap", name)) if len(gaps) > 1 else (None, None)
    higher = sum(right > left for left, right in known)
    lower = sum(right < left for left, right in known)
    counts_up = is_better_higher(name)
    return MetricDifference(
        metric=name,
        a=_mean([left for left, _ in known]),
        b=_mean([right for _, right in known]),
        difference=_unbounded(_mean(gaps)),
        low=None if low is None else _unbounded(low),
        high=None if high is None else _unbounded(high),
        a_better=lower if counts_up else higher,
        b_better=higher if counts_up else lower,
        seeds=len(known),
    )


_NEVER = 1e18
"""What "never" is away from any time: a mean of differences has a sign, also where one seed never ends in a, another in b."""


def _gap(left: float, right: float) -> float:
    return 0.0 if left == right else min(max(right - left, -_NEVER), _NEVER)


def _unbounded(mean: float) -> float:
    return mean if abs(mean) < _NEVER / 1e6 else math.copysign(math.inf, mean)


def _interval(gaps: Sequence[float], rng: Rng) -> tuple[float, float]:
    """Bootstrap: means of as many draws with replacement; the middle 95 % of them. Seeded: the same gaps, the same interval."""
    count = len(gaps)
    if min(gaps) == max(gaps):
        return gaps[0], gaps[0]
    means = sorted(_mean([gaps[int(rng.random() * count)] for _ in range(count)]) for _ in range(_DRAWS))
    return means[int(_DRAWS * 0.025)], means[int(_DRAWS * 0.975) - 1]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def verdict_text(a: str, b: str, found: Sequence[MetricDifference]) -> str:
    """Which of the two is better, by the metrics that decide, in a sentence."""
    known = {each.metric: each for each in found}
    decided = [known[name] for name in deciding() if name in known]
    better = [with_size(each) for each in decided if each.verdict is Comparison.BETTER]
    worse = [with_size(each) for each in decided if each.verdict is Comparison.WORSE]
    graves = {kind.name for kind in metric_kinds().values() if kind.is_grave}
    if grave := [with_size(each) for each in decided if each.metric in graves and each.verdict is Comparison.WORSE]:
        return f"{b} is worse than {a}: {', '.join(grave)}; with members that are out, the other figures say little"
    if better and worse:
        return f"{b} is better than {a} in {', '.join(better)}, and worse in {', '.join(worse)}"
    if better or worse:
        return f"{b} is {'better' if better else 'worse'} than {a}: {', '.join(better or worse)}"
    unclear = [each.metric for each in decided if each.verdict is Comparison.UNCLEAR]
    rest = f": the seeds disagree about {', '.join(unclear)}" if unclear else ""
    return f"{b} is neither better nor worse than {a}{rest}"


def with_size(each: MetricDifference) -> str:
    """Return the metric with its means: ``max_gap 3s -> 4.2s``; those that look alike as they are."""
    a, b = show(each.metric, each.a), show(each.metric, each.b)
    return f"{each.metric} {a} -> {b}" if a != b else f"{each.metric} {each.a:.6g} -> {each.b:.6g}"


def unlike(a: str, b: str, in_a: Sequence[str] | None, in_b: Sequence[str] | None) -> str:
    """What only one of the two rehearses, in a few words; "" where they rehearse the same. None: it is not known."""
    if in_a is None or in_b is None:
        return f"what happened in {a if in_a is None else b} is not known"
    sides = ((a, [each for each in in_a if each not in in_b]), (b, [each for each in in_b if each not in in_a]))
    return "; ".join(f"only {name} has {', '.join(found)}" for name, found in sides if found)


def no_verdict(a: str, b: str, other: str) -> str:
    """Why neither of two is called better that do not rehearse the same; ``other``: what `unlike` has said."""
    return f"{b} is called neither better nor worse than {a}, as they are not the same question: {other}"


SAME_NAME = "events that stand for each other have the same `name`"
