"""The report of ``reset-offsets``: a plan, or what became of it, as rows and notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgctl.admin.plan.offset_reset import ResetResult, ResetRow
from kgctl.admin.reset import Executed, GroupPlan, ResetPlan
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.output.result_rows import ended
from kgctl.cli.selection import plural
from kgctl.cli.session import NamedCluster
from kgctl.errors import RefusedError

COLUMNS = (
    Column("group"),
    Column("topic"),
    Column("partition"),
    Column("old_offset"),
    Column("new_offset"),
    Column("delta"),
    Column("lag_after"),
    Column("log_start_offset", wide=True),
    Column("log_end_offset", wide=True),
    Column("result"),
    Column("note", wide=True),
)
SUMMARY = (
    Column("group"),
    Column("state"),
    Column("partitions", "#PARTITIONS"),
    Column("delta"),
    Column("lag_before"),
    Column("lag_after"),
    Column("results"),
)
_DONE = (ResetResult.PLANNED, ResetResult.UNCHANGED, ResetResult.RESET, ResetResult.DELETED)


def reset_report(plan: ResetPlan, notices: Sequence[str]) -> Report:
    """One row a partition; rows that failed or were refused are errors too."""
    errors = [*plan.errors, *(error for row in plan.rows if (error := row.to_exception()))]
    counts = _counts(plan)
    return Report(
        COLUMNS,
        [_row(row) for row in plan.rows],
        errors,
        notices,
        ("group", "topic", "partition"),
        ExitCode.FAILED if plan.is_out_of_range else None,
        any(row.result in _DONE for group in plan.groups if not group.is_refused for row in group.rows),
        summary={result.value: counts[result] for result in ResetResult if counts[result]},
    )


def summarised(report: Report, plan: ResetPlan) -> Report:
    """The report with one row a group: how many partitions of each result, how far they move, and the lag before and after."""
    return replace(report, columns=SUMMARY, rows=[_group_row(group) for group in plan.groups], name_keys=("group",))


def _group_row(group: GroupPlan) -> Row:
    counts = Counter(row.result.value for row in group.rows)
    moved = [row.delta for row in group.rows if row.delta is not None]
    before = [row.log.log_end_offset - row.old.offset for row in group.rows if row.old and row.log.log_end_offset is not None]
    after = [row.lag_after for row in group.rows if row.lag_after is not None]
    is_known = all(row.log.log_end_offset is not None for row in group.rows)
    return {
        "group": group.group_id,
        "state": group.state.value,
        "partitions": len(group.rows),
        "delta": sum(moved),
        "lag_before": sum(before) if is_known else None,
        "lag_after": sum(after) if is_known else None,
        "results": [f"{count} {result}" for result, count in sorted(counts.items())],
    }


def executed_report(executed: Executed, notices: Sequence[str]) -> Report:
    """As `reset_report`, with what ended the execution early: what was reset, is unknown, or was not tried."""
    report = reset_report(executed.plan, notices)
    if executed.ended_by or executed.signal:
        told = executed.ended_by.message if executed.ended_by else ""
        errors = [error for error in report.errors if error.message != told]
        report = replace(report, errors=errors, something_done=executed.may_have_changed)
    return ended(replace(report, is_change=True), executed.ended_by, executed.signal)


def row_warnings(plan: ResetPlan) -> Iterator[str]:
    """One line for each partition that does not get what was asked for."""
    several = len(plan.groups) > 1
    for row in plan.rows:
        if row.note and row.result in _DONE:
            yield f"{f'{row.group_id}: ' if several else ''}{row.partition}: {row.note}"


def dry_run_notices(plan: ResetPlan, cluster: NamedCluster) -> Iterator[str]:
    """That nothing was changed, and what stands in the way of changing it."""
    for group in plan.groups:
        if not group.state.is_inactive:
            yield f"Group {group.group_id!r} is active ({group.state.value}): --execute is refused until its members have left."
        elif group.description is None:
            yield f"Group {group.group_id!r} does not exist: --execute makes it."
    if plan.rows:
        changes = plan.to_change()
        groups = len({row.group_id for row in changes})
        todo = f" Add --execute to change {plural(len(changes), 'partition')} of {plural(groups, 'group')}." if changes else ""
        yield f"Dry run on {cluster}: nothing was changed.{todo}"
    elif not plan.errors:
        yield f"Nothing is to do on {cluster}."


def executed_notices(executed: Executed, cluster: NamedCluster) -> Iterator[str]:
    """What was done and where, in one line."""
    counts = _counts(executed.plan)
    refused = sum(isinstance(error, RefusedError) and error.partition is None for error in executed.plan.errors)
    parts = [f"{counts[result]} {result.value}" for result in ResetResult if counts[result] and result is not ResetResult.PLANNED]
    if refused:
        parts.append(f"{plural(refused, 'group')} refused")
    summary = ", ".join(parts)
    if executed.may_have_changed:
        yield f"Executed on {cluster}: {summary}."
    elif set(counts) == {ResetResult.UNCHANGED} and not refused:
        yield f"Nothing was to do on {cluster}: every partition is where it should be."
    else:
        yield f"Nothing was changed on {cluster}{f': {summary}' if summary else ''}."


def _counts(plan: ResetPlan) -> Counter[ResetResult]:
    return Counter(row.result for row in plan.rows)


def _row(row: ResetRow) -> Row:
    return {
        "group": row.group_id,
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "old_offset": row.old.offset if row.old else None,
        "new_offset": row.new.offset if row.new else None,
        "delta": row.delta,
        "lag_after": row.lag_after,
        "log_start_offset": row.log.log_start_offset,
        "log_end_offset": row.log.log_end_offset,
        "result": row.result.value,
        "note": row.note,
    }
