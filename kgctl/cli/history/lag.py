"""``kgctl history lag``."""

from __future__ import annotations

from typing import Any

import typer

from kgctl.cli.history import options
from kgctl.cli.history.asking import Asked, Shape, answer, moment
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
    Column("kind", wide=True),
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: kgctl history lag payments --from '6h ago' --topic orders -o csv")(history_lag)


def history_lag(
    ctx: typer.Context,
    groups: options.GroupArguments = None,
    *,
    group: options.Groups = None,
    topic: options.Topics = None,
    at: options.At = None,
    from_: options.From = None,
    to: options.To = None,
    warehouse: options.Warehouse = None,
    cluster: options.Cluster = None,
) -> Report:
    """The lag of each partition, in records and in milliseconds, as of a time or, with --from or --to, over time.

    As of now, if no time is given: the last that is known, with its own time. Lag is known where the log ends of a topic were
    sampled while collecting; between two samples it is interpolated. What is not known is left out, never 0.
    """
    asked = Asked(groups=groups, group=group, topic=topic, at=at, from_=from_, to=to, warehouse=warehouse, cluster=cluster)
    return answer(session_of(ctx), asked, SHAPE, "LAG")


def _made(row: dict[str, Any]) -> Row:
    return {"time": moment(row["time_ms"])}


SHAPE = Shape(columns=COLUMNS, made=_made, name_keys=("topic", "partition"), nothing="No lag is known of that time.")
