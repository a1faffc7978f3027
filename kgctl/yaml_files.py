"""YAML files: plain values with the line and column of each, and errors that say where. The one reader for scenarios, groups and
the config file, and how text is written that it reads back as the same.

Plain scalars mean what YAML 1.2's core schema says: ``0o10`` is eight, ``true`` and ``false`` are the only truth values; ``on``,
``no``, ``1:30``, ``1_000`` and dates are text. ``010`` is refused: ten by YAML 1.2, eight by 1.1 and most readers. Keys are text
as written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kgctl.errors import UsageError

Path = tuple[str | int, ...]
"""The way to a value: keys, and numbers of list entries."""

_PREFIX = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 40


_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")


def _integer(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _octal(text: str) -> int:
    """``0644`` as Kubernetes reads it, and ``08``, which is no octal number."""
    return int(text, 10 if re.search("[89]", text) else 8)


def _float(text: str) -> float:
    return float(text.replace(".", "")) if text[-1].isalpha() else float(text)


_SCALARS: Mapping[str, tuple[re.Pattern[str], str, Callable[[str], Any]]] = {
    "null": (re.compile(r"(~|null|Null|NULL|)\Z"), "~nN", lambda _: None),
    "bool": (re.compile(r"(true|True|TRUE|false|False|FALSE)\Z"), "tTfF", lambda text: text.lower() == "true"),
    "int": (re.compile(r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), "-+0123456789", _integer),
    "float": (
        re.compile(r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"),
        "-+.0123456789",
        _float,
    ),
}
"""The core schema: tag -> the plain scalars that are one, how these begin, and their value."""


@dataclass(frozen=True, slots=True)
class Location:
    """Line and column (both from 1) of a file; line 0: not of the file itself, as with ``--set``."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or doubtful) at a location. ``rule`` names the linter's rule; "" for errors of the language."""

    location: Location
    path: Path
    message: str
    severity: str = "error"
    rule: str = ""

    @property
    def where(self) -> str:
        """The path as messages show it: ``events[2].at``."""
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text

    def __str__(self) -> str:
        return f"{self.location}: {self.where + ': ' if self.where else ''}{self.message}"


class FileError(UsageError):
    """A file is wrong; ``problems`` has each thing that is, with its location."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(str(problems[0]))
        self.problems = tuple(problems)

    @property
    def each(self) -> Sequence[UsageError]:
        return [UsageError(str(problem)) for problem in self.problems]


@dataclass(slots=True)
class Tree:
    """Plain values, and the location of each by the path to it; of a mapping's entry, the location of its key."""

    file: str
    data: Any
    locations: dict[Path, Location] = field(default_factory=dict)

    def location(self, path: Path) -> Location:
        """Return where a value stands, or the nearest thing around it that the file has."""
        for length in range(len(path), -1, -1):
            if (found := self.locations.get(path[:length])) is not None:
                return found
        return Location(self.file)

    def problem(self, path: Path, message: str, severity: str = "error", rule: str = "") -> Problem:
        """Return what is wrong with, or doubtful of, the value at this path."""
        return Problem(self.location(path), path, message, severity, rule)

    def error(self, path: Path, message: str) -> FileError:
        """Return an error about the value at this path."""
        return FileError([self.problem(path, message)])


@dataclass(frozen=True, slots=True)
class Limits:
    """What a file may hold, so that none can be expensive. ``values`` counts what aliases stand for as often as they stand.

    None: as many as the file has characters. ``locates_entries``: list entries have a location of their own, not only keys.
    ``reads_octal``: ``0644`` is octal, as YAML 1.1 has it; else it is refused.
    """

    characters: int = 4_000_000
    values: int | None = 200_000
    depth: int = 60
    locates_entries: bool = True
    reads_octal: bool = False


SMALL = Limits()
"""For files that people write."""
LARGE = Limits(characters=2_000_000_000, values=None, locates_entries=False)
"""For files that programs write: a group of a million partitions."""
MANIFEST = Limits(reads_octal=True)
"""For files that Kubernetes reads: ``defaultMode: 0644``."""


def read_yaml(text: str, file: str, *, limits: Limits = SMALL, first_line: int = 1) -> Tree:
    """Read the one document of a text; its data is None where there is nothing but comments.

    ``first_line``: the line of the file on which the text begins.

    Raises:
        FileError: too large, not YAML, several documents, a key that stands twice, or a tag that is not of the core schema.
    """
    import yaml

    reader = _Reader(file, limits, first_line, most_values=len(text) + 1 if limits.values is None else limits.values)
    if len(text) > limits.characters:
        raise reader.fault(None, f"the file has {len(text):,} characters, at most {limits.characters:,} are read")
    loader = _core_loader()
    try:
        _check_depth(text, loader, reader)
        node = yaml.compose(text, loader)
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, reader) from None
    if node is None:
        return Tree(file, None, {(): Location(file, first_line, 1)})
    return Tree(file, reader.value(node, (), 0), reader.locations)


@cache
def _core_loader() -> Any:
    """PyYAML's loader, in C where it is built in, with the core schema's plain scalars for YAML 1.1's."""
    import yaml

    class CoreLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own way

    for tag, (pattern, begins, _) in _SCALARS.items():
        CoreLoader.add_implicit_resolver(f"{_PREFIX}{tag}", pattern, [*begins, ""] if tag == "null" else [*begins])
    CoreLoader.add_implicit_resolver(f"{_PREFIX}merge", re.compile(r"<<\Z"), ["<"])
    return CoreLoader


