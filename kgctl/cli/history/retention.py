"""What the history keeps no longer: ``kgctl history prune`` and ``kgctl history forget``."""

from __future__ import annotations

from typing import Annotated

from kgctl.admin.times import format_instant, parse_duration_ms
from kgctl.cli.environment import Environment
from kgctl.cli.history.asking import Warehouse, read_time_ms, require_tables, warehouse_path
from kgctl.cli.history.columns import TABLE
from kgctl.cli.parameters import argument, flag, option
from kgctl.cli.report import WHOLE, Column, Report, Row, shows
from kgctl.cli.selection import confirm
from kgctl.cli.session import Session
from kgctl.errors import NotFoundError, UsageError

COLUMNS = (TABLE, Column("rows", "rows that were taken out of it", WHOLE))
_DAY_MS = 86_400_000


@shows(COLUMNS, examples="kgctl history prune --older-than 30d --yes")
def history_prune(
    session: Session,
    *,
    older_than: Annotated[str, option("TIME", "Thin what is older: so long, as 30d, or a time.")],
    warehouse: Warehouse = None,
    yes: Annotated[bool, flag("--yes", "-y", "Do not ask.")] = False,
) -> Report:
    """Make a warehouse smaller: of old days keep what Kafka's cleaner would keep, the last record of each key.

    What was committed from then on is as certain as before; earlier answers become `compacted`. The next build thins the tables,
    and costs what is new. Files that nothing names any more are removed a week later.
    """
    require_tables()
    from kgctl.pipeline.store.warehouse import Warehouse as Opened
    from kgctl.pipeline.upkeep import prune

    before_ms = _before_ms(older_than, session.environment)
    opened = Opened.open(warehouse_path(warehouse, session.environment))
    confirm(session, f"Thin what was collected before {format_instant(before_ms)} in {opened.location}?", yes=yes)
    found = prune(opened, before_ms)
    rows: list[Row] = [{"table": name, "rows": found.rows.get(name, 0)} for name in ("records", "samples", "damaged")]
    told = ["Nothing is that old."] if not found.rows else ["kgctl history build thins the tables, too."]
    if found.merged:
        told.append(f"{found.merged} small files were put together with others.")
    return Report(COLUMNS, rows, notices=told, name_keys=("table",), something_done=True)


def _before_ms(text: str, environment: Environment) -> int:
    """The moment that ``--older-than`` names: so long ago, or a time. Raises `UsageError` for less than a day ago."""
    now_ms = environment.now_ms()
    try:
        before_ms = now_ms - parse_duration_ms(text)
    except UsageError:
        before_ms = read_time_ms("--older-than", text, environment) or 0
    if now_ms - before_ms < _DAY_MS:
        raise UsageError(f"--older-than {text}: whole days are thinned; the shortest is 1d")
    return before_ms


@shows(COLUMNS, examples="kgctl history forget staging --yes")
def history_forget(
    session: Session,
    cluster: Annotated[str, argument("CLUSTER", "The cluster's name in the warehouse.")],
    *,
    source: Annotated[
        str | None,
        option("TEXT", "Only records of this source, as the table records has it.", "--source"),
    ] = None,
    warehouse: Warehouse = None,
    yes: Annotated[bool, flag("--yes", "-y", "Do not ask.")] = False,
) -> Report:
    """Take a cluster out of a warehouse, or what was collected of it from one source; the next build makes its tables anew.

    Files that nothing names any more are removed by `history prune`, a week later.
    """
    require_tables()
    from kgctl.pipeline.store.warehouse import Warehouse as Opened
    from kgctl.pipeline.upkeep import forget, sources_of

    opened = Opened.open(warehouse_path(warehouse, session.environment))
    opened.require_cluster(cluster)
    if source is not None and source not in (there := sources_of(opened, cluster)):
        have = f"it has: {', '.join(there)}" if there else "it has no records"
        raise NotFoundError(f"cluster '{cluster}' has no records of source {source!r} ({have})")
    what = f"cluster '{cluster}'" if source is None else f"the records of cluster '{cluster}' from {source}"
    confirm(session, f"Forget {what} in {opened.location}?", yes=yes)
    found = forget(opened, cluster, source)
    rows: list[Row] = [{"table": name, "rows": count} for name, count in {"records": 0, **found.rows}.items()]
    return Report(
        COLUMNS,
        rows,
        notices=[] if found.rows else ["Nothing of that is there."],
        name_keys=("table",),
        something_done=True,
    )
