"""Files with documents: YAML, JSON or JSON lines, by the file's name or else by what is in it.

A document that cannot be read does not keep the others from being read: each comes with its own error instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from kgctl.errors import InvariantViolation, KgctlError, NotFoundError, UsageError
from kgctl.simulate.assign.group_document import DocumentError, GroupDocument, RepeatedKeys, document_id, parse_document
from kgctl.yaml_files import LARGE, FileError, Tree, read_yaml

YAML_HINT_CHARACTERS = 2_000_000
_JSON_LINES = (".jsonl", ".ndjson")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DOCUMENT_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RawDocument:
    """A document as it stands in a file, which has it at this line (None: not known), or the error in its place."""

    source: str
    line: int | None
    value: Any = None
    error: KgctlError | None = None
    tree: Tree | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A checked document, or the error in its place; ``id`` is there in any case."""

    id: str | int
    document: GroupDocument | None = None
    error: KgctlError | None = None
    raw: RawDocument | None = None

    def located(self, error: KgctlError) -> KgctlError:
        """An error met later, with file, line and document in its message."""
        return error if self.raw is None else _located(error, self.raw, self.id)


def read_groups(names: list[str], stdin: TextIO, notice: Callable[[str], None]) -> Iterator[ReadDocument]:
    """The documents of all files in turn; ``-`` is stdin. A document without id has its number, counted over all files.

    Raises:
        NotFoundError: a file is not there. UsageError: it cannot be read.
    """
    for number, raw in enumerate((raw for name in names for raw in _read(name, stdin, notice)), 1):
        identity = document_id(raw.value, number)
        try:
            if raw.error is not None:
                raise raw.error
            # Without its content: a large document need not be kept twice.
            yield ReadDocument(identity, parse_document(raw.value, number), raw=replace(raw, value=None))
        except KgctlError as error:
            yield ReadDocument(identity, error=_located(error, raw, identity))


def _located(error: KgctlError, raw: RawDocument, identity: str | int) -> KgctlError:
    line = raw.line
    if raw.tree is not None and isinstance(error, DocumentError):
        line = raw.tree.location(error.place).line
    where = raw.source if line is None else f"{raw.source}:{line}"
    kind = InvariantViolation if isinstance(error, InvariantViolation) else UsageError
    found = kind(f"{where}: document {identity!r}: {error.message}", group=str(identity))
    found.code = error.code
    return found


def _read(name: str, stdin: TextIO, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    text = _text(name, stdin)
    source = "stdin" if name == "-" else name
    if name.endswith(_JSON_LINES):
        return _json_lines(source, text)
    if text.lstrip()[:1] in ("{", "["):
        return _json(source, text, notice)
    return _yaml(source, text, notice)


def _text(name: str, stdin: TextIO) -> str:
    try:
        if name == "-":
            return stdin.read()
        return Path(name).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(f"{name}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: is not UTF-8: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = RepeatedKeys(found)
    seen: set[str] = set()
    repeated.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeated


def _loads(text: str) -> Any:
    """JSON, whose escapes may not make what is no text: one half of a surrogate pair.

    Raises:
        json.JSONDecodeError: it is no JSON, or no text.
    """
    value = json.loads(text, object_pairs_hook=_pairs)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            found = _SURROGATE.search(text)
            raise json.JSONDecodeError("Unpaired surrogate", text, found.start() if found else 0) from None
    return value


def _json(source: str, text: str, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    try:
        value = _loads(text)
    except json.JSONDecodeError as error:
        return _not_one_json_value(source, text, error, notice)
    except RecursionError:
        raise UsageError(f"{source}: is nested too deeply") from None
    if isinstance(value, list):
        return (RawDocument(source, None, entry) for entry in value)
    return iter([RawDocument(source, None, value)])


def _not_one_json_value(
    source: str, text: str, error: json.JSONDecodeError, notice: Callable[[str], None]
) -> Iterator[RawDocument]:
    """JSON lines without the name for it, YAML that begins like JSON, or JSON with an error in it."""
    if source.endswith((".yaml", ".yml")) or _DOCUMENT_START.search(text):
        return _yaml(source, text, notice)
    if error.msg == "Extra data" and "\n" in text[: error.pos + 1]:
        return _json_lines(source, text)
    return iter([_broken(source, error.lineno, f"line {error.lineno}, column {error.colno}: {error.msg}")])


def _json_lines(source: str, text: str) -> Iterator[RawDocument]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield RawDocument(source, number, _loads(line))
        except json.JSONDecodeError as error:
            yield _broken(source, number, f"column {error.colno}: {error.msg}")
        except RecursionError:
            yield _broken(source, number, "is nested too deeply")


def _broken(source: str, line: int | None, problem: str) -> RawDocument:
    return RawDocument(source, line, error=UsageError(problem))


def _yaml(source: str, text: str, notice: Callable[[str], None]) -> Iterator[RawDocument]:
    """Documents one by one, so that an error in one of them spoils no other."""
    if len(text) > YAML_HINT_CHARACTERS:
        notice(f"{source}: {len(text) / 1e6:.0f} MB of YAML take a while to read; JSON is read fifty times faster")
    starts = [0, *(found.start() for found in _DOCUMENT_START.finditer(text))]
    line = 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield from _yaml_document(source, text[start:end], line)
        line += text.count("\n", start, end)


def _yaml_document(source: str, text: str, first_line: int) -> Iterator[RawDocument]:
    try:
        tree = read_yaml(text, source, limits=LARGE, first_line=first_line)
    except FileError as error:
        problem = error.problems[0]
        yield _broken(source, problem.location.line, problem.message)
    else:
        if tree.data is not None:
            yield RawDocument(source, tree.location(()).line, tree.data, tree=Tree(source, None, tree.locations))
