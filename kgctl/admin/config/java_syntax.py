"""The syntax of Java's ``.properties`` files (``java.util.Properties#load``), read as UTF-8.

Comments begin with ``#`` or ``!``; ``=``, ``:`` or blanks end a key; a backslash at the end of a line continues it; ``\\t``,
``\\n``, ``\\r``, ``\\f`` and ``\\uXXXX`` are escapes, and a backslash before any other character stands for that character.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kgctl.errors import UsageError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One entry with the line that it begins on, from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str, source: str) -> list[Property]:
    """All entries in file order. Raises `UsageError` naming ``source`` and the line for a malformed escape."""
    return [_parse_line(line, number, source) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank lines, continuation lines joined, each with the number of its first line."""
    pending, first = "", 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        line = raw.lstrip(_BLANKS)
        if not pending and (not line or line[0] in "#!"):
            continue
        first = first or number
        if _is_continued(line):
            pending += line[:-1]
            continue
        yield first, pending + line
        pending, first = "", 0
    if pending:
        yield first, pending


def _is_continued(line: str) -> bool:
    """An odd number of backslashes at the end: the last of them stands for itself, not for an escaped backslash."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _parse_line(line: str, number: int, source: str) -> Property:
    end = _key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return Property(_unescape(line[:end], number, source), _unescape(rest, number, source), number)


def _key_end(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescape(text: str, number: int, source: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char != "\\" or position + 1 == len(text):
            out.append(char)
            position += 1
        elif text[position + 1] == "u":
            out.append(_unicode(text[position + 2 : position + 6], number, source))
            position += 6
        else:
            out.append(_ESCAPES.get(text[position + 1], text[position + 1]))
            position += 2
    return "".join(out)


def _unicode(digits: str, number: int, source: str) -> str:
    try:
        if len(digits) != 4:
            raise ValueError
        return chr(int(digits, 16))
    except ValueError:
        raise UsageError(f"{source}:{number}: malformed \\u escape: \\u{digits}") from None
