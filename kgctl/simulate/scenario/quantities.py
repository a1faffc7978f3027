"""Durations, rates, shares, sizes, curves and distributions of a scenario file, and how messages name what stands there.

All are whole numbers: microseconds (``*_us``), millionths (``*_ppm``, ``*_uhz``), bytes. Every draw from a distribution uses
``rng.random()`` and basic arithmetic only, so that one seed means one sequence on every machine.
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kgctl import errors
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.member.api import Rng


def shown(value: object) -> str:
    """A value as a message names it, in the words of the file: ``'five'``, ``true``, ``a list``, ``nothing``."""
    if isinstance(value, dict | list):
        return f"{'a' if value else 'an empty'} {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


DURATION_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": r"^\s*((\d+(\.\d+)?)\s*(us|ms|s|m|h|d)\s*)+$"}, {"const": 0}],
    "description": "A duration: 500ms, 45s, 1m30s, 2h.",
}
DISTRIBUTION_SCHEMA = {
    "type": ["string", "integer"],
    "description": "A duration (45s), a range (20s..40s), normal(35s, 3s), lognormal(2ms, 1ms), exp(5m) or pareto(10ms, 1.5).",
}
RATE_SCHEMA = {"type": ["string", "number"], "description": "Records in a time: 1000/s, 2.5k/s, 90/m."}
SHARE_SCHEMA = {"type": ["string", "number"], "description": "A share: 0.1%."}

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
LONGEST_US = 3_660 * UNITS_US["d"]
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:us|ms|s|m|h|d)\s*)+")


def parse_duration(raw: object, *, bare_unit: str | None = None) -> int:
    """Microseconds. ``bare_unit``: what a number without a unit counts; None: only 0 may have none.

    Raises:
        ValueError: it is no duration, or one beyond ten years.
    """
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return _bare(raw, bare_unit)
    if not isinstance(raw, str):
        raise ValueError(f"a duration is needed, such as 500ms, 45s or 5m; not {shown(raw)}")
    text = raw.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return _bare(float(text) if "." in text else int(text), bare_unit)
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{shown(raw)} is no duration; write one such as 500ms, 45s, 1m30s or 2h")
    total = sum((Decimal(number) * UNITS_US[unit] for number, unit in _PART.findall(text)), Decimal(0))
    return _bounded(int(total), raw)


def is_duration(text: str) -> bool:
    """Whether `parse_duration` takes it."""
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


def _bare(number: float, bare_unit: str | None) -> int:
    if number < 0:
        raise ValueError(f"a duration is never negative: {number}")
    if bare_unit is None:
        if number:
            raise ValueError(f"{number} has no unit; write {number}s, or {number}ms")
        return 0
    if not number <= LONGEST_US:
        raise ValueError(f"{number} is no duration")
    return _bounded(int(Decimal(str(number)) * UNITS_US[bare_unit]), number)


def _bounded(us: int, raw: object) -> int:
    if us > LONGEST_US:
        raise ValueError(f"{raw} is longer than ten years")
    return us


def cut_off(text: str) -> str:
    """A hint for ``{boot: normal(35s, 3s)}``, of which YAML leaves ``normal(35s``."""
    return "; inside { } it needs quotes, for its comma" if text.count("(") > text.count(")") else ""


def format_duration(us: int) -> str:
    """Return the shortest notation of a duration: ``1m30s``."""
    if us == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, us = divmod(us, UNITS_US[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)\s*/\s*(s|sec|m|min|h)")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600}
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_HIGHEST_UHZ = 10**9 * 10**6


def parse_rate(raw: object) -> int:
    """Millionths of a record a second; a number without a unit is records a second.

    Raises:
        ValueError: it is no rate.
    """
    if isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < float("inf"):
        return _bounded_rate(Decimal(str(raw)), raw)
    match = _RATE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no rate; write one such as 1000/s, 2.5k/s or 90/m")
    number, scale, per = match.groups()
    return _bounded_rate(Decimal(number) * _SCALE[scale] / _SECONDS[per], raw)


def _bounded_rate(per_second: Decimal, raw: object) -> int:
    uhz = int(per_second * 1_000_000)
    if uhz > _HIGHEST_UHZ:
        raise ValueError(f"{raw} is more than a thousand million records a second")
    return uhz


def parse_share(raw: object) -> int:
    """Millionths: ``0.1%`` is 1000, as is the number 0.001.

    Raises:
        ValueError: it is no share, or outside of 0 to 100 %.
    """
    ppm: Decimal | None = None
    if isinstance(raw, str) and (match := _SHARE.fullmatch(raw.strip())):
        ppm = Decimal(match.group(1)) * 10_000
    elif isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw <= 1:
        ppm = Decimal(str(raw)) * 1_000_000
    if ppm is None or not 0 <= ppm <= 1_000_000:
        raise ValueError(f"{shown(raw)} is no share; write one between 0% and 100%, such as 0.1%")
    return int(ppm)


def share_text(ppm: int) -> str:
    """Return a share as a file would have it."""
    return f"{ppm / 10_000:g}%"


UNIT_PR = 1_000_000_000_000
"""One record, as what is written and read is counted: rates (uHz) times microseconds."""
MOST_PIECES = 96
_SHORTEST_PIECE_US = 1_000_000
_PPM = 1_000_000
_CALL = re.compile(r"\s*[a-z]+\((.*)\)\s*")


@frozen_in_order
class Wave:
    """From the low rate at time 0 to the high one half a period later and back, again and again.

    In pieces of one rate each, the mean of the curve over the piece: 96 a period (a quarter of an hour of a day) or one a second.
    """

    low_uhz: int
    high_uhz: int
    period_us: int

    @property
    def pieces(self) -> int:
        return max(min(self.period_us // _SHORTEST_PIECE_US, MOST_PIECES), 2)

    @property
    def mean_uhz(self) -> int:
        return (self.low_uhz + self.high_uhz) // 2

    def begin_us(self, number: int) -> int:
        """When this piece begins, of all that ever come; the first is 0."""
        return self.period_us * number // self.pieces

    def rate_uhz(self, number: int) -> int:
        angle = 2 * math.pi / self.pieces
        first = (number % self.pieces) * angle
        # Rounded to millionths, so that the last digit of a machine's sine does not matter.
        share_ppm = round(_PPM * (0.5 - (math.sin(first + angle) - math.sin(first)) / (2 * angle)))
        return self.low_uhz + (self.high_uhz - self.low_uhz) * share_ppm // _PPM


def parse_wave(raw: object) -> Wave | None:
    """The wave that a text is; None: it does not begin like one.

    Raises:
        ValueError: it does, and is wrong.
    """
    if not isinstance(raw, str) or not raw.strip().startswith("sine("):
        return None
    parts = _arguments(raw, "a sine has a lowest rate, a highest one and a period: sine(1000/s, 5000/s, 24h)")
    wave = Wave(parse_rate(parts[0]), parse_rate(parts[1]), parse_duration(parts[2]))
    if wave.low_uhz > wave.high_uhz:
        raise ValueError(f"{raw!r}: the lowest rate comes first")
    if wave.period_us < 2 * _SHORTEST_PIECE_US:
        raise ValueError(f"{raw!r}: the period is at least 2s")
    return wave


def parse_ramp(raw: object) -> tuple[tuple[int, int], ...]:
    """Return the steps (from, rate) of ``ramp(1000/s, 5000/s, 10m)``, which holds its last rate; none if it is no ramp.

    In pieces of one rate each, the mean of the line over the piece: up to 96, of a second or more.

    Raises:
        ValueError: it begins like a ramp, and is wrong.
    """
    if not isinstance(raw, str) or not raw.strip().startswith("ramp("):
        return ()
    parts = _arguments(raw, "a ramp has a first rate, a last one and a time: ramp(1000/s, 5000/s, 10m)")
    first_uhz, last_uhz, length_us = parse_rate(parts[0]), parse_rate(parts[1]), parse_duration(parts[2])
    if length_us < _SHORTEST_PIECE_US:
        raise ValueError(f"{raw!r}: a ramp takes 1s or more")
    pieces = max(min(length_us // _SHORTEST_PIECE_US, MOST_PIECES), 1)
    means = [first_uhz + (last_uhz - first_uhz) * (2 * number + 1) // (2 * pieces) for number in range(pieces)]
    return (*((length_us * number // pieces, mean) for number, mean in enumerate(means)), (length_us, last_uhz))


def _arguments(text: str, form: str) -> list[str]:
    """The three arguments of a call. Raises ValueError."""
    match = _CALL.fullmatch(text)
    parts = [part.strip() for part in match.group(1).split(",")] if match else []
    if len(parts) != 3:
        raise ValueError(f"{text!r}: {form}{cut_off(text)}")
    return parts


class Distribution(Protocol):
    """A duration. All are immutable; ``upper_us`` None: there is no bound."""

    def sample(self, rng: Rng) -> int:
        """Draw a value, in microseconds."""
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


@frozen_in_order
class Constant:
    """A distribution with one value: ``45s``."""

    value_us: int

    def sample(self, rng: Rng) -> int:  # noqa: ARG002  # nothing to draw
        return self.value_us

    def residual(self, rng: Rng) -> int:
        """Draw evenly between 0 and the value."""
        return int(rng.random() * self.value_us)

    @property
    def mean_us(self) -> int:
        return self.value_us

    @property
    def upper_us(self) -> int | None:
        return self.value_us


@frozen_in_order
class Uniform:
    """Evenly spread: ``20s..40s``, both ends included."""

    low_us: int
    high_us: int

    def sample(self, rng: Rng) -> int:
        """Draw a value of the range."""
        return self.low_us + int(rng.random() * (self.high_us - self.low_us + 1))

    def residual(self, rng: Rng) -> int:
        """A share of a value that was drawn in proportion to its length: long ones are met more often."""
        low, high = self.low_us, self.high_us
        length = math.sqrt(low * low + rng.random() * (high * high - low * low))
        return int(rng.random() * length)

    @property
    def mean_us(self) -> int:
        return (self.low_us + self.high_us) // 2

    @property
    def upper_us(self) -> int | None:
        return self.high_us


class _Unbounded(ABC):
    """A distribution with a tail: it has no highest value."""

    __slots__ = ()

    @abstractmethod
    def sample(self, rng: Rng) -> int:
        """Draw a value."""

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
        return None


@frozen_in_order
class Normal(_Unbounded):
    """``normal(35s, 3s)``: mean and standard deviation; what falls below 0 is 0."""

    mean_us: int
    deviation_us: int

    def sample(self, rng: Rng) -> int:
        """Draw a value."""
        return max(round(self.mean_us + self.deviation_us * _standard_normal(rng)), 0)


@frozen_in_order
class LogNormal(_Unbounded):
    """``lognormal(2ms, 1ms)``: mean and standard deviation of the values themselves, not of their logarithms."""

    mean_us: int
    deviation_us: int

    def sample(self, rng: Rng) -> int:
        """Draw a value."""
        if self.mean_us == 0:
            return 0
        variance = math.log1p((self.deviation_us / self.mean_us) ** 2)
        location = math.log(self.mean_us) - variance / 2
        return round(math.exp(location + math.sqrt(variance) * _standard_normal(rng)))


@frozen_in_order
class Exponential(_Unbounded):
    """``exp(5m)``: the distance of independent events, with this mean."""

    mean_us: int

    def sample(self, rng: Rng) -> int:
        """Draw a value."""
        return round(-self.mean_us * math.log1p(-rng.random()))


def _standard_normal(rng: Rng) -> float:
    """Box and Muller's transformation; its second number is not kept, so that a draw has no memory."""
    radius = math.sqrt(-2.0 * math.log1p(-rng.random()))
    return radius * math.cos(2.0 * math.pi * rng.random())


ZERO = Constant(0)


_DISTRIBUTION = re.compile(r"([a-z]+)\s*\(([^()]*)\)")
FORMS = "45s, 20s..40s, normal(35s, 3s), lognormal(2ms, 1ms) or exp(5m)"
_CALLED: Mapping[str, type[Normal | LogNormal | Exponential]] = {"normal": Normal, "lognormal": LogNormal, "exp": Exponential}


def parse_distribution(raw: object) -> Distribution:
    """A duration, a range of them, or a distribution.

    Raises:
        ValueError: it is none.
    """
    if isinstance(raw, str):
        if match := _DISTRIBUTION.fullmatch(raw.strip()):
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
    if name not in _CALLED:
        known = f"; known: {', '.join(_CALLED)}"
        raise ValueError(f"unknown distribution {name!r}{errors.did_you_mean(name, _CALLED, quoted=True) or known}")
    kind = _CALLED[name]
    if len(arguments) != len(fields(kind)):
        raise ValueError(f"{name} takes {len(fields(kind))} values, not {len(arguments)}: {raw!r}")
    return kind(*map(parse_duration, arguments))


def distribution_text(found: Distribution) -> str:
    """Return a distribution as a file would have it: ``1ms``, ``20s..40s``, ``normal(35s, 3s)``."""
    if isinstance(found, Constant):
        return format_duration(found.value_us)
    if isinstance(found, Uniform):
        return f"{format_duration(found.low_us)}..{format_duration(found.high_us)}"
    assert isinstance(found, Normal | LogNormal | Exponential)
    (name,) = (name for name, kind in _CALLED.items() if isinstance(found, kind))
    return f"{name}({', '.join(format_duration(getattr(found, each.name)) for each in fields(found))})"


RateSteps: TypeAlias = tuple[tuple[int, int], ...]
"""(from, in microseconds after the warm-up; the rate in uHz), in order."""


def rates_text(rates: RateSteps | Wave) -> str:
    """Rates in the words of a file, and of many (a ramp, a recording) how many there are, from the lowest to the highest."""
    if isinstance(rates, Wave):
        low, high = rate_text(rates.low_uhz), rate_text(rates.high_uhz)
        return f"sine({low}, {high}, {format_duration(rates.period_us)})"
    if len(rates) > _MOST_RATES:
        low, high = (rate_text(of(rate for _, rate in rates)) for of in (min, max))
        return f"{len(rates)} rates, {low} to {high} ({hashlib.sha256(str(rates).encode()).hexdigest()[:8]})"
    return ", from ".join(f"{f'{format_duration(at_us)} ' if at_us else ''}{rate_text(rate)}" for at_us, rate in rates)


_MOST_RATES = 6


def rate_text(uhz: int) -> str:
    """Return a rate as a file would have it."""
    return f"{uhz / 1_000_000:.12g}/s"


LARGEST_WEIGHT = 1_000_000_000


@frozen_in_order
class Keys:
    """``exponent`` for Zipf's law; ``weights`` as given, or by that law; neither: even."""

    exponent: float | None = None
    weights: tuple[int, ...] = ()

    def over(self, count: int) -> Keys:
        """The same with each of so many partitions' share of the records."""
        if self.exponent is None:
            return self
        weights = (max(round(LARGEST_WEIGHT / (rank**self.exponent)), 1) for rank in range(1, count + 1))
        return replace(self, weights=tuple(weights))

    def __str__(self) -> str:
        """In the words of a file."""
        if self.exponent is not None:
            return f"zipf({self.exponent:g})"
        return f"weights([{', '.join(map(str, self.weights))}])" if self.weights else "even"
