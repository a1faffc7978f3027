"""``kgctl history health``."""

from __future__ import annotations

from typing import Any

import typer

from kgctl.cli.history import asking
from kgctl.cli.history.asking import Asked, Question, Shape, answer, moment
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of

COLUMNS = (
    Column("group"),
    Column("window_start", "FROM"),
    Column("window_ms", wide=True),
    Column("status"),
    Column("members"),
    Column("rebalances"),
    Column("rebalance_ms", wide=True),
    Column("commits"),
    Column("total_lag"),
    Column("max_lag", wide=True),
    Column("max_lag_ms"),
    Column("resets"),
    Column("stalled_partitions", "STALLED"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history health --at '1h ago'")(history_health)


def history_health(
    ctx: typer.Context,
    groups: asking.GroupArguments = None,
    *,
    group: asking.Groups = None,
    at: asking.At = None,
    from_: asking.From = None,
    to: asking.To = None,
    warehouse: asking.Warehouse = None,
    cluster: asking.Cluster = None,
    as_of_version: asking.AsOfVersion = None,
) -> Report:
    """How groups were, in windows of a minute: status, members, rebalances, commits, lag, resets, stalled partitions.

    The window of a time, by default the last one that is known; with --from or --to all windows in between.
    """
    asked = Asked(
        groups=groups, group=group, at=at, from_=from_, to=to, warehouse=warehouse, cluster=cluster, as_of=as_of_version
    )
    return answer(session_of(ctx), asked, SHAPE, "HEALTH")


def _made(row: dict[str, Any]) -> Row:
    return {"window_start": moment(row["window_start_ms"])}


def _finish(question: Question, rows: list[dict[str, Any]], at_ms: int | None) -> list[str]:
    """A group that looks well, and was not measured often enough, is not called well."""
    if at_ms is None:
        return []
    from kgctl.pipeline.answers.inferred import UNMEASURED, unmeasured_groups

    found = unmeasured_groups(question.history, question.groups, at_ms)
    doubtful = [row for row in rows if row["status"] in ("OK", "WARN") and row["group"] in found]
    for row in doubtful:
        row["status"] = UNMEASURED
    return [f"group {row['group']!r} was not measured often enough to say how it is ({found[row['group']]})." for row in doubtful]


SHAPE = Shape(columns=COLUMNS, made=_made, name_keys=("group",), nothing="Nothing is known of that time.", finish=_finish)
