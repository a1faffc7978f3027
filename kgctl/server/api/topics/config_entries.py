"""Config values as DescribeConfigs shows them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

BOOLEAN, STRING, INT, LIST = 1, 2, 3, 7
STATIC_BROKER_CONFIG, DEFAULT_CONFIG, GROUP_CONFIG = 4, 5, 8


def entries_of(config: Any, given: set[str], source: int, *, read_only: bool) -> list[dict[str, Any]]:
    """One entry a field that has a ``name`` of Kafka's; those in ``given`` come from ``source``, the others are defaults."""
    return [
        entry(
            item.metadata["name"],
            getattr(config, item.name),
            source if item.metadata["name"] in given else DEFAULT_CONFIG,
            read_only=read_only,
        )
        for item in fields(config)
    ]


def entry(name: str, value: Any, source: int, *, read_only: bool) -> dict[str, Any]:
    """One config with its value as text."""
    return {
        "name": name,
        "value": _text(value),
        "read_only": read_only,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": _type(value),
        "documentation": None,
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _type(value: Any) -> int:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INT
    return LIST if isinstance(value, tuple) else STRING


TOPIC, BROKER, GROUP = 2, 4, 32
