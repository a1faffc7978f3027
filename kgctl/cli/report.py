"""What a command hands back: rows, errors and notices, with no idea of how they will be shown; and the formats by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from kgctl.cli.exit_codes import ExitCode, exit_code_of_all
from kgctl.errors import KgctlError

Cell: TypeAlias = "str | int | float | bool | Sequence[str] | None"
Row: TypeAlias = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``key`` is its name in JSON, YAML and CSV; ``header`` the one in tables, made of the key unless given.

    A ``wide`` column is left out of the ``table`` format only, one that is shown ``if_any`` row has a value of tables in which
    none has. Of a list, the ``table`` format shows ``most`` values, and counts the rest; what ``may_be_cut`` it cuts in the
    middle where a line would be longer than the terminal is wide.
    """

    key: str
    header: str = ""
    wide: bool = False
    most: int | None = None
    if_any: bool = False
    may_be_cut: bool = False

    @property
    def title(self) -> str:
        return self.header or self.key.upper().replace("_", "-")


_C = TypeVar("_C", bound=Callable[..., Any])


def shows(*tables: Sequence[Column]) -> Callable[[_C], _C]:
    """Mark a command with all columns that its rows may have: the manual's page of keys is made of these."""

    def mark(command: _C) -> _C:
        command.columns = tuple({column.key: column for table in tables for column in table}.values())  # type: ignore[attr-defined]
        return command

    return mark


GROUP = Column("group", may_be_cut=True)
"""Whoever may commit chooses a name, of up to 249 letters."""


@dataclass(frozen=True)
class Report:
    """The result of a command. Every row has every column's key; unknown is None, never a guess.

    ``name_keys`` are the keys whose values, joined by a colon, name what a row is about (format ``name``). ``notices`` go to
    stderr after the result. The exit code is derived from the errors unless it is fixed. ``something_done`` tells, where there
    are errors, whether something else worked; by default, whether there are rows. ``data`` is what JSON and YAML show where
    that is not the flat list of the rows; ``text`` is what tables show instead of the rows; ``summary`` is what JSON and YAML
    have besides, where the rows do not tell all. ``is_change`` says that the rows tell what was done to a cluster: where stdout
    cannot take them, stderr gets them.
    """

    columns: Sequence[Column] = ()
    rows: Sequence[Row] = ()
    errors: Sequence[KgctlError] = ()
    notices: Sequence[str] = ()
    name_keys: Sequence[str] = ()
    fixed_exit_code: ExitCode | None = None
    something_done: bool | None = field(default=None)
    data: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None
    text: str = ""
    summary: Mapping[str, Cell] | None = None
    is_change: bool = False

    @property
    def exit_code(self) -> ExitCode:
        if self.fixed_exit_code is not None:
            return self.fixed_exit_code
        return exit_code_of_all(self.errors, something_done=self._is_something_done)

    @property
    def _is_something_done(self) -> bool:
        return bool(self.rows) if self.something_done is None else self.something_done

    @property
    def status(self) -> str:
        """``ok``, ``partial`` or ``error``, as the envelope says it."""
        if self.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            return "partial" if self._is_something_done else "error"
        return {ExitCode.OK: "ok", ExitCode.PARTIAL: "partial"}.get(self.exit_code, "error")


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


class OutputFormat(StrEnum):
    """The forms in which a result is shown."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    NDJSON = "ndjson"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"
    NAME0 = "name0"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]

    @property
    def is_for_people(self) -> bool:
        """Whether this format is a table, of some columns or of all."""
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)

    @property
    def speaks_of_errors(self) -> bool:
        """Whether the format carries errors itself, so that stdout must have it even when nothing worked."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)


_MEANINGS = {
    OutputFormat.TABLE: "aligned columns, the default; `-` is unknown",
    OutputFormat.WIDE: "the same with every column",
    OutputFormat.JSON: "one envelope (below)",
    OutputFormat.NDJSON: "the rows alone, a JSON object a line, as they are in the envelope's `data`; errors are on stderr",
    OutputFormat.YAML: "the same envelope",
    OutputFormat.CSV: "every column, one header line, RFC 4180 quoting; lists joined by spaces",
    OutputFormat.NAME: "only names, one a line, as other commands take them: groups, `topic:partition`, members",
    OutputFormat.NAME0: "the same as they are, each ended by a NUL byte, for `xargs -0`: names with a line feed or an escape too",
}
