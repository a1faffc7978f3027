"""Rates over time, and how records spread over a topic's partitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from kgctl.simulate.scenario.values.durations import parse_duration
from kgctl.simulate.scenario.values.rates import parse_rate
from kgctl.simulate.scenario.values.waves import Wave, parse_wave
from kgctl.simulate.scenario.wording import shown

RateSteps: TypeAlias = tuple[tuple[int, int], ...]
"""(from, in microseconds after the warm-up; the rate in uHz), in order."""

_LARGEST_WEIGHT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Keys:
    """``exponent`` for Zipf's law; ``weights`` as given; neither: even."""

    exponent: float | None = None
    weights: tuple[int, ...] = ()

    def for_partitions(self, count: int) -> tuple[int, ...]:
        """Shares of the partitions; empty for even."""
        if self.exponent is None:
            return self.weights
        return tuple(max(round(_LARGEST_WEIGHT / (rank**self.exponent)), 1) for rank in range(1, count + 1))


def parse_traffic(raw: Any) -> RateSteps | Wave:
    """What `parse_rates` takes, or ``sine(1000/s, 5000/s, 24h)``. Raises ValueError."""
    return parse_wave(raw) or parse_rates(raw)


def parse_rates(raw: Any) -> RateSteps:
    """A rate, or ``{0s: RATE, 10m: RATE}``.

    Raises:
        ValueError: it is none, or one of the curves that are not supported yet.
    """
    if isinstance(raw, str) and raw.strip().startswith("sine("):
        raise ValueError("sine(...) is a rate of traffic, from the beginning on; an event sets one rate")
    if isinstance(raw, str) and (match := re.match(r"\s*(replay|ramp)\s*\(", raw)):
        raise ValueError(f"{match.group(1)}(...) is not supported yet; write steps such as {{0s: 6000/s, 10m: 24000/s}}")
    if not isinstance(raw, dict):
        return ((0, parse_rate(raw)),)
    if not raw:
        raise ValueError("there is no rate")
    steps = [(parse_duration(key), parse_rate(value)) for key, value in raw.items()]
    for (earlier, _), (later, _) in pairwise(steps):
        if later <= earlier:
            raise ValueError("the steps must be in the order of time, each time once")
    return tuple(steps) if steps[0][0] == 0 else ((0, 0), *steps)


def parse_keys(raw: Any) -> Keys:
    """``even``, ``zipf(1.1)`` or ``weights([3, 1, 1])``.

    Raises:
        ValueError: it is none of them.
    """
    if raw == "even":
        return Keys()
    if isinstance(raw, str):
        if match := re.fullmatch(r"\s*zipf\(\s*(\d+(?:\.\d+)?)\s*\)\s*", raw):
            if float(match.group(1)) > 10:
                raise ValueError("the exponent of zipf is at most 10")
            return Keys(exponent=float(match.group(1)))
        if match := re.fullmatch(r"\s*weights\(\s*\[?([\d\s,]+)\]?\s*\)\s*", raw):
            return _weights([int(part) for part in match.group(1).split(",") if part.strip()])
    if isinstance(raw, list) and raw and all(type(weight) is int for weight in raw):
        return _weights(raw)
    raise ValueError(f"must be even, zipf(1.1) or weights([3, 1, 1]), not {shown(raw)}")


def _weights(numbers: list[int]) -> Keys:
    if not numbers or min(numbers) < 0 or max(numbers) > _LARGEST_WEIGHT or sum(numbers) == 0:
        raise ValueError("weights are whole numbers of 0 or more, not all of them 0")
    return Keys(weights=tuple(numbers))
