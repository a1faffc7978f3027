"""YAML into plain values, with the place of each, read in a way that no file can make expensive.

Keys are text as written (``on``, ``1`` and ``no`` too). Plain scalars are read as YAML 1.2 reads them: ``010`` is ten, ``1:30``
and dates are text; truth values are true and false (and yes, no, on, off, which YAML 1.1 has and people mean).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kgctl.simulate.scenario.text.places import Path, Place, Problem, ScenarioError

MAX_BYTES = 4_000_000
MAX_VALUES = 200_000
MAX_DEPTH = 60

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*)?\.?[0-9]+([eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}


@dataclass(slots=True)
class Tree:
    """Plain values, and the place of each of them by the path to it; of a mapping's entry, the place of its key."""

    file: str
    data: Any
    places: dict[Path, Place] = field(default_factory=dict)

    def place(self, path: Path) -> Place:
        """The place of a value, or of the nearest thing around it that the file has."""
        for length in range(len(path), -1, -1):
            if (found := self.places.get(path[:length])) is not None:
                return found
        return Place(self.file)

    def error(self, path: Path, message: str) -> ScenarioError:
        """An error about the value at this path."""
        return ScenarioError([Problem(self.place(path), path, message)])


def read_yaml(text: str, file: str) -> Tree:
    """The one document of a file.

    Raises:
        ScenarioError: it is too large, no YAML, not one document, repeats a key, or holds what a scenario cannot.
    """
    if len(text) > MAX_BYTES:
        raise _fault(file, None, f"the file has {len(text):,} characters; a scenario has at most {MAX_BYTES:,}")
    kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(text, kind, file)
        node = yaml.compose(text, kind)
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, file) from None
    if node is None:
        raise _fault(file, None, "the file is empty; `kgctl simulate init` writes a first scenario")
    reader = _Reader(file)
    return Tree(file, reader.value(node, (), 0), reader.places)


def _check_depth(text: str, kind: Any, file: str) -> None:
    """Before anything follows the nesting by recursion: the C loader does, without a limit of its own."""
    depth = 0
    for event in yaml.parse(text, kind):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _fault(file, event.start_mark, f"nested deeper than {MAX_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _syntax_error(error: yaml.YAMLError, text: str, file: str) -> ScenarioError:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if error.encoding == "unicode" else text.encode()[: error.position].decode()
        place = Place(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        return ScenarioError([Problem(place, (), f"not YAML: {error.reason}: {chr(error.character)!r}")])
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    context = getattr(error, "context", None)
    return _fault(file, mark, f"not YAML: {f'{context}, ' if context else ''}{problem}")


def _fault(file: str, mark: Any, message: str) -> ScenarioError:
    return ScenarioError([Problem(_place(file, mark) if mark else Place(file, 1, 1), (), message)])


def _place(file: str, mark: Any) -> Place:
    return Place(file, mark.line + 1, mark.column + 1)


class _Reader:
    """Turns nodes into values. Aliases are followed like copies, but counted: a few lines cannot become millions of values."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Path, Place] = {}
        self.count = 0

    def value(self, node: Any, path: Path, depth: int) -> Any:
        self.count += 1
        if self.count > MAX_VALUES:
            raise _fault(self.file, node.start_mark, f"more than {MAX_VALUES:,} values, aliases followed")
        if depth > MAX_DEPTH:
            raise _fault(self.file, node.start_mark, f"nested deeper than {MAX_DEPTH} levels")
        self.places.setdefault(path, _place(self.file, node.start_mark))
        if not isinstance(node, yaml.ScalarNode) and node.tag not in (f"{_PREFIX}map", f"{_PREFIX}seq"):
            raise _fault(self.file, node.start_mark, f"the tag {node.tag} is not known here")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index), depth + 1) for index, child in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_PREFIX}merge":
                merged.update(self._merged(value_node, path, depth))
                continue
            key = self._key(key_node)
            place = (*path, key)
            if key in own:
                raise ScenarioError([Problem(_place(self.file, key_node.start_mark), place, f"the key {key!r} stands twice")])
            self.places[place] = _place(self.file, key_node.start_mark)
            own[key] = self.value(value_node, place, depth + 1)
        return {**merged, **own} if merged else own

    def _merged(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        """What ``<<`` brings in: a mapping, or a list of them of which the first wins."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, yaml.MappingNode):
                raise _fault(self.file, node.start_mark, "<< takes a mapping, or a list of mappings")
            found.update(self.value(part, path, depth + 1))
        return found

    def _key(self, node: Any) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _fault(self.file, node.start_mark, "a key must be a word, not a mapping or a list")
        return str(node.value)

    def _scalar(self, node: Any) -> Any:
        tag = node.tag.removeprefix(_PREFIX)
        if tag not in ("str", "int", "float", "bool", "null", "timestamp", "value"):
            raise _fault(self.file, node.start_mark, f"the tag {node.tag} is not known here")
        if tag == "str" or node.style in ("'", '"', "|", ">"):
            text = str(node.value)
            return text if node.style else _plain(text)
        return _plain(str(node.value))


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 40:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text
