"""The one shape of JSON and YAML output, for every command and for every failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kgctl.cli.output.report import Report
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