@cache
def core_dumper() -> Any:
    """PyYAML's dumper, which also quotes text that is a number in YAML 1.2 and not in 1.1: a group called ``61e5`` stays text."""
    import yaml

    class CoreDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        pass

    for tag in ("int", "float"):
        pattern, begins, _ = _SCALARS[tag]
        CoreDumper.add_implicit_resolver(f"{_PREFIX}float", pattern, [*begins])
    return CoreDumper


def _check_depth(text: str, loader: Any, reader: _Reader) -> None:
    """Measure the nesting before anything follows it by recursion: the C loader does, without a limit of its own."""
    import yaml

    depth = 0
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            reader.check_depth(event.start_mark, depth - 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _syntax_error(error: Any, text: str, reader: _Reader) -> FileError:
    import yaml

    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if error.encoding == "unicode" else text.encode()[: error.position].decode()
        location = Location(reader.file, before.count("\n") + reader.first_line, len(before) - before.rfind("\n"))
        return FileError([Problem(location, (), f"not YAML: {error.reason}: {chr(error.character)!r}")])
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    context = getattr(error, "context", None)
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return reader.fault(mark, "not YAML: a tab; lines are indented by spaces")
    return reader.fault(mark, f"not YAML: {f'{context}, ' if context else ''}{problem}")


class _Reader:
    """Turns nodes into values. Aliases are followed like copies, but counted: a few lines cannot become millions of values."""

    def __init__(self, file: str, limits: Limits, first_line: int, most_values: int) -> None:
        self.file = file
        self.first_line = first_line
        self.locations: dict[Path, Location] = {}
        self._limits = limits
        self._most_values = most_values
        self._count = 0

    def fault(self, mark: Any, message: str, path: Path = ()) -> FileError:
        location = self._location(mark) if mark else Location(self.file, self.first_line, 1)
        return FileError([Problem(location, path, message)])

    def check_depth(self, mark: Any, depth: int) -> None:
        if depth >= self._limits.depth:
            raise self.fault(mark, f"nested deeper than {self._limits.depth} levels")

    def value(self, node: Any, path: Path, depth: int) -> Any:
        self._count += 1
        if self._count > self._most_values:
            raise self.fault(node.start_mark, f"more than {self._most_values:,} values, aliases followed")
        if path not in self.locations:
            self.locations[path] = self._location(node.start_mark)
        if node.id == "scalar":
            return self._scalar(node)
        self.check_depth(node.start_mark, depth)
        if node.tag == f"{_PREFIX}map" and node.id == "mapping":
            return self._mapping(node, path, depth)
        if node.tag == f"{_PREFIX}seq" and node.id == "sequence":
            return self._sequence(node, path, depth)
        raise self.fault(node.start_mark, f"the tag {node.tag} is not known here")

    def _sequence(self, node: Any, path: Path, depth: int) -> list[Any]:
        if self._limits.locates_entries:
            return [self.value(child, (*path, index), depth + 1) for index, child in enumerate(node.value)]
        return [self.value(child, path, depth + 1) for child in node.value]

    def _mapping(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{_PREFIX}merge":
                merged.update(self._merged(value_node, path, depth))
                continue
            if key_node.id != "scalar":
                raise self.fault(key_node.start_mark, "a key must be a word, not a mapping or a list")
            key = str(key_node.value)
            place = (*path, key)
            if key in own:
                raise self.fault(key_node.start_mark, f"the key {key!r} stands twice", place)
            self.locations[place] = self._location(key_node.start_mark)
            own[key] = self.value(value_node, place, depth + 1)
        return {**merged, **own} if merged else own

    def _merged(self, node: Any, path: Path, depth: int) -> dict[str, Any]:
        """Return what ``<<`` brings in: a mapping, or a list of them of which the first wins."""
        parts = node.value if node.id == "sequence" else [node]
        found: dict[str, Any] = {}
        for part in reversed(parts):
            if part.id != "mapping":
                raise self.fault(node.start_mark, "<< takes a mapping, or a list of mappings")
            found.update(self.value(part, path, depth + 1))
        return found

    def _scalar(self, node: Any) -> Any:
        tag, text = node.tag.removeprefix(_PREFIX), str(node.value)
        if tag in ("str", "merge"):
            return text
        if tag not in _SCALARS:
            raise self.fault(node.start_mark, f"the tag {node.tag} is not known here")
        pattern, _, value_of = _SCALARS[tag]
        if not pattern.match(text):
            raise self.fault(node.start_mark, f"{text!r} is no {tag}")
        if tag in ("int", "float") and len(text) > _LONGEST_NUMBER:
            return text
        found = _octal(text) if tag == "int" and _LEADING_ZERO.match(text) and self._reads_zeros(node) else value_of(text)
        if isinstance(found, float) and not math.isfinite(found):
            raise self.fault(node.start_mark, f"{text} is no finite number; text is written in quotes")
        return found

    def _reads_zeros(self, node: Any) -> bool:
        if self._limits.reads_octal:
            return True
        text = node.value
        plain = f"{'-' * text.startswith('-')}{text.lstrip('+-0') or '0'}"
        raise self.fault(
            node.start_mark, f"{text}: a number has no leading zeros: write {plain}, or '{text}' where text is meant"
        )

    def _location(self, mark: Any) -> Location:
        return Location(self.file, self.first_line + mark.line, mark.column + 1)
