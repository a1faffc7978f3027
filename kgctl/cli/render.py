"""A report as text, in each output format.

For people: aligned columns, with colour where a person looks at a terminal, and bare names; nothing is boxed, and only names are
cut, on a terminal that is too narrow for them. For programs: one envelope as JSON or YAML for every command and every failure,
and rows as CSV.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from kgctl.cli.environment import Environment
from kgctl.cli.report import Cell, Column, OutputFormat, Report
from kgctl.errors import KgctlError

UNKNOWN = "-"


def render_table(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    columns = [column for column in report.columns if not column.wide]
    return render_columns(report, columns, environment, environment.columns)


def _first(value: Cell, most: int) -> Cell:
    if value is None or isinstance(value, (str, int, float)) or len(value) <= most:
        return value
    return [*value[:most], f"({len(value) - most} more)"]


def render_columns(report: Report, columns: Sequence[Column], environment: Environment, width: int | None = None) -> str:
    """Header and rows; nothing at all, not even a header, where there are no rows. Or the report's own text. With a ``width``,
    names are cut to it, and stand whole below."""
    if report.text:
        return report.text
    if not report.rows:
        return ""
    found = [(column, column.cells(report.rows)) for column in columns]
    found = [(column, values) for column, values in found if not column.if_any or not all(map(_is_empty, values))]
    columns = [column for column, _ in found]
    values = [cells if column.most is None else [_first(cell, column.most) for cell in cells] for column, cells in found]
    cells: Sequence[Sequence[str]] = [_cell_texts(column) for column in values]
    right = [_is_number(column) for column in values]
    if environment.stdout_is_terminal:
        cells, whole = fitted(columns, cells, width)
        return render_for_terminal(columns, list(zip(*cells, strict=True)), right, environment) + _below(whole)
    return _aligned([[column.title, *texts] for column, texts in zip(columns, cells, strict=True)], right)


LEAST_NAME = 24
MOST_WHOLE = 5


def fitted(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int | None
) -> tuple[Sequence[Sequence[str]], Mapping[str, str]]:
    """Return the columns of cells with names cut in the middle until a line is no longer than ``width``, where that can be had
    with `LEAST_NAME` letters; and what was cut -> whole."""
    lengths = [max(map(len, (column.title, *texts))) for column, texts in zip(columns, cells, strict=True)]
    over = sum(lengths) + 2 * len(lengths) - (width or UNLIMITED)
    whole: dict[str, str] = {}
    found = list(cells)
    for at, column in enumerate(columns):
        room = max(LEAST_NAME, lengths[at] - over)
        if column.may_be_cut and room < lengths[at]:
            found[at] = [_cut(text, room) for text in cells[at]]
            whole |= {cut: text for cut, text in zip(found[at], cells[at], strict=True) if cut != text}
            over -= lengths[at] - room
    return found, whole


def _cut(text: str, room: int) -> str:
    tail = (room - 1) // 2
    return text if len(text) <= room else f"{text[: room - 1 - tail]}…{text[-tail:]}"


def _below(whole: Mapping[str, str]) -> str:
    lines = [f"{cut} is {text}" for cut, text in list(whole.items())[:MOST_WHOLE]]
    if len(whole) > MOST_WHOLE:
        lines.append(f"{len(whole) - MOST_WHOLE} more names are cut; -o wide has them whole")
    return "".join(f"{line}\n" for line in lines)


def _is_empty(value: Cell) -> bool:
    return value is None or value is False or value in ("", [], ())


def _cell_texts(values: Sequence[Cell]) -> list[str]:
    """As `cell_text`; a column has few different words, and each is looked at once."""
    words = {each: cell_text(each) for each in {each for each in values if type(each) is str}}
    return [words[each] if type(each) is str else str(each) if type(each) in (int, float) else cell_text(each) for each in values]


def cell_text(value: Cell) -> str:
    """A cell as one printable word or phrase: ``-`` for unknown and empty, control characters escaped."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else " ".join(value)
    return printable(text) or UNKNOWN


def printable(text: str) -> str:
    """The text with everything that could move a cursor or end a line written as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _is_number(values: Sequence[Cell]) -> bool:
    types = set(map(type, values))
    return any(issubclass(each, int) for each in types) and not any(issubclass(each, (str, bool)) for each in types)


def _aligned(columns: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    widths = [max(map(len, column)) for column in columns]
    line = "  ".join(f"%{'' if to_right else '-'}{width}s" for width, to_right in zip(widths, right, strict=True))
    return "".join([(line % cells).rstrip() + "\n" for cells in zip(*columns, strict=True)])


UNLIMITED = 1_000_000
STYLES = {
    "Stable": "green",
    "Empty": "yellow",
    "Dead": "red",
    "PreparingRebalance": "magenta",
    "CompletingRebalance": "magenta",
    "Assigning": "magenta",
    "Reconciling": "magenta",
    "failed": "red",
    "refused": "red",
    "below-log-start": "red",
    "past-log-end": "red",
    "no-consumer": "yellow",
    "-": "dim",
}
"""Whole cells that stand out."""


def render_for_terminal(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], right: Sequence[bool], environment: Environment
) -> str:
    """The table as text with escape codes. Nothing is cut or folded: a line that is too long is the terminal's to wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, to_right in zip(columns, right, strict=True):
        table.add_column(column.title, justify="right" if to_right else "left", no_wrap=True)
    for row in cells:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=UNLIMITED, _environ=dict(environment.variables), highlight=False)
    console.print(table)
    return stream.getvalue()


