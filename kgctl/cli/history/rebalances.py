"""``kgctl history rebalances``."""

from __future__ import annotations

from typing import Any

import typer

from kgctl.cli.history import asking
from kgctl.cli.history.asking import Asked, Question, Shape, answer, moment
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of

COLUMNS = (
    Column("group"),
    Column("type", wide=True),
    Column("generation"),
    Column("started"),
    Column("stable", wide=True),
    Column("duration_ms"),
    Column("started_by", wide=True),
    Column("members"),
    Column("joined"),
    Column("left"),
    Column("cause"),
    Column("inferred"),
    Column("assignor", wide=True),
    Column("leader", wide=True),
    Column("members_joined", wide=True),
    Column("members_left", wide=True),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history rebalances payments --from '1d ago'")(history_rebalances)


def history_rebalances(
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
    """The generations of groups: when each began, how long it took, who came and went, and why, where that can be told.

    All that are known, or those that began between --from and --to; with --at the one that was current then. A duration is the
    least it can have been where the log of a classic group does not say when the rebalance began (started_by join_phase_ended).
    Whether members that are gone have left or crashed is inferred from their last commits and session time-outs.
    """
    asked = Asked(
        groups=groups, group=group, at=at, from_=from_, to=to, warehouse=warehouse, cluster=cluster, as_of=as_of_version
    )
    return answer(session_of(ctx), asked, SHAPE, "REBALANCES")


def _made(row: dict[str, Any]) -> Row:
    return {
        "generation": row["generation_id"],
        "started": moment(row["started_ms"]),
        "stable": moment(row["stable_ms"]),
        "joined": _count(row["members_joined"]),
        "left": _count(row["members_left"]),
    }


def _count(members: list[str] | None) -> int | None:
    return None if members is None else len(members)


def _finish(question: Question, rows: list[dict[str, Any]], _at_ms: int | None) -> list[str]:
    from kgctl.pipeline.answers.inferred import infer_departures

    infer_departures(question.history, rows)
    return []


SHAPE = Shape(
    columns=COLUMNS,
    made=_made,
    name_keys=("group",),
    nothing="No generation is known of that time.",
    as_of_now=False,
    finish=_finish,
)
