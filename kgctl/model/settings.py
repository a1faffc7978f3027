"""Settings of coordinators under Kafka's names: the facts beside a dataclass's field, and what a text stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from kgctl.errors import UsageError

MAX_INT = 2**31 - 1
SettingValue = int | bool | str | tuple[str, ...]


def setting(
    name: str,
    default: SettingValue,
    at_least: int | None = None,
    at_most: int | None = MAX_INT,
    *,
    since: str = "",
    before: Mapping[str, SettingValue] = MappingProxyType({}),
) -> Any:
    """A dataclass field that is the setting of this name; the bounds, both inclusive, are for numbers.

    ``since``: the first broker version that has it, where not all have. ``before``: what holds below these versions, the oldest
    first: another default, or what a version does that does not have the setting.
    """
    facts = {"name": name, "at_least": at_least, "at_most": at_most, "since": since, "before": before}
    return field(default=default, metadata=facts)


def parse_setting(entry: Any, text: str) -> SettingValue:
    """The value that ``text`` stands for, for this dataclass field made by `setting`. Raises `UsageError`."""
    name, default = entry.metadata["name"], entry.default
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, bool):
        return _parse_boolean(name, text)
    if isinstance(default, str):
        return text.strip().lower()
    return _parse_number(name, text, entry.metadata["at_least"], entry.metadata["at_most"])


def _parse_boolean(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise UsageError(f"setting {name!r} must be true or false, not {text!r}")
    return text.strip().lower() == "true"


def _parse_number(name: str, text: str, at_least: int | None, at_most: int | None) -> int:
    try:
        value = int(text.strip())
    except ValueError:
        raise UsageError(f"setting {name!r} must be a whole number, not {text!r}") from None
    if at_least is not None and value < at_least:
        raise UsageError(f"setting {name!r} must be at least {at_least}, not {value}")
    if at_most is not None and value > at_most:
        raise UsageError(f"setting {name!r} must be at most {at_most}, not {value}")
    return value
