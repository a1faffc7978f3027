"""Rates (``1000/s``, ``2.5k/s``, ``90/m``) in millionths of a record a second, and shares (``0.1%``) in millionths."""

from __future__ import annotations

import re
from decimal import Decimal

from kgctl.simulate.scenario.wording import shown

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
        return _bounded(Decimal(str(raw)), raw)
    match = _RATE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no rate; write one such as 1000/s, 2.5k/s or 90/m")
    number, scale, per = match.groups()
    return _bounded(Decimal(number) * _SCALE[scale] / _SECONDS[per], raw)


def _bounded(per_second: Decimal, raw: object) -> int:
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
