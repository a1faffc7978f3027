"""SQL over a warehouse: every table under its name, stretches as views, one query at a time, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError
from kgctl.extras import require
from kgctl.pipeline.store.files import one_line
from kgctl.pipeline.store.tables import BUILT, TABLES, TIME

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from kgctl.pipeline.store.warehouse import Warehouse

VIEWS: Mapping[str, tuple[str, str]] = {
    "members": (
        "members, each for as long as it was one; to is null: it still is",
        """SELECT cluster, "group", member_id, group_instance_id, client_id, client_host, time AS "from", ends AS "to",
        generation_id AS first_generation FROM (
            SELECT *, lead(time) OVER (PARTITION BY cluster, "group", member_id
                ORDER BY log_offset, CASE change WHEN 'left' THEN 0 ELSE 1 END) AS ends
            FROM member_changes WHERE change IN ('joined', 'left')) AS spans
        WHERE change = 'joined'""",
    ),
    "assignments": (
        "partitions that members had, from when to when; to is null: it still has it",
        """SELECT cluster, "group", topic, partition, member_id, generation_id, time AS "from", ends AS "to" FROM (
            SELECT *, lead(time) OVER (PARTITION BY cluster, "group", topic, partition, member_id
                ORDER BY log_offset, CASE change WHEN 'revoked' THEN 0 ELSE 1 END) AS ends
            FROM assignment_changes) AS spans
        WHERE change = 'assigned'""",
    ),
    "stalls": (
        "stretches in which a partition was not OK by Burrow's rules; to is null: it still is not",
        """SELECT cluster, "group", topic, partition, status, time AS "from", ends AS "to" FROM (
            SELECT *, lead(time) OVER (PARTITION BY cluster, "group", topic, partition ORDER BY time) AS ends
            FROM status_changes) AS spans
        WHERE status <> 'OK'""",
    ),
    "health": (
        "group_health as stretches: each row for as long as nothing else was seen; to is null: nothing was since",
        """SELECT cluster, "group", status, members, total_lag, max_lag, max_lag_ms, stalled_partitions, past_end, below_start,
        window_start AS "from", lead(window_start) OVER (PARTITION BY cluster, "group" ORDER BY window_start) AS "to"
        FROM group_health""",
    ),
}
"""In words that DuckDB and Spark both take, with ``"`` around names, which Spark writes with backticks."""
MACROS = (
    "CREATE MACRO unix_millis(moment) AS epoch_ms(moment)",
    "CREATE MACRO timestamp_millis(ms) AS make_timestamptz(ms * 1000)",
)
"""Functions of Spark's that DuckDB has under other names: one text asks both."""


def query(warehouse: Warehouse, text: str, built: Mapping[str, int], clusters: Sequence[str] | None = None) -> pa.Table:
    """The rows of one query. ``built`` has the versions of built tables to ask; the others are asked as of now. ``clusters``: no
    other's rows are there; None: those of all.

    Neither files nor tables can be written by it.

    Raises `UsageError` (it is no SQL, names what is not there, or a package is missing).
    """
    require("kgctl history sql", "duckdb", "pyarrow", "deltalake")
    import duckdb
    import pyarrow.compute as pc

    from kgctl.pipeline.store.delta import dataset

    with duckdb.connect() as connection:
        connection.execute("SET enable_external_access = false; SET TimeZone = 'UTC'")
        for name in TABLES:
            found: Any = dataset(warehouse.table(name, built.get(name)))
            if found is not None and clusters is not None:
                found = found.filter(pc.field("cluster").isin(clusters))
            connection.register(name, TABLES[name].schema.empty_table() if found is None else found)
        _define(connection)
        with _told():
            relation: Any = connection.sql(text)  # None where the text is no query
            table: pa.Table | None = None if relation is None else relation.to_arrow_table()
        if table is None:
            raise UsageError("SQL: this has no rows: ask with SELECT")
        return _storable(table)


@contextmanager
def _told() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise UsageError(f"SQL: {one_line(error)}") from None


def _define(connection: duckdb.DuckDBPyConnection) -> None:
    """Views and functions, over the tables that are there."""
    for name, (_, view) in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {view}")
    for macro in MACROS:
        connection.execute(macro)


def asks_built(text: str) -> bool:
    """Whether a query names a table that a build makes, or a view of one. DuckDB tells only its own tables, no registered ones,
    so that it is asked where there are such, without a row. Raises `UsageError` as `query`.
    """
    require("kgctl history sql", "duckdb", "pyarrow")
    import duckdb

    with duckdb.connect() as connection, _told():
        for name, table in TABLES.items():
            connection.register("rows_of", table.schema.empty_table())
            connection.execute(f"CREATE TABLE {name} AS FROM rows_of")
        _define(connection)
        return not connection.get_table_names(text).isdisjoint(BUILT)


def _storable(table: pa.Table) -> pa.Table:
    """The rows with spans of time as texts in ISO 8601, which Parquet has no type for."""
    import pyarrow as pa

    def texts(column: pa.ChunkedArray) -> pa.Array:
        return pa.array([None if span is None else _span(span) for span in column.to_pylist()], pa.string())

    columns = [texts(column) if column.type == pa.month_day_nano_interval() else column for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _span(span: Any) -> str:
    """A span of time as ``P1M2DT3.5S``."""
    seconds = f"{span.nanoseconds / 1e9:.9f}".rstrip("0").rstrip(".")
    found = "".join((f"{span.months}M" if span.months else "", f"{span.days}D" if span.days else ""))
    return f"P{found}" + (f"T{seconds}S" if span.nanoseconds or not found else "")


_AT_THE_END = ("stalled_partitions", "past_end", "below_start")
_OF_VIEWS = {
    "members": ("member_changes", ("group", "member_id", "group_instance_id", "client_id", "client_host")),
    "assignments": ("assignment_changes", ("group", "topic", "partition", "member_id", "generation_id")),
    "stalls": ("status_changes", ("group", "topic", "partition", "status")),
    "health": ("group_health", (*("group", "status", "members", "total_lag", "max_lag", "max_lag_ms"), *_AT_THE_END)),
}
"""The table that a view's columns are from, and those that mean there what they mean here."""
_STRETCH = {
    "first_generation": ("int32", "the generation or epoch with which it came"),
    "from": (str(TIME), "when it began"),
    "to": (str(TIME), "when it ended; null: it had not"),
}


def described() -> list[dict[str, str]]:
    """Every column of every table and view, for people."""
    rows = [
        {"table": table.name, "column": column, "type": str(table.schema.field(column).type), "meaning": meaning}
        for table in TABLES.values()
        for column, meaning in table.meanings.items()
    ]
    for name, (about, _) in VIEWS.items():
        table, columns = TABLES[_OF_VIEWS[name][0]], ("cluster", *_OF_VIEWS[name][1])
        rows.append({"table": name, "column": "", "type": "view", "meaning": about})
        kinds = {column: (str(table.schema.field(column).type), table.meanings[column]) for column in columns}
        stretch = {column: said for column, said in _STRETCH.items() if name == "members" or column != "first_generation"}
        rows += [
            {"table": name, "column": column, "type": kind, "meaning": said} for column, (kind, said) in (kinds | stretch).items()
        ]
    return rows
