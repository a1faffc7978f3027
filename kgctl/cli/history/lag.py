"""``kgctl history lag``."""

from __future__ import annotations

from typing import Any

import typer

from kgctl.cli.history import asking
from kgctl.cli.history.asking import Asked, Question, Shape, answer, moment
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of

COLUMNS = (
    Column("group"),
    Column("topic"),
    Column("partition"),
    Column("time"),
    Column("committed_offset"),
    Column("log_end_offset"),
    Column("lag"),
    Column("lag_ms"),
    Column("status"),
    Column("why", wide=True),
    Column("kind", wide=True),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history lag payments --from '6h ago' --topic orders -o csv")(history_lag)


def history_lag(
    ctx: typer.Context,
    groups: asking.GroupArguments = None,
    *,
    group: asking.Groups = None,
    topic: asking.Topics = None,
    at: asking.At = None,
    from_: asking.From = None,
    to: asking.To = None,
    warehouse: asking.Warehouse = None,
    cluster: asking.Cluster = None,
    as_of_version: asking.AsOfVersion = None,
) -> Report:
    """The lag of each partition, in records and in milliseconds, as of a time or, with --from or --to, over time.

    As of now, if no time is given: the last that is known, with its own time. Lag is known where the log ends of a topic were
    sampled while collecting; between two samples it is interpolated. What is not known is left out, never 0. The status is
    Burrow's, or UNMEASURED where the log was not sampled often enough to tell (`-o wide` says why).
    """
    asked = Asked(
        groups=groups,
        group=group,
        topic=topic,
        at=at,
        from_=from_,
        to=to,
        warehouse=warehouse,
        cluster=cluster,
        as_of=as_of_version,
    )
    return answer(session_of(ctx), asked, SHAPE, "LAG")


def _made(row: dict[str, Any]) -> Row:
    return {"time": moment(row["time_ms"])}


def _finish(question: Question, rows: list[dict[str, Any]], at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.inferred import UNMEASURED, judge, judge_each

    if at_ms is None:
        judge_each(question.history, rows, question.groups)
        return []
    judge(question.history, rows, question.groups, at_ms)
    unmeasured = [row for row in rows if row["status"] == UNMEASURED]
    if not unmeasured:
        return []
    first = "{group}, {topic}-{partition}: {why}".format_map(unmeasured[0])
    return [f"{len(unmeasured)} of {len(rows)} partitions were not measured often enough to say how they are ({first})."]


SHAPE = Shape(
    columns=COLUMNS,
    made=_made,
    name_keys=("topic", "partition"),
    nothing="No lag is known of that time.",
    finish=_finish,
)
