"""Sizes (``500MB``, ``2GiB``) in bytes."""

from __future__ import annotations

import re
from decimal import Decimal

from kgctl.simulate.scenario.wording import shown

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kMGT])|([KMGT])i)?B")
_DECIMAL = {"k": 1_000, "M": 1_000**2, "G": 1_000**3, "T": 1_000**4}
_BINARY = {"K": 1_024, "M": 1_024**2, "G": 1_024**3, "T": 1_024**4}
_LARGEST = 10**15


def parse_size(raw: object) -> int:
    """Bytes; a number without a unit is bytes.

    Raises:
        ValueError: it is no size, or above 1000 TB.
    """
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= _LARGEST:
        return raw
    match = _SIZE.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no size; write one such as 500MB or 2GiB")
    number, decimal, binary = match.groups()
    size = int(Decimal(number) * (_BINARY[binary] if binary else _DECIMAL[decimal] if decimal else 1))
    if size > _LARGEST:
        raise ValueError(f"{raw} is more than 1000 TB")
    return size


def parse_sizes(raw: object) -> tuple[int, ...]:
    """One size for all, or a list of them, one each. Raises `ValueError`."""
    return tuple(map(parse_size, raw)) if isinstance(raw, list) and raw else (parse_size(raw),)
