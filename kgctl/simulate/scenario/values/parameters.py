"""The values of a parameter, as text that a scenario takes: ``10s,30s,60s``, ``[10s, 30s]``, ``10s..60s step 10s``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from kgctl.simulate.scenario.values.durations import UNITS_US
from kgctl.simulate.scenario.wording import shown
from kgctl.yaml_files import FileError, read_yaml

MOST_VALUES = 100_000
"""Of one parameter, and points of a whole grid."""

_NUMBER = r"(-?\d+(?:\.\d+)?)\s*([A-Za-z/%]*)"
_RANGE = re.compile(rf"\s*{_NUMBER}\s*\.\.\s*{_NUMBER}\s+step\s+{_NUMBER}\s*")
_OPEN, _CLOSE = "([{", ")]}"


def split_values(text: str) -> list[str]:
    """The values between commas; those within brackets or quotes stay together, so ``normal(35s, 3s),1m`` is two.

    Raises:
        ValueError: a range is wrong.
    """
    pieces, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSE:
            depth -= 1
        elif letter == "," and depth == 0:
            pieces.append(text[start:place])
            start = place + 1
    pieces.append(text[start:])
    return [value for piece in pieces for value in expanded(piece.strip())]


def values_of(data: Any) -> list[str]:
    """The values in a file: a list of them, or one range.

    Raises:
        ValueError: it is neither, or a range is wrong.
    """
    entries = data if isinstance(data, list) else [data]
    if isinstance(data, dict) or data is None or (not isinstance(data, list) and not _RANGE.fullmatch(str(data))):
        raise ValueError(f"a parameter takes a list of values, or a range such as 10s..60s step 10s, not {shown(data)}")
    if not entries:
        raise ValueError("a parameter takes at least one value")
    return [value for entry in entries for value in expanded(as_text(entry))]


def as_text(value: Any) -> str:
    """A value of YAML as ``--set`` takes it."""
    if isinstance(value, str) and value:
        try:
            return value if read_yaml(value, "").data == value else json.dumps(value)
        except FileError:
            return json.dumps(value)
    return json.dumps(value)


def expanded(text: str) -> Iterator[str]:
    """The values of a range, its end among them where a step falls on it; any other text is one value.

    Without ``step``, ``10s..60s`` is the language's own range: a time that the seed chooses.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        yield text
        return
    (first, first_unit), (last, last_unit), (step, unit) = [
        (Decimal(n), u) for n, u in zip(*[iter(found.groups())] * 2, strict=True)
    ]
    first, last = (_in_unit(number, own, unit, text) for number, own in ((first, first_unit), (last, last_unit)))
    if step == 0 or (last - first) * step < 0:
        raise ValueError(f"{text!r} never ends: its step leads away from its end")
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise ValueError(f"{text!r} has {count:,} values; a parameter has at most {MOST_VALUES:,}")
    for number in range(count):
        yield f"{(first + number * step).normalize():f}{unit}"


def _in_unit(number: Decimal, own: str, unit: str, text: str) -> Decimal:
    if own == unit:
        return number
    if own in UNITS_US and unit in UNITS_US:
        return number * UNITS_US[own] / UNITS_US[unit]
    raise ValueError(f"{text!r} mixes the units {own or 'none'} and {unit or 'none'}")
