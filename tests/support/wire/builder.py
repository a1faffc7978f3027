"""Nested dictionaries to the entities that a reader gives, so that callers never name a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.serde.codec import read, write
from kgctl.serde.schemas import Direction, load_plan


def build(api_key: int, version: int, direction: Direction, values: Mapping[str, Any]) -> Any:
    """Return what is read of this API, version and direction where these values were written. Raises UnsupportedVersion."""
    plan = load_plan(api_key, version, direction)
    out = bytearray()
    write(plan, values, out)
    return read(plan, bytes(out))
