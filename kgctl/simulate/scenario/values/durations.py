"""Durations: ``500ms``, ``45s``, ``1m30s``, ``24h``. Whole microseconds."""

from __future__ import annotations

import re
from decimal import Decimal

from kgctl.simulate.scenario.wording import shown

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
    """The shortest way to write it: ``1m30s``."""
    if us == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, us = divmod(us, UNITS_US[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
