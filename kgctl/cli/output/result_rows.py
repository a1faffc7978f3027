"""The reports of commands that do one thing to each of several: a row a thing, with what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.admin.results import ItemError
from kgctl.cli.output.report import Column, Report, Row
from kgctl.errors import KgctlError

RESULT = (Column("result"), Column("error"))
FAILED = "failed"


def result_report(
    columns: Sequence[Column], rows: Sequence[tuple[Row, KgctlError | None]], done: str, name_keys: Sequence[str]
) -> Report:
    """Rows with ``result`` (``done`` or failed) and ``error`` (its code) beside what names the thing."""
    shown = [{**row, "result": FAILED if error else done, "error": error.code if error else None} for row, error in rows]
    errors = [error for _, error in rows if error]
    notices = [f"{len(rows) - len(errors)} {done}, {len(errors)} failed."] if errors else []
    return Report((*columns, *RESULT), shown, errors, notices, name_keys, something_done=len(errors) < len(rows))


def group_failure(errors: Mapping[str, ItemError], group_id: str) -> KgctlError | None:
    """The error of one group among several, as an exception that names it."""
    error = errors.get(group_id)
    return error.to_exception(group=group_id) if error else None
