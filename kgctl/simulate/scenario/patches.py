"""Merge patches (RFC 7396) that keep the places: what a patch sets stands where the patch has it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from kgctl.errors import UsageError
from kgctl.simulate.scenario.quantities import UNITS_US, shown
from kgctl.yaml_files import FileError, Location, Path, Tree, read_yaml


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in: mappings key by key, null deletes, anything else replaces. Neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def patch_between(target: Any, wanted: Any) -> Any:
    """The least patch with which `merge_patch` makes ``wanted`` of ``target``."""
    if not isinstance(target, dict) or not isinstance(wanted, dict):
        return wanted
    gone = {key: None for key in target if key not in wanted}
    return gone | {key: patch_between(target.get(key), value) for key, value in wanted.items() if target.get(key) != value}


def patched(base: Tree, patch: Tree, at: Path = ()) -> Tree:
    """``base`` with what ``patch`` has at the path ``at`` merged in."""
    value = patch.data
    for step in at:
        value = value[step]
    places = dict(base.locations)
    for path, place in patch.locations.items():
        if path[: len(at)] == at and len(path) > len(at):
            places[path[len(at) :]] = place
    return Tree(base.file, merge_patch(base.data, value), places)


def split_path(text: str) -> Path:
    """The steps of a dotted path.

    Raises:
        UsageError: a step is empty.
    """
    head, found, name = text.partition(".config.")
    if text.startswith("config."):
        head, found, name = "", "config.", text.removeprefix("config.")
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in head.split(".")] if head else []
    if found:
        steps += ["config", name]
    if not steps or "" in steps:
        raise UsageError(f"{text!r} is no path; write one like members.app.count or group.config.session.timeout.ms")
    return tuple(steps)


def with_setting(tree: Tree, assignment: str) -> Tree:
    """The tree with ``PATH=VALUE`` applied; the value is YAML. ``null`` deletes.

    Raises:
        UsageError: it is no assignment, the value is no YAML, or the path leads nowhere.
    """
    path_part, equals, value_text = assignment.partition("=")
    if not equals:
        raise UsageError(f"--set takes PATH=VALUE, not {assignment!r}")
    path = split_path(path_part.strip())
    value = read_yaml(value_text, f"--set {assignment}").data if value_text.strip() else ""
    places = {known: place for known, place in tree.locations.items() if known[: len(path)] != path}
    places[path] = Location(f"--set {assignment}")
    return Tree(tree.file, _replaced(tree.data, path, value, assignment), places)


def _replaced(node: Any, path: Path, value: Any, assignment: str) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(node, list):
        if not isinstance(step, int) or step >= len(node):
            raise UsageError(f"--set {assignment}: {step!r} is no entry of a list of {len(node)}")
        return [_replaced(entry, rest, value, assignment) if index == step else entry for index, entry in enumerate(node)]
    if node is not None and not isinstance(node, dict):
        raise UsageError(f"--set {assignment}: there is nothing below {node!r} to set {step!r} in")
    found = dict(node or {})
    if value is None and not rest:
        found.pop(str(step), None)
    else:
        found[str(step)] = _replaced(found.get(str(step)), rest, value, assignment)
    return found


def written_out(data: Any) -> Any:
    """A file's values with the short forms of its topics and traffic written out, in its variants too."""
    if not isinstance(data, Mapping):
        return data
    found = dict(data)
    for key, long_form in (("topics", long_topic), ("traffic", long_traffic)):
        if isinstance(data.get(key), Mapping):
            found[key] = {name: long_form(value) for name, value in data[key].items()}
    if isinstance(data.get("variants"), Mapping):
        found["variants"] = {name: written_out(patch) for name, patch in data["variants"].items()}
    return found


def long_topic(raw: Any) -> Any:
    """A number is the partitions. Anything else is left as it is."""
    return {"partitions": raw} if type(raw) is int else raw


def long_traffic(raw: Any) -> Any:
    """A rate, or steps alone. What is null, and a mapping of keys, is left as it is."""
    is_steps = isinstance(raw, dict) and bool(raw) and all(key[:1].isdigit() for key in raw)
    return raw if raw is None or (isinstance(raw, dict) and not is_steps) else {"rate": raw}


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
    """Return a value of YAML as an argument of ``--set``."""
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
