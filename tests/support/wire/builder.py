"""Nested dictionaries to kio's versioned dataclasses, so that callers never name a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.serde.encoder import encode
from kgctl.serde.schemas import Direction, load_plan, load_schema


def build(api_key: int, version: int, direction: Direction, values: Mapping[str, Any]) -> Any:
    """kio's entity of this API, version and direction with these values.

    Fields that the version does not have are dropped, absent ones get Kafka's default. Error codes are ints, times ints of
    milliseconds under kio's name or Kafka's (with ``_ms``), uuids `uuid.UUID`. Raises UnsupportedVersion.
    """
    from kio.serial import entity_reader

    out = bytearray()
    encode(load_plan(api_key, version, direction), values, out)
    entity, _ = entity_reader(load_schema(api_key, version, direction))(bytes(out), 0)
    return entity
