"""What a command hands back: rows, errors and notices, with no idea of how they will be shown; and the formats by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, TypeVar

from kgctl.cli.exit_codes import ExitCode, exit_code_of_all
from kgctl.errors import KgctlError
from kgctl.model.meanings import MeantText
from kgctl.model.values import frozen_in_order

Cell: TypeAlias = "str | int | float | bool | Sequence[str] | None"
Row: TypeAlias = Mapping[str, Cell]


class JsonKind(StrEnum):
    """A type of JSON, and how it is written where that is text. Every value may be null besides, which is unknown or none."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    BOOL = "true, false"
    TEXTS = "list of texts"
    NUMBERS = "list of numbers"
    TIME = "time (`2024-01-31T10:00:00.000Z`)"
    ANY = "text, number, true or false, or a list of these"


TEXT, WHOLE, NUMBER, BOOL, TEXTS, NUMBERS, TIME, ANY = JsonKind


@frozen_in_order
class Column:
    """One column of a command: all that tables, JSON, CSV and the manual have to know of it.

    ``key`` is its name in JSON, YAML and CSV, in which capitals stand for any name; ``header`` the one in tables, made of the key
    unless given. ``meaning``, ``kind`` and ``unit`` tell what the values are.
    ``read`` takes the value from a row, by a function or by the path of an attribute, which is the key unless given: in
    ``commit?.offset`` nothing is read of what is None. A row that is a mapping has it by its key. What is read, if anything, is
    ``shown`` so; a time is read as milliseconds, or as text.

    A column is there ``when`` the command's option of that name is given, "" is always. A ``wide`` column is left out of the
    ``table`` format only, one that is shown ``if_any`` row has a value of tables in which none has. Of a list, the ``table``
    format shows ``most`` values, and counts the rest; what ``may_be_cut`` it cuts in the middle where a line would be longer than
    the terminal is wide.
    """

    key: str
    meaning: str = ""
    kind: JsonKind = TEXT
    unit: str = ""
    _: KW_ONLY
    header: str = ""
    wide: bool = False
    most: int | None = None
    if_any: bool = False
    may_be_cut: bool = False
    when: str = ""
    read: str | Callable[[Any], Any] = ""
    shown: Callable[[Any], Cell] | None = None

    @property
    def title(self) -> str:
        return self.header or self.key.upper().replace("_", "-")

    def of(self, read: str | Callable[[Any], Any], **otherwise: Any) -> Column:
        """Return this column as one that is read so."""
        return replace(self, read=read, **otherwise)

    def cells(self, rows: Sequence[Any]) -> list[Cell]:
        """Return the values of rows."""
        read = self.read or self.key
        if isinstance(read, str):
            read = itemgetter(self.key) if rows and isinstance(rows[0], Mapping) else _getter(read)
        shown = self.shown or (_instant if self.kind is TIME else None)
        values = map(read, rows)
        return list(values) if shown is None else [None if value is None else shown(value) for value in values]


def _getter(path: str) -> Callable[[Any], Any]:
    first, *others = map(attrgetter, path.split("?."))

    def read(row: Any) -> Any:
        value = first(row)
        for step in others:
            value = None if value is None else step(value)
        return value

    return read if others else first


def _instant(at: int | str) -> str:
    if isinstance(at, str):
        return at
    from kgctl.admin.times import format_instant

    return format_instant(at)


