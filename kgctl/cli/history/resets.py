"""``kgctl history resets``."""

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
    Column("until", wide=True),
    Column("times", wide=True),
    Column("kind", wide=True),
    Column("offset_before", "BEFORE"),
    Column("offset_after", "AFTER"),
    Column("records"),
    Column("evidence"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history resets payments --from '1d ago'")(history_resets)


def history_resets(
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
    """Jumps of committed offsets that reading does not explain: when, from where to where, and what speaks for it.

    All that are known, or those between --from and --to; with --at the last one of each partition up to then. Commits past the
    log's end that follow each other are one row (`times`, and with -o wide `until`). To undo one:
    kgctl reset-offsets GROUP --to-history TIME, with a time before it.
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
    return answer(session_of(ctx), asked, SHAPE, "RESETS")


def _made(row: dict[str, Any]) -> Row:
    return {"time": moment(row["time_ms"]), "until": moment(row["until_ms"]), "kind": _kind(row)}


def _kind(row: dict[str, Any]) -> str:
    return "forward" if row["records"] > 0 else "backward"


def _finish(_question: Question, rows: list[dict[str, Any]], _at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.series import flooded

    before = len(rows)
    rows[:] = flooded(rows)
    if len(rows) == before:
        return []
    return [f"{before} jumps are {len(rows)} rows: commits past the log's end that follow each other are one (`-o wide`)."]


SHAPE = Shape(
    columns=COLUMNS,
    made=_made,
    name_keys=("topic", "partition"),
    nothing="No resets were found.",
    as_of_now=False,
    finish=_finish,
)
