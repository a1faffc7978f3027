"""Two variants with the same seeds: the mean difference with its 95 % interval, and which was better how often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kgctl.member.api import Rng
from kgctl.simulate.batch.outcome import BETTER_IF_HIGHER
from kgctl.simulate.batch.values import RunValues
from kgctl.simulate.engine.loop import Randomness
from kgctl.simulate.report.metric_labels import show

_DRAWS = 2_000
FEW_SEEDS = 5
"""With fewer, an interval says little."""
DECIDING = ("unavailable", "max_gap", "rebalances", "moves", "duplicates", "time_to_stable")
"""The metrics that a verdict goes by, in their order."""


class Verdict(StrEnum):
    """What b is beside a: the interval of the difference leaves out 0, or it does not."""

    BETTER = "better"
    WORSE = "worse"
    UNCLEAR = "unclear"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
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
    def verdict(self) -> Verdict:
        """Return whether b is better. Of a single pair: which of the two is."""
        if not self.a_better and not self.b_better:
            return Verdict.EQUAL
        low, high = (self.difference, self.difference) if self.low is None or self.high is None else (self.low, self.high)
        if low <= 0 <= high:
            return Verdict.UNCLEAR
        return Verdict.BETTER if self.b_better > self.a_better else Verdict.WORSE


def differences(a: Mapping[int, RunValues], b: Mapping[int, RunValues]) -> list[Difference]:
    """Every metric that both have, over the seeds that both were run with."""
    seeds = [seed for seed in a if seed in b]
    if not seeds:
        return []
    names = [name for name in a[seeds[0]].metrics if name in b[seeds[0]].metrics]
    found = [_difference(name, [(a[seed].metrics.get(name), b[seed].metrics.get(name)) for seed in seeds]) for name in names]
    return [each for each in found if each is not None]


def _difference(name: str, pairs: Sequence[tuple[float | None, float | None]]) -> Difference | None:
    known = [(left, right) for left, right in pairs if left is not None and right is not None]
    finite = [(left, right) for left, right in known if math.isfinite(left) and math.isfinite(right)]
    if not finite:
        return None
    gaps = [right - left for left, right in finite]
    low, high = _interval(gaps, Randomness(0).stream("bootstrap", name)) if len(gaps) > 1 else (None, None)
    higher = sum(right > left for left, right in known)
    lower = sum(right < left for left, right in known)
    is_better_higher = name in BETTER_IF_HIGHER
    return Difference(
        metric=name,
        a=_mean([left for left, _ in finite]),
        b=_mean([right for _, right in finite]),
        difference=_mean(gaps),
        low=low,
        high=high,
        a_better=lower if is_better_higher else higher,
        b_better=higher if is_better_higher else lower,
        seeds=len(known),
    )


def _interval(gaps: Sequence[float], rng: Rng) -> tuple[float, float]:
    """Bootstrap: means of as many draws with replacement; the middle 95 % of them. Seeded: the same gaps, the same interval."""
    count = len(gaps)
    if min(gaps) == max(gaps):
        return gaps[0], gaps[0]
    means = sorted(_mean([gaps[int(rng.random() * count)] for _ in range(count)]) for _ in range(_DRAWS))
    return means[int(_DRAWS * 0.025)], means[int(_DRAWS * 0.975) - 1]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def verdict_text(a: str, b: str, found: Sequence[Difference]) -> str:
    """Which of the two is better, by the metrics that decide, in a sentence."""
    known = {each.metric: each for each in found}
    deciding = [known[name] for name in DECIDING if name in known]
    better = [_with_size(each) for each in deciding if each.verdict is Verdict.BETTER]
    worse = [_with_size(each) for each in deciding if each.verdict is Verdict.WORSE]
    if better and worse:
        return f"{b} is better than {a} in {', '.join(better)}, and worse in {', '.join(worse)}"
    if better or worse:
        return f"{b} is {'better' if better else 'worse'} than {a}: {', '.join(better or worse)}"
    unclear = [each.metric for each in deciding if each.verdict is Verdict.UNCLEAR]
    rest = f": the seeds disagree about {', '.join(unclear)}" if unclear else ""
    return f"{b} is neither better nor worse than {a}{rest}"


def _with_size(each: Difference) -> str:
    return f"{each.metric} {show(each.metric, each.a)} -> {show(each.metric, each.b)}"
