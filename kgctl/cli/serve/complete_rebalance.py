"""``kgctl serve complete-rebalance``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.options import Yes
from kgctl.cli.output.report import Column, Report
from kgctl.cli.selection import confirm
from kgctl.cli.serve.asking import connected
from kgctl.cli.session import session_of
from kgctl.errors import NotFoundError, RefusedError

COLUMNS = (Column("group"), Column("member"), Column("status"))


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl serve complete-rebalance payments 127.0.0.1:9092")(complete_rebalance)


def complete_rebalance(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group whose rebalance does not end.")],
    target: Annotated[
        str | None,
        typer.Argument(metavar="HOST:PORT|DIR", help="A running `kgctl serve`, or its data folder.", show_default=False),
    ] = None,
    *,
    yes: Yes = False,
) -> Report:
    """End a rebalance now, without the members that it waits for: they are removed, the others go on. Asks first, unless --yes.

    A member that was removed joins again by itself when it is alive.
    """
    from kgctl.server.operator import Wanted, ask_status, ask_to_complete

    session = session_of(ctx)
    with connected(session, target) as (connection, deadline):
        row = next(iter(ask_status(connection, deadline, Wanted(groups=(group,)))["group_rows"]), None)
    if row is None:
        raise NotFoundError(f"group {group!r} does not exist", group=group)
    if row["waiting_for"] is None:
        raise RefusedError(f"group {group!r} has no rebalance under way ({row['state']})", group=group)
    awaited = ", ".join(row["awaited"]) or "nobody"
    confirm(session, f"Complete the rebalance of {group!r} without the members that it waits for ({awaited})?", yes=yes)
    with connected(session, target) as (connection, deadline):  # anew: a question may take long
        removed = ask_to_complete(connection, group, deadline)
    rows = [{"group": group, "member": member, "status": "removed"} for member in removed]
    return Report(COLUMNS, rows, (), (f"The rebalance of {group!r} is complete.",), ("group", "member"))
