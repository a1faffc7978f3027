"""Checks of values in a document. An error names the place, so that a reader of the file can add its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from kgctl.errors import UsageError, did_you_mean

INT32_MAX = 2**31 - 1

Place = tuple[str, ...]


class DocumentError(UsageError):
    """A document is wrong at a place, which is the way to it: ``("members", "c1", "owned")``."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{describe(place)}{problem}")
        self.place = place


class RepeatedKeys(dict[str, Any]):
    """A mapping of a file in which a key may stand more than once; ``repeated`` is the first such key."""

    repeated: str | None = None


def describe(place: Place) -> str:
    """``member 'c1': owned: ``."""
    words = list(place)
    if words[:1] in (["topics"], ["members"]) and len(words) > 1:
        words[:2] = [f"{words[0].removesuffix('s')} {words[1]!r}"]
    return "".join(f"{word}: " for word in words)


def check_mapping(raw: Any, place: Place, known: frozenset[str] | None = None) -> Mapping[str, Any]:
    """A mapping with text keys, each once, and no others than ``known``; an empty one where there is nothing."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise DocumentError(place, f"must be a mapping, not {_kind(raw)}")
    if isinstance(raw, RepeatedKeys) and raw.repeated is not None:
        raise DocumentError((*place, raw.repeated), "stands twice")
    if known is None:
        return raw
    for key in raw:
        if key not in known:
            hint = did_you_mean(key, known, quoted=True) or f"; known: {', '.join(sorted(known))}"
            raise DocumentError((*place, key), f"unknown key{hint}")
    return raw


def check_names(raw: Any, place: Place) -> Sequence[str]:
    """A list of names."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise DocumentError(place, f"must be a list of names, not {_kind(raw)}")
    for name in raw:
        if type(name) is not str:
            raise DocumentError(place, f"the name {name!r} must be text; write it in quotes")
    return raw


def integer(raw: Any, place: Place, *, minimum: int = -(2**31), maximum: int = INT32_MAX) -> int:
    """A whole number within bounds."""
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise DocumentError(place, f"must be a whole number, not {raw!r}")
    if not minimum <= raw <= maximum:
        raise DocumentError(place, f"must be between {minimum} and {maximum}, not {raw}")
    return raw


def optional_text(raw: Any, place: Place) -> str | None:
    """Text, or nothing."""
    if raw is None or isinstance(raw, str):
        return raw
    raise DocumentError(place, f"must be text, not {raw!r}; write it in quotes")


def owned_partitions(raw: Any, place: Place) -> Mapping[str, Sequence[int]]:
    """``{topic: [partitions]}``. Partitions that do not exist may be claimed, but no negative ones."""
    owned = check_mapping(raw, place)
    # A million lists are looked at as one; only what is wrong is looked for one by one.
    if set(map(type, owned.values())) <= {list}:
        numbers = list(chain.from_iterable(owned.values()))
        if not numbers or (set(map(type, numbers)) == {int} and min(numbers) >= 0 and max(numbers) <= INT32_MAX):
            return owned
    for topic, partitions in owned.items():
        if not isinstance(partitions, list):
            raise DocumentError((*place, topic), f"must be a list of partitions, not {_kind(partitions)}")
        for partition in partitions:
            if type(partition) is not int or not 0 <= partition <= INT32_MAX:
                raise DocumentError((*place, topic), f"{partition!r} is no partition")
    return owned


def _kind(raw: Any) -> str:
    names = {list: "a list", str: "text", int: "a number", float: "a number", bool: "a truth value", type(None): "nothing"}
    return names.get(type(raw), type(raw).__name__)
