"""The formats for programs: one envelope as JSON or YAML for every command and every failure, and rows as CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from kgctl.cli.environment import Environment
from kgctl.cli.output.report import Cell, Report
from kgctl.cli.output.table import printable
from kgctl.errors import KgctlError

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
        "data": [{key: _plain(row[key]) for key in keys} for row in report.rows] if report.data is None else report.data,
        "errors": [_error(error) for error in report.errors],
        **({} if report.summary is None else {"summary": dict(report.summary)}),
    }


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
    indent = 2 if environment.stdout_is_terminal else None
    text = json.dumps(envelope(report, command), indent=indent, ensure_ascii=_must_escape(environment))
    return _DECEIVING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


_DECEIVING = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What JSON itself lets stand as it is and a terminal, or a reader's eye, does not."""


def _must_escape(environment: Environment) -> bool:
    encoding = getattr(environment.stdout, "encoding", None) or "utf-8"
    return not encoding.lower().replace("-", "").startswith("utf")


def render_yaml(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """One YAML document, keys in the envelope's order."""
    import yaml

    told = envelope(report, command)
    text = str(yaml.dump(told, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=4096))
    if _DECEIVING.search(text):
        text = str(yaml.dump(told, Dumper=_dumper(), sort_keys=False, allow_unicode=False, width=4096))
    return text


@cache
def _dumper() -> Any:
    """PyYAML's dumper, which also quotes text that is a number in YAML 1.2 and not in 1.1: a group called ``61e5`` stays text."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        pass

    number = re.compile(r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number, [*"-+.0123456789"])
    return Dumper


def render_csv(report: Report, command: str, environment: Environment) -> str:  # noqa: ARG001
    """All columns, wide ones too. Unknown is an empty field; a list is joined by spaces. On a terminal no character moves it."""
    from kgctl.admin.plan.offset_file import csv_text

    keys = [column.key for column in report.columns]
    rows = [[_field(row[key]) for key in keys] for row in report.rows]
    text = csv_text([keys, *rows] if keys else [])
    if environment.stdout_is_terminal:
        text = "\n".join(map(printable, text.split("\n")))
    return text


def _field(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, (str, int, float)) else " ".join(value)
