"""What commands promise of their results: each key, and the type of its values. `Cli` holds every result of every test to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kgctl.cli.registry import COMMANDS, CommandSpec
from kgctl.cli.report import Column, JsonKind, Shown

Path = tuple[str, ...]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WITHOUT = ("simulate schema",)
"""Commands whose data is a document that others define."""


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


HOLDS: Mapping[JsonKind, Callable[[Any], bool]] = {
    JsonKind.TEXT: lambda value: isinstance(value, str),
    JsonKind.WHOLE: lambda value: type(value) is int,
    JsonKind.NUMBER: is_number,
    JsonKind.BOOL: lambda value: isinstance(value, bool),
    JsonKind.TEXTS: lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    JsonKind.NUMBERS: lambda value: isinstance(value, list) and all(each is None or is_number(each) for each in value),
    JsonKind.TIME: lambda value: isinstance(value, str) and bool(TIME.fullmatch(value)),
    JsonKind.ANY: lambda value: not isinstance(value, dict),
}


def shown_by(spec: CommandSpec) -> Shown:
    """What a command says that it may show."""
    return spec.shown


def wrong_values(found: Any, columns: Sequence[Column], at: Path = ()) -> Iterator[tuple[str, Any]]:
    """The values, with their paths, that are not of the type that their key is said to have, or whose key is not told of."""
    told = [column for column in columns if is_named(column, at)]
    if any(found is None or HOLDS[column.kind](found) for column in told):
        return
    if isinstance(found, dict):
        for key, value in found.items():
            yield from wrong_values(value, columns, (*at, key))
    elif isinstance(found, list) and not told:
        for value in found:
            yield from wrong_values(value, columns, (*at[:-1], f"{at[-1]}[]"))
    elif found is not None or not any(is_above(column, at) for column in columns):
        yield ".".join(at), found


def is_named(column: Column, at: Path) -> bool:
    steps = column.key.split(".")
    return len(steps) == len(at) and all(map(is_step, steps, at))


def is_above(column: Column, at: Path) -> bool:
    steps = column.key.split(".")
    *before, last = steps[: len(at)]
    return len(steps) >= len(at) and all(map(is_step, (*before, last.removesuffix("[]")), at))


def is_step(said: str, found: str) -> bool:
    """Whether the key is the one that is said; capitals stand for any name."""
    return said == found or bool(re.fullmatch(re.sub("[A-Z]+", "(?s:.+)", re.sub(r"[\[\]]", r"\\\g<0>", said)), found))


def check(envelope: Mapping[str, Any]) -> None:
    """Fail where a result has a key that its command does not promise, or a value of another type."""
    spec = next((spec for spec in COMMANDS if spec.path == envelope["command"]), None)
    if spec is None or spec.path in WITHOUT:
        return
    shown, data = shown_by(spec), envelope["data"]
    if shown.document:
        rows, wrong = data if isinstance(data, list) else [data], [*shown.document]
    else:
        rows, wrong = data, [column for table in shown.tables for column in table]
    found = [each for row in rows for each in wrong_values(row, wrong)] if rows else []
    found += wrong_values(envelope.get("summary"), shown.summary) if envelope.get("summary") else []
    assert found == [], f"{spec.path}: not as `kgctl manual keys` promises: {found[:5]}"
