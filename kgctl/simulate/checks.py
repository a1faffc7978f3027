"""Checks of values in a document, with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kgctl.errors import UsageError

INT32_MAX = 2**31 - 1


def check_mapping(raw: Any, where: str) -> Mapping[str, Any]:
    """A mapping with text keys."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where} must be a mapping, not {_kind(raw)}")
    for key in raw:
        if not isinstance(key, str):
            # YAML reads 1, true or 2024-01-01 as numbers, truth values and dates; a name has to be written with quotes then.
            raise UsageError(f"{where}: the name {key!r} must be text; write it in quotes")
    return raw


def check_keys(mapping: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    """No other keys than the ones known."""
    for key in mapping:
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"
            raise UsageError(f"{where}: unknown key {key!r}{hint}")


def check_names(raw: Any, where: str) -> Sequence[str]:
    """A list of names."""
    if not isinstance(raw, list):
        raise UsageError(f"{where} must be a list of names, not {_kind(raw)}")
    wrong = next((name for name in raw if not isinstance(name, str)), ...)
    if wrong is not ...:
        raise UsageError(f"{where}: the name {wrong!r} must be text; write it in quotes")
    return raw


def integer(raw: Any, where: str, *, minimum: int = -(2**31), maximum: int = INT32_MAX) -> int:
    """A whole number within bounds."""
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise UsageError(f"{where} must be a whole number, not {raw!r}")
    if not minimum <= raw <= maximum:
        raise UsageError(f"{where} must be between {minimum} and {maximum}, not {raw}")
    return raw


def optional_text(raw: Any, where: str) -> str | None:
    """Text, or nothing."""
    if raw is None or isinstance(raw, str):
        return raw
    raise UsageError(f"{where} must be text, not {raw!r}; write it in quotes")


def owned_partitions(raw: Any, where: str) -> Mapping[str, Sequence[int]]:
    """``{topic: [partitions]}``. Partitions that do not exist may be claimed, but no negative ones."""
    owned = check_mapping(raw, where)
    for topic, partitions in owned.items():
        if not isinstance(partitions, list):
            raise UsageError(f"{where}: topic {topic!r} needs a list of partitions, not {_kind(partitions)}")
        for partition in partitions:
            if type(partition) is not int or not 0 <= partition <= INT32_MAX:
                raise UsageError(f"{where}: {partition!r} is no partition of topic {topic!r}")
    return owned


def _kind(raw: Any) -> str:
    names = {list: "a list", str: "text", int: "a number", float: "a number", bool: "a truth value", type(None): "nothing"}
    return names.get(type(raw), type(raw).__name__)
