"""Tables whose rows are things that happened one after the other: as of a moment, or over a stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.answers.history import History

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Series:
    """A table, its columns, what its rows are about (``key``), and when they are (``time``: the first column that is not null).

    ``order`` decides between rows of the same time. ``length`` is the column that says how long a row holds; without one it is of
    a moment. ``is_of_commits``: a partition whose commit was removed has no row as of a moment after that. ``known``: as of a
    moment the last row counts in which this column is not null, if there is one.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    time: tuple[str, ...]
    order: tuple[str, ...] = ()
    length: str = ""
    is_of_commits: bool = False
    known: str = ""


LAG = Series(
    "lag",
    ("group", "topic", "partition", "time_ms", "committed_offset", "log_end_offset", "lag", "lag_ms", "kind"),
    ("group", "topic", "partition"),
    ("time_ms",),
    is_of_commits=True,
    known="lag",
)
STATUS = Series(
    "status_changes",
    ("group", "topic", "partition", "time_ms", "status"),
    ("group", "topic", "partition"),
    ("time_ms",),
)
REBALANCES = Series(
    "generations",
    (
        "group",
        "type",
        "generation_id",
        "started_ms",
        "stable_ms",
        "duration_ms",
        "started_by",
        "assignor",
        "leader",
        "members",
        "members_joined",
        "members_left",
        "cause",
        "log_offset",
    ),
    ("group",),
    ("started_ms", "stable_ms"),
    ("log_offset",),
)
HEALTH = Series(
    "group_health",
    (
        "group",
        "window_start_ms",
        "window_ms",
        "status",
        "members",
        "rebalances",
        "rebalance_ms",
        "commits",
        "total_lag",
        "max_lag",
        "max_lag_ms",
        "resets",
        "stalled_partitions",
    ),
    ("group",),
    ("window_start_ms",),
    length="window_ms",
)
RESETS = Series(
    "resets",
    ("group", "topic", "partition", "time_ms", "offset_before", "offset_after", "records", "evidence", "log_offset"),
    ("group", "topic", "partition"),
    ("time_ms",),
    ("log_offset",),
)
COMMIT_RATE = Series(
    "commit_rate",
    ("group", "topic", "partition", "window_start_ms", "window_ms", "commits", "records_consumed", "records_per_s"),
    ("group", "topic", "partition"),
    ("window_start_ms",),
    length="window_ms",
)


PAST_LOG_END = "past_log_end"


def flooded(rows: Sequence[Row]) -> list[Row]:
    """Rows of ``resets``, sorted by key and time, with ``until_ms`` and ``times``: a row for each, and one for each flood.

    A flood is a group that goes on committing past the end of a log, mostly of one that was cut or made anew: each of its commits
    is a jump to where nothing is. Its row goes from the first one's ``offset_before`` to the last one's ``offset_after``.
    """
    found: list[Row] = []
    for row in rows:
        last = found[-1] if found else None
        if last is not None and row["evidence"] == last["evidence"] == [PAST_LOG_END] and _is_next(last, row):
            last.update(offset_after=row["offset_after"], until_ms=row["time_ms"], times=last["times"] + 1)
            last["records"] = last["offset_after"] - last["offset_before"]
        else:
            found.append({**row, "until_ms": row["time_ms"], "times": 1})
    return found


def _is_next(last: Row, row: Row) -> bool:
    """Whether it is of the same partition, and goes on where the last one ended."""
    return all(last[name] == row[name] for name in RESETS.key) and last["offset_after"] == row["offset_before"]


def rows_at(history: History, series: Series, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    """Of each key the last row that is not after ``at_ms``, sorted by key; of commits those that are known to have been there."""
    found = _last_rows(history, series, groups, at_ms)
    if not series.is_of_commits:
        return found
    from kgctl.pipeline.answers.offsets import offsets_at

    then = {(each.group, each.topic, each.partition) for each in offsets_at(history, groups, at_ms) if each.offset is not None}
    return [row for row in found if (row["group"], row["topic"], row["partition"]) in then]


def _last_rows(history: History, series: Series, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    import pyarrow.compute as pc

    from kgctl.pipeline.answers.latest import last_of_each

    rows = history.rows(series.table, series.columns, groups)
    past = rows.filter(pc.less_equal(_times(rows, series), at_ms))
    timed = past.append_column("at", _times(past, series))
    if series.known:
        timed = timed.append_column("is_known", pc.is_valid(timed.column(series.known)).cast("int8"))
    order = (*(["is_known"] if series.known else []), "at", *series.order)
    found = last_of_each(timed, series.key, order).select(series.columns).to_pylist()
    return sorted(found, key=lambda row: tuple(row[name] for name in series.key))


def rows_between(
    history: History, series: Series, groups: Sequence[str] | None, from_ms: int | None, to_ms: int | None
) -> list[Row]:
    """The rows from ``from_ms`` on and before ``to_ms``, those too that still hold at ``from_ms``; sorted by key and time."""
    found = table_between(history, series, groups, from_ms, to_ms).to_pylist()
    return sorted(found, key=lambda row: _place(row, series))


def table_between(
    history: History, series: Series, groups: Sequence[str] | None, from_ms: int | None, to_ms: int | None
) -> pa.Table:
    """The same as a table; rows of one key keep the order of the table."""
    import pyarrow.compute as pc

    rows = history.rows(series.table, series.columns, groups)
    if from_ms is not None:
        rows = rows.filter(pc.greater_equal(_last_moments(rows, series), from_ms))
    if to_ms is not None:
        rows = rows.filter(pc.less(_times(rows, series), to_ms))
    return rows


def _times(rows: pa.Table, series: Series) -> pa.ChunkedArray:
    """When each row is; a row of which nothing tells it is before all times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.coalesce(*(rows.column(name) for name in series.time), pa.scalar(-1, pa.int64()))


def _last_moments(rows: pa.Table, series: Series) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    times = _times(rows, series)
    return pc.add(times, pc.subtract(rows.column(series.length), 1)) if series.length else times


def _place(row: Row, series: Series) -> tuple[Any, ...]:
    time_ms = next((row[name] for name in series.time if row[name] is not None), -1)
    return (*(row[name] for name in series.key), time_ms, *(row[name] for name in series.order))