def render_wide(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    return render_columns(report, [replace(column, most=None) for column in report.columns], environment)


def render_names(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """Each name once, in the order of the rows: a group, ``topic:partition``, a member.

    Control characters are escaped: a name with a line feed must not be two names for the command that reads them.
    """
    return "".join(f"{printable(name)}\n" for name in _names(report))


def render_names_with_nul(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """As `render_names`, unescaped but for NUL, with a NUL byte behind each."""
    return "".join(name.replace("\0", "\\x00") + "\0" for name in _names(report))


def _names(report: Report) -> Iterable[str]:
    known = {column.key: column for column in report.columns}
    parts = zip(*(known.get(key, Column(key)).cells(report.rows) for key in report.name_keys), strict=True)
    return dict.fromkeys(":".join(str(part) for part in name if part is not None) for name in parts)


KGCTL_RESULT_VERSION = 1
"""Grows when a key changes its name or meaning, or disappears; new keys do not change it."""


def envelope(report: Report, command: str) -> Mapping[str, Any]:
    """The report as plain values. ``data`` is the list of its rows, empty where there are none, unless the report has its own.

    ``summary`` is there where the report has one.
    """
    keys = [column.key for column in report.columns]
    return {
        "kgctl_result_version": KGCTL_RESULT_VERSION,
        "command": command,
        "status": report.status,
        "exit_code": int(report.exit_code),
        "data": [dict(zip(keys, row, strict=True)) for row in _cells(report, _plain)] if report.data is None else report.data,
        "errors": [_error(error) for error in report.errors],
        **({} if report.summary is None else {"summary": dict(report.summary)}),
    }


def _cells(report: Report, shown: Callable[[Cell], Any]) -> Iterator[tuple[Any, ...]]:
    """The values of each row, each as it is ``shown``."""
    return zip(*(map(shown, column.cells(report.rows)) for column in report.columns), strict=True)


def _error(error: KgctlError) -> Mapping[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "group": error.group,
        "topic": error.topic,
        "partition": error.partition,
    }


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str(value)
    return list(value)


def render_json(report: Report, command: str, environment: Environment) -> str:
    """One JSON document. Text is UTF-8; escaped is what moves a cursor or turns text round, and what the stream cannot carry."""
    return _json(envelope(report, command), environment, indent=2 if environment.stdout_is_terminal else None)


def render_ndjson(report: Report, command: str, environment: Environment) -> str:
    """A JSON document a line: each of the envelope's ``data``, or that itself where it is no list."""
    data = envelope(report, command)["data"]
    rows = [data] if isinstance(data, Mapping) else data
    return "".join(_json(row, environment) for row in rows)


def _json(value: Any, environment: Environment, indent: int | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=_must_escape(environment))
    return _DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


_DECEIVING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What JSON itself lets stand as it is and a terminal, or a reader's eye, does not."""


def _must_escape(environment: Environment) -> bool:
    encoding = getattr(environment.stdout, "encoding", None) or "utf-8"
    return not encoding.lower().replace("-", "").startswith("utf")


def render_yaml(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """One YAML document, keys in the envelope's order."""
    import yaml

    from kgctl.yaml_files import core_dumper

    told = envelope(report, command)
    text = str(yaml.dump(told, Dumper=core_dumper(), sort_keys=False, allow_unicode=True, width=4096))
    if _DECEIVING.search(text):
        text = str(yaml.dump(told, Dumper=core_dumper(), sort_keys=False, allow_unicode=False, width=4096))
    return text


def render_csv(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """All columns, wide ones too. Unknown is an empty field; a list is joined by spaces. On a terminal no character moves it."""
    from kgctl.admin.notation import csv_text

    keys = [column.key for column in report.columns]
    text = csv_text([keys, *_cells(report, _field)] if keys else [])
    if environment.stdout_is_terminal:
        text = "\n".join(map(printable, text.split("\n")))
    return text


def _field(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, (str, int, float)) else " ".join(value)


class Renderer(Protocol):
    """Turns a report into the text for stdout."""

    def __call__(self, report: Report, command: str, environment: Environment) -> str: ...


RENDERERS: Mapping[OutputFormat, Renderer] = {
    OutputFormat.TABLE: render_table,
    OutputFormat.WIDE: render_wide,
    OutputFormat.JSON: render_json,
    OutputFormat.NDJSON: render_ndjson,
    OutputFormat.YAML: render_yaml,
    OutputFormat.CSV: render_csv,
    OutputFormat.NAME: render_names,
    OutputFormat.NAME0: render_names_with_nul,
}
