"""``kgctl history sql``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kgctl.cli.history.asking import AsOfVersion, Warehouse, require_tables, warehouse_path
from kgctl.cli.output.report import Column, Report, Row
from kgctl.cli.session import session_of
from kgctl.errors import UsageError

TABLES = (Column("table"), Column("column"), Column("type"), Column("meaning"))


def register(app: typer.Typer) -> None:
    app.command(epilog="""Example: kgctl history sql 'SELECT topic, max(lag) FROM lag GROUP BY topic'""")(history_sql)


def history_sql(
    ctx: typer.Context,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="One query in SQL.", show_default=False)] = None,
    *,
    tables: Annotated[bool, typer.Option("--tables", help="List the tables with their columns and what they mean.")] = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write the rows as Parquet.", show_default=False)
    ] = None,
    warehouse: Warehouse = None,
    as_of_version: AsOfVersion = None,
) -> Report:
    """Ask the tables of a warehouse in SQL (DuckDB's), all clusters at once; nothing can be changed by it.

    Besides the tables there are the views `members`, `assignments` and `stalls` with `from` and `to`. A column named like a word
    of SQL is quoted: "group". Times are in UTC; `-o csv` and `-o json` print the rows for other programs.
    """
    require_tables()
    from kgctl.pipeline.sql import described
    from kgctl.pipeline.sql import query as ask

    session = session_of(ctx)
    if tables == (query is not None):
        raise UsageError("give a query, or --tables for what can be asked")
    if query is None:
        return Report(TABLES, described(), name_keys=("table", "column"))
    from kgctl.pipeline.answers.history import versions_of
    from kgctl.pipeline.store.warehouse import Warehouse as Opened

    opened = Opened.open(warehouse_path(warehouse, session.environment))
    found = ask(opened, query, versions_of(opened, as_of_version))
    behind = {} if as_of_version is not None else {name: opened.files_behind("records", name) for name in opened.clusters()}
    told = [
        f"cluster '{name}': {sum(file.rows for file in files)} records were collected after the last build: "
        "kgctl history build brings them in."
        for name, files in behind.items()
        if files
    ]
    if parquet is not None:
        from kgctl.cli.output.files import write_whole
        from kgctl.pipeline.store.files import write_table

        write_whole(parquet, lambda file: write_table(file, found))
        return Report(notices=[f"written: {parquet}, {found.num_rows} rows", *told], something_done=True)
    columns = [Column(name, name.upper().replace("_", "-")) for name in found.column_names]
    return Report(columns, [_row(row) for row in found.to_pylist()], notices=told, something_done=True)


def _row(row: dict[str, Any]) -> Row:
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str | int | float | bool | list) else str(value)
