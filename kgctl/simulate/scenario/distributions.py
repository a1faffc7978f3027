"""How long something takes: fixed, or drawn anew each time from a distribution. Whole microseconds, never negative.

Every draw uses ``rng.random()`` and basic arithmetic only, so that one seed means one sequence on every machine.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from kgctl.member.api import Rng
from kgctl.simulate.scenario.quantities import cut_off, parse_duration


class Distribution(Protocol):
    """A duration. All are immutable; ``upper_us`` None: there is no bound."""

    def sample(self, rng: Rng) -> int:
        """A value, in microseconds."""
        ...

    def residual(self, rng: Rng) -> int:
        """How long it still takes, seen at a moment that has nothing to do with its beginning, in microseconds.

        For events that follow each other at distances of this distribution it is the time to the next one.
        """
        ...

    @property
    def mean_us(self) -> int:
        """The mean; for a distribution that has none, the median."""
        ...

    @property
    def upper_us(self) -> int | None:
        """The largest value there can be; None: no bound."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same: ``45s``."""

    value_us: int

    def sample(self, rng: Rng) -> int:  # noqa: ARG002  # nothing to draw
        """The value."""
        return self.value_us

    def residual(self, rng: Rng) -> int:
        """Anything up to the value."""
        return int(rng.random() * self.value_us)

    @property
    def mean_us(self) -> int:
        """The value."""
        return self.value_us

    @property
    def upper_us(self) -> int | None:
        """The value."""
        return self.value_us


@dataclass(frozen=True, slots=True)
class Uniform:
    """Evenly spread: ``20s..40s``, both ends included."""

    low_us: int
    high_us: int

    def sample(self, rng: Rng) -> int:
        """A value of the range."""
        return self.low_us + int(rng.random() * (self.high_us - self.low_us + 1))

    def residual(self, rng: Rng) -> int:
        """A share of a value that was drawn in proportion to its length: long ones are met more often."""
        low, high = self.low_us, self.high_us
        length = math.sqrt(low * low + rng.random() * (high * high - low * low))
        return int(rng.random() * length)

    @property
    def mean_us(self) -> int:
        """The middle."""
        return (self.low_us + self.high_us) // 2

    @property
    def upper_us(self) -> int | None:
        """The upper end."""
        return self.high_us


class _Unbounded(ABC):
    """What the distributions with a tail share."""

    __slots__ = ()

    @abstractmethod
    def sample(self, rng: Rng) -> int:
        """A value."""

    def residual(self, rng: Rng) -> int:
        """A share of the longest-lived of a few draws in proportion to their lengths."""
        draws = [self.sample(rng) for _ in range(8)]
        mark = rng.random() * sum(draws)
        for length in draws:
            if mark < length:
                return int(length - mark)
            mark -= length
        return 0

    @property
    def upper_us(self) -> int | None:
        """There is none."""
        return None


@dataclass(frozen=True, slots=True)
class Normal(_Unbounded):
    """``normal(35s, 3s)``: mean and standard deviation; what falls below 0 is 0."""

    mean_value_us: int
    deviation_us: int

    def sample(self, rng: Rng) -> int:
        """A value."""
        return max(round(self.mean_value_us + self.deviation_us * _standard_normal(rng)), 0)

    @property
    def mean_us(self) -> int:
        """The mean."""
        return self.mean_value_us


@dataclass(frozen=True, slots=True)
class LogNormal(_Unbounded):
    """``lognormal(2ms, 1ms)``: mean and standard deviation of the values themselves, not of their logarithms."""

    mean_value_us: int
    deviation_us: int

    def sample(self, rng: Rng) -> int:
        """A value."""
        if self.mean_value_us == 0:
            return 0
        variance = math.log1p((self.deviation_us / self.mean_value_us) ** 2)
        location = math.log(self.mean_value_us) - variance / 2
        return round(math.exp(location + math.sqrt(variance) * _standard_normal(rng)))

    @property
    def mean_us(self) -> int:
        """The mean."""
        return self.mean_value_us


@dataclass(frozen=True, slots=True)
class Exponential(_Unbounded):
    """``exp(5m)``: the distance of independent events, with this mean."""

    mean_value_us: int

    def sample(self, rng: Rng) -> int:
        """A value."""
        return round(-self.mean_value_us * math.log1p(-rng.random()))

    @property
    def mean_us(self) -> int:
        """The mean."""
        return self.mean_value_us


@dataclass(frozen=True, slots=True)
class Pareto(_Unbounded):
    """``pareto(10ms, 1.5)``: the smallest value, and the exponent of the tail (the smaller, the heavier)."""

    minimum_us: int
    exponent: float

    def sample(self, rng: Rng) -> int:
        """A value."""
        return round(self.minimum_us * math.pow(1.0 - rng.random(), -1.0 / self.exponent))

    @property
    def mean_us(self) -> int:
        """The mean; the median for an exponent of 1 or below, where there is no mean."""
        if self.exponent <= 1:
            return round(self.minimum_us * math.pow(2, 1 / self.exponent))
        return round(self.minimum_us * self.exponent / (self.exponent - 1))


def _standard_normal(rng: Rng) -> float:
    """Box and Muller's transformation; its second number is not kept, so that a draw has no memory."""
    radius = math.sqrt(-2.0 * math.log1p(-rng.random()))
    return radius * math.cos(2.0 * math.pi * rng.random())


ZERO = Constant(0)


_CALL = re.compile(r"([a-z]+)\s*\(([^()]*)\)")
FORMS = "45s, 20s..40s, normal(35s, 3s), lognormal(2ms, 1ms), exp(5m) or pareto(10ms, 1.5)"
_ARGUMENTS = {"normal": 2, "lognormal": 2, "exp": 1, "pareto": 2}


def parse_distribution(raw: object) -> Distribution:
    """A duration, a range of them, or a distribution.

    Raises:
        ValueError: it is none.
    """
    if isinstance(raw, str):
        if match := _CALL.fullmatch(raw.strip()):
            return _call(match.group(1), [part.strip() for part in match.group(2).split(",")], raw)
        if ".." in raw:
            return _range(raw)
        if "(" in raw:
            raise ValueError(f"{raw!r} is no duration; write {FORMS}{cut_off(raw)}")
    return Constant(parse_duration(raw))


def _range(raw: str) -> Distribution:
    low_text, _, high_text = raw.partition("..")
    low, high = parse_duration(low_text.strip()), parse_duration(high_text.strip())
    if low > high:
        raise ValueError(f"{raw!r} ends before it begins")
    return Uniform(low, high)


def _call(name: str, arguments: list[str], raw: str) -> Distribution:
    from kgctl.simulate.scenario.wording import did_you_mean

    if name not in _ARGUMENTS:
        raise ValueError(f"unknown distribution {name!r}{did_you_mean(name, _ARGUMENTS, list_up_to=4)}")
    if len(arguments) != _ARGUMENTS[name]:
        raise ValueError(f"{name} takes {_ARGUMENTS[name]} values, not {len(arguments)}: {raw!r}")
    first = parse_duration(arguments[0])
    if name == "exp":
        return Exponential(first)
    if name == "pareto":
        return Pareto(first, _exponent(arguments[1]))
    return (Normal if name == "normal" else LogNormal)(first, parse_duration(arguments[1]))


def _exponent(text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not 0.1 <= float(text) <= 100:
        raise ValueError(f"the exponent of pareto is a number between 0.1 and 100, not {text!r}")
    return float(text)
