"""``kgctl history forget``."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.cli.history.asking import Warehouse, require_tables, warehouse_path
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.selection import confirm
from kgctl.cli.session import session_of

COLUMNS = (Column("table"), Column("rows"))


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl history forget staging --yes")(history_forget)


def history_forget(
    ctx: typer.Context,
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The cluster's name in the warehouse.", show_default=False)],
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="TEXT", help="Only records of this source, as the table records has it.", show_default=False
        ),
    ] = None,
    warehouse: Warehouse = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> Report:
    """Take a cluster out of a warehouse, or what was collected of it from one source; the next build makes its tables anew.

    Files that nothing names any more are removed by `history prune`, a week later.
    """
    require_tables()
    from kgctl.pipeline.store.warehouse import Warehouse as Opened
    from kgctl.pipeline.upkeep import forget

    session = session_of(ctx)
    opened = Opened.open(warehouse_path(warehouse, session.environment))
    opened.require_cluster(cluster)
    what = f"cluster '{cluster}'" if source is None else f"the records of cluster '{cluster}' from {source}"
    confirm(session, f"Forget {what} in {opened.location}?", yes=yes)
    found = forget(opened, cluster, source)
    rows: list[Row] = [{"table": name, "rows": count} for name, count in {"records": 0, **found.rows}.items()]
    return Report(
        COLUMNS, rows, notices=[] if found.rows else ["Nothing of that is there."], name_keys=("table",), something_done=True
    )
