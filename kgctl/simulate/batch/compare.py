"""Two variants with the same seeds: the mean difference with its 95 % interval, and which was better how often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.member.api import Rng
from kgctl.simulate.batch.outcome import BETTER_IF_HIGHER
from kgctl.simulate.batch.values import RunValues
from kgctl.simulate.engine.loop import Randomness

_DRAWS = 2_000


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
