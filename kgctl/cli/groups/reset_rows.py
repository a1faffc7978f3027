"""The report of ``reset-offsets``: a plan, or what became of it, as rows and notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kgctl.admin.plan.offset_reset import ResetResult, ResetRow
from kgctl.admin.reset import ResetPlan
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.output.report import Column, Report, Row

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
    Column("note"),
)
_DONE = (ResetResult.PLANNED, ResetResult.UNCHANGED, ResetResult.RESET, ResetResult.DELETED)


def reset_report(plan: ResetPlan, notices: Sequence[str]) -> Report:
    """One row a partition; rows that failed or were refused are errors too."""
    errors = [*plan.errors, *(error for row in plan.rows if (error := row.to_exception()))]
    return Report(
        COLUMNS,
        [_row(row) for row in plan.rows],
        errors,
        notices,
        ("topic", "partition"),
        ExitCode.FAILED if plan.is_out_of_range else None,
        any(row.result in _DONE for group in plan.groups if not group.is_refused for row in group.rows),
    )


def row_warnings(plan: ResetPlan) -> Iterator[str]:
    """One line for each partition that does not get what was asked for."""
    several = len(plan.groups) > 1
    for row in plan.rows:
        if row.note and row.result in _DONE:
            yield f"{f'{row.group_id}: ' if several else ''}{row.partition}: {row.note}"


def dry_run_notices(plan: ResetPlan) -> Iterator[str]:
    """That nothing was changed, and what stands in the way of changing it."""
    for group in plan.groups:
        if not group.state.is_inactive:
            yield f"Group {group.group_id!r} is active ({group.state.value}): --execute is refused until its members have left."
        elif group.description is None:
            yield f"Group {group.group_id!r} does not exist: --execute makes it."
    if plan.rows:
        changes = len(plan.to_change())
        yield "Dry run: nothing was changed." + (f" Add --execute to change {_partitions(changes)}." if changes else "")


def executed_notices(plan: ResetPlan) -> Iterator[str]:
    """What was done, in one line."""
    counts: Counter[ResetResult] = Counter(row.result for row in plan.rows if row.result is not ResetResult.PLANNED)
    summary = ", ".join(f"{counts[result]} {result.value}" for result in ResetResult if counts[result])
    if counts[ResetResult.RESET] or counts[ResetResult.DELETED] or set(counts) == {ResetResult.UNCHANGED}:
        yield f"Executed: {summary}."
    else:
        yield f"Nothing was changed{f': {summary}' if summary else ''}."


def _partitions(count: int) -> str:
    return f"{count} partition{'s' if count != 1 else ''}"


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