def below(path: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return these as columns of what lies at ``path`` of a document."""
    return tuple(replace(column, key=f"{path}.{column.key}") for column in columns)


def asked_for(columns: Sequence[Column], options: object) -> tuple[Column, ...]:
    """Return those that are there ``when`` a field of ``options`` is true, or always."""
    return tuple(column for column in columns if not column.when or getattr(options, column.when))


_C = TypeVar("_C", bound=Callable[..., Any])


@frozen_in_order
class Shown:
    """What a command may show: tables, the usual one first, and the keys of its ``summary``; and, in its help, ``examples``.

    ``document``: what JSON and YAML have in the place of rows, by paths: ``a.b`` is ``b`` in ``a``, ``a[]`` each of a list.
    ``examples``: lines to type; ``more_help``: what its help has behind its docstring; ``parsing``: how its line is read, if
    not as others.
    """

    tables: tuple[Sequence[Column], ...] = ()
    document: Sequence[Column] = ()
    summary: Sequence[Column] = ()
    examples: str = ""
    more_help: str = ""
    parsing: Mapping[str, Any] = field(default_factory=dict)


def shows(*tables: Sequence[Column], **others: Any) -> Callable[[_C], _C]:
    """Mark a command with what is `Shown`: its help, the manual's page of keys and the tests of all results are made of this."""

    def mark(command: _C) -> _C:
        command.shown = Shown(tables, **others)  # type: ignore[attr-defined]
        return command

    return mark


@dataclass(frozen=True)
class Report:
    """The result of a command. Every row has a value for every column; unknown is None, never a guess.

    ``name_keys`` are the keys whose values, joined by a colon, name what a row is about (format ``name``). ``notices`` go to
    stderr after the result. The exit code is derived from the errors unless it is fixed. ``something_done`` tells, where there
    are errors, whether something else worked; by default, whether there are rows. ``data`` is what JSON and YAML show where
    that is not the flat list of the rows; ``text`` is what tables show instead of the rows; ``summary`` is what JSON and YAML
    have besides, where the rows do not tell all. ``is_change`` says that the rows tell what was done to a cluster: where stdout
    cannot take them, stderr gets them. Where a table tells the errors itself, ``brief`` has the lines of stderr beside it: they
    are said once. All other formats have the errors on stderr, and JSON and YAML in the envelope, too.
    """

    columns: Sequence[Column] = ()
    rows: Sequence[Any] = ()
    errors: Sequence[KgctlError] = ()
    notices: Sequence[str] = ()
    name_keys: Sequence[str] = ()
    fixed_exit_code: ExitCode | None = None
    something_done: bool | None = field(default=None)
    data: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None
    text: str = ""
    summary: Mapping[str, Cell] | None = None
    is_change: bool = False
    brief: Sequence[str] = ()

    @property
    def exit_code(self) -> ExitCode:
        if self.fixed_exit_code is not None:
            return self.fixed_exit_code
        return exit_code_of_all(self.errors, something_done=self._is_something_done)

    def unwritten(self, error: OSError) -> Report:
        """The report where stdout did not take it: a failure, and what was wrong besides."""
        code = self.exit_code if self.exit_code in _STILL_SO else ExitCode.FAILED
        return replace(self, errors=[not_written(error), *self.errors], brief=(), fixed_exit_code=code)

    @property
    def _is_something_done(self) -> bool:
        return bool(self.rows) if self.something_done is None else self.something_done

    @property
    def status(self) -> str:
        """``ok``, ``partial`` or ``error``, as the envelope says it."""
        if self.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            return "partial" if self._is_something_done else "error"
        return {ExitCode.OK: "ok", ExitCode.PARTIAL: "partial"}.get(self.exit_code, "error")


_STILL_SO = (ExitCode.EXPECTATION, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
"""What is so whether or not the result could be written: a threshold that did not hold raises the alarm all the same."""


def not_written(error: OSError) -> KgctlError:
    return KgctlError(f"cannot write the result: {error.strerror or error}", code="OS_ERROR")


def error_line(error: KgctlError) -> str:
    """The error for a person: its message, with the group and partition it is about where the message does not name them."""
    about = []
    if error.group is not None and not _names(error.message, error.group):
        about.append(f"group {error.group!r}")
    partition = f"{error.topic}-{error.partition}"
    if error.topic is not None and error.partition is not None and not _names(error.message, partition):
        about.append(partition)
    return f"{', '.join(about)}: {error.message}" if about else error.message


def _names(message: str, name: str) -> bool:
    return repr(name) in message or re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", message) is not None


class OutputFormat(MeantText):
    """The forms in which a result is shown."""

    TABLE = "table", "aligned columns, the default; `-` is unknown"
    WIDE = "wide", "the same with every column"
    JSON = "json", "one envelope (below)"
    NDJSON = "ndjson", "the rows alone, a JSON object a line, as they are in the envelope's `data`; errors are on stderr"
    YAML = "yaml", "the same envelope"
    CSV = "csv", "every column, one header line, RFC 4180 quoting; lists joined by spaces"
    NAME = "name", "only names, one a line, as other commands take them: groups, `topic:partition`, members"
    NAME0 = "name0", "the same as they are, each ended by a NUL byte, for `xargs -0`: names with a line feed or an escape too"

    @property
    def is_for_people(self) -> bool:
        """Whether this format is a table, of some columns or of all."""
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)

    @property
    def speaks_of_errors(self) -> bool:
        """Whether the format carries errors itself, so that stdout must have it even when nothing worked."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)
