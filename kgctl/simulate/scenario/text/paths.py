"""Dotted paths into a scenario, as ``--set`` has them: ``group.config.session.timeout.ms=60s``.

Everything after the first ``config.`` is one of Kafka's names. A step that is a number picks an entry of a list.
"""

from __future__ import annotations

from typing import Any

from kgctl.errors import UsageError
from kgctl.yaml_files import Location, Path, Tree, read_yaml


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
