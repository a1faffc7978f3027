"""Rates that swing: ``sine(1000/s, 5000/s, 24h)``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from kgctl.simulate.scenario.values.durations import cut_off, parse_duration
from kgctl.simulate.scenario.values.rates import parse_rate

MOST_PIECES = 96
_SHORTEST_PIECE_US = 1_000_000
_PPM = 1_000_000
_WAVE = re.compile(r"\s*sine\((.*)\)\s*")


@dataclass(frozen=True, slots=True)
class Wave:
    """From the low rate at time 0 to the high one half a period later and back, again and again.

    In pieces of one rate each, the mean of the curve over the piece: 96 a period (a quarter of an hour of a day) or one a second.
    """

    low_uhz: int
    high_uhz: int
    period_us: int

    @property
    def pieces(self) -> int:
        """Of a period."""
        return max(min(self.period_us // _SHORTEST_PIECE_US, MOST_PIECES), 2)

    @property
    def mean_uhz(self) -> int:
        """Over a period."""
        return (self.low_uhz + self.high_uhz) // 2

    def begin_us(self, number: int) -> int:
        """When this piece begins, of all that ever come; the first is 0."""
        return self.period_us * number // self.pieces

    def rate_uhz(self, number: int) -> int:
        """The rate of this piece."""
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
    match = _WAVE.fullmatch(raw)
    parts = [part.strip() for part in match.group(1).split(",")] if match else []
    if len(parts) != 3:
        raise ValueError(
            f"{raw!r}: a sine has a lowest rate, a highest one and a period: sine(1000/s, 5000/s, 24h){cut_off(raw)}"
        )
    wave = Wave(parse_rate(parts[0]), parse_rate(parts[1]), parse_duration(parts[2]))
    if wave.low_uhz > wave.high_uhz:
        raise ValueError(f"{raw!r}: the lowest rate comes first")
    if wave.period_us < 2 * _SHORTEST_PIECE_US:
        raise ValueError(f"{raw!r}: the period is at least 2s")
    return wave
