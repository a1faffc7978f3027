"""The reports of changes: a row a thing, with what became of it, and the exit code of a change that was cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kgctl.admin.execution import Account, Outcome
from kgctl.admin.results import ItemError
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.output.report import Column, Report, Row
from kgctl.errors import KgctlError

K = TypeVar("K", bound=Hashable)

RESULT = (Column("result"), Column("error"))
FAILED = Outcome.FAILED.value


def result_report(
    columns: Sequence[Column], rows: Sequence[tuple[Row, KgctlError | None]], done: str, name_keys: Sequence[str]
) -> Report:
    """Rows with ``result`` (``done`` or failed) and ``error`` (its code) beside what names the thing."""
    shown = [{**row, "result": FAILED if error else done, "error": error.code if error else None} for row, error in rows]
    errors = [error for _, error in rows if error]
    notices = [f"{len(rows) - len(errors)} {done}, {len(errors)} failed."] if errors else []
    return Report((*columns, *RESULT), shown, errors, notices, name_keys, something_done=len(errors) < len(rows))


def account_report(
    columns: Sequence[Column],
    rows: Mapping[K, Row],
    account: Account[K],
    done: str,
    *,
    name_keys: Sequence[str],
    explain: Callable[[K, ItemError], KgctlError],
    refused: Mapping[K, KgctlError] | None = None,
) -> Report:
    """Rows with what became of each item: ``done``, failed, unknown or not-tried; the counts are the summary.

    ``refused`` are items that were decided against before anything was sent, and why.
    """
    told = account.ended_by.message if account.ended_by else None
    failures = {item: explain(item, error) for item, error in account.errors.items()} | dict(refused or {})
    outcomes = account.outcomes | dict.fromkeys(refused or {}, Outcome.FAILED)
    shown: list[Row] = []
    for item, row in rows.items():
        word = done if outcomes[item] is Outcome.DONE else outcomes[item].value
        shown.append({**row, "result": word, "error": failures[item].code if item in failures else None})
    report = Report(
        (*columns, *RESULT),
        shown,
        [failures[item] for item in rows if item in failures and failures[item].message != told],
        (),
        name_keys,
        something_done=account.may_have_changed,
        summary=dict(Counter(str(row["result"]) for row in shown)),
        is_change=True,
    )
    return ended(report, account.ended_by, account.signal)


def ended(report: Report, ended_by: KgctlError | None, signal: int | None) -> Report:
    """The report with what ended the change early: its error, and the exit code that says so.

    A change that may have reached the cluster is partial, whatever ended it; one that surely did not is its error's alone.
    """
    errors = [*report.errors, *([ended_by] if ended_by else [])]
    code = report.fixed_exit_code
    if signal is not None:
        code = ExitCode(128 + signal)
    elif ended_by is not None and report.something_done:
        code = ExitCode.PARTIAL
    return replace(report, errors=errors, fixed_exit_code=code)


def counted(counts: Mapping[str, int | str | float | bool | Sequence[str] | None]) -> str:
    """``138 reset, 862 not-tried``, none left out but those that are nothing."""
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def group_failure(errors: Mapping[str, ItemError], group_id: str) -> KgctlError | None:
    """The error of one group among several, as an exception that names it."""
    error = errors.get(group_id)
    return error.to_exception(group=group_id) if error else None
