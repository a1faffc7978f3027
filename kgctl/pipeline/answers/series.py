"""Tables whose rows happened one after the other: as of a moment, over a stretch of time; and what was committed at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.history import CollectedRun, is_whole_between, is_whole_until
from kgctl.pipeline.tables.group_history import Cause

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.answers.history import History


Row = dict[str, Any]


@frozen_in_order
class TableSeries:
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


LAG = TableSeries(
    "lag",
    ("group", "topic", "partition", "time_ms", "committed_offset", "log_end_offset", "lag", "lag_ms", "kind"),
    ("group", "topic", "partition"),
    ("time_ms",),
    is_of_commits=True,
    known="log_end_offset",
)
STATUS = TableSeries(
    "status_changes",
    ("group", "topic", "partition", "time_ms", "status"),
    ("group", "topic", "partition"),
    ("time_ms",),
)
REBALANCES = TableSeries(
    "generations",
    (
        *("group", "type", "generation_id", "started_ms", "stable_ms", "duration_ms", "started_by", "assignor", "leader"),
        *("members", "members_joined", "members_left", "cause", "log_offset"),
    ),
    ("group",),
    ("started_ms", "stable_ms"),
    ("log_offset",),
)
HEALTH = TableSeries(
    "group_health",
    (
        *("group", "window_start_ms", "window_ms", "status", "members", "rebalances", "rebalance_ms", "commits"),
        *("total_lag", "max_lag", "max_lag_ms", "resets", "stalled_partitions", "past_end", "below_start"),
    ),
    ("group",),
    ("window_start_ms",),
    length="window_ms",
)
RESETS = TableSeries(
    "resets",
    ("group", "topic", "partition", "time_ms", "offset_before", "offset_after", "records", "evidence", "log_offset"),
    ("group", "topic", "partition"),
    ("time_ms",),
    ("log_offset",),
)
COMMIT_RATE = TableSeries(
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


def rows_at(history: History, series: TableSeries, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    """Of each key the last row that is not after ``at_ms``, sorted by key; of commits those that are known to have been there."""
    found = _last_rows(history, series, groups, at_ms)
    if not series.is_of_commits:
        return found

    then = {(each.group, each.topic, each.partition) for each in offsets_at(history, groups, at_ms) if each.offset is not None}
    return [row for row in found if (row["group"], row["topic"], row["partition"]) in then]


def _last_rows(history: History, series: TableSeries, groups: Sequence[str] | None, at_ms: int) -> list[Row]:
    import pyarrow.compute as pc

    from kgctl.pipeline.answers.rows import last_of_each

    if _is_of_stored_time(series):
        rows = history.looked_back(series.table, series.columns, groups, at_ms)
    else:
        rows = history.rows(series.table, series.columns, groups)
    past = rows.filter(pc.less_equal(_times(rows, series), at_ms))
    timed = past.append_column("at", _times(past, series))
    if series.known:
        timed = timed.append_column("is_known", pc.is_valid(timed.column(series.known)).cast("int8"))
    # Clocks of brokers differ, and places in the log do not.
    order = (*(["is_known"] if series.known else []), *series.order, "at")
    found = last_of_each(timed, series.key, order).select(series.columns).to_pylist()
    return sorted(found, key=lambda row: tuple(row[name] for name in series.key))


def removed(history: History, groups: Sequence[str] | None, at_ms: int) -> dict[str, Row]:
    """Of each group whose commits were all removed by then the last removal."""
    import pyarrow.compute as pc

    from kgctl.pipeline.answers.rows import last_of_each

    names = ("group", "topic", "partition", "time_ms", "committed_offset", "effect_offset")
    rows = history.looked_back("offset_commits", names, groups, at_ms)
    past = rows.filter(pc.less_equal(rows.column("time_ms"), at_ms))
    last = last_of_each(past, ("group", "topic", "partition"), ("effect_offset",))
    is_removed = pc.is_null(last.column("committed_offset"))
    there = set(last.filter(pc.invert(is_removed)).column("group").unique().to_pylist())
    found = sorted(last.filter(is_removed).to_pylist(), key=lambda row: row["effect_offset"])
    return {row["group"]: row for row in found if row["group"] not in there}


def gone(history: History, groups: Sequence[str] | None, at_ms: int) -> dict[str, int]:
    """The groups that were deleted or have expired by then, and when: those without a commit of which the log shows no
    generation, or the end."""
    last = {row["group"]: row for row in rows_at(history, REBALANCES, groups, at_ms)}
    ended = {group: row["time_ms"] for group, row in removed(history, groups, at_ms).items() if group not in last}
    for group, row in last.items():
        if row["cause"] == Cause.GROUP_DELETED:
            ended[group] = next(row[name] for name in REBALANCES.time if row[name] is not None)
    return ended


def rows_between(
    history: History, series: TableSeries, groups: Sequence[str] | None, from_ms: int | None, to_ms: int | None
) -> list[Row]:
    """The rows from ``from_ms`` on and before ``to_ms``, those too that still hold at ``from_ms``; sorted by key and time."""
    found = table_between(history, series, groups, from_ms, to_ms).to_pylist()
    return sorted(found, key=lambda row: _place(row, series))


def table_between(
    history: History, series: TableSeries, groups: Sequence[str] | None, from_ms: int | None, to_ms: int | None
) -> pa.Table:
    """Return the rows of a span as a table; rows of one key keep the order of the stored table."""
    import pyarrow.compute as pc

    from kgctl.pipeline.store.tables import EARLIEST_MS, LATEST_MS

    span = None
    if _is_of_stored_time(series) and not series.length:
        span = (EARLIEST_MS if from_ms is None else from_ms, LATEST_MS if to_ms is None else to_ms)
    rows = history.rows(series.table, series.columns, groups, span)
    if from_ms is not None:
        rows = rows.filter(pc.greater_equal(_last_moments(rows, series), from_ms))
    if to_ms is not None:
        rows = rows.filter(pc.less(_times(rows, series), to_ms))
    return rows


def _is_of_stored_time(series: TableSeries) -> bool:
    """Whether the table's own time, by which files and row groups are left out, is when the rows are."""
    from kgctl.pipeline.store.tables import TABLES, stored_columns

    return stored_columns(series.table, series.time) == [TABLES[series.table].time]


def _times(rows: pa.Table, series: TableSeries) -> pa.ChunkedArray:
    """When each row is; a row of which nothing tells it is before all times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.coalesce(*(rows.column(name) for name in series.time), pa.scalar(-1, pa.int64()))


def _last_moments(rows: pa.Table, series: TableSeries) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    times = _times(rows, series)
    return pc.add(times, pc.subtract(rows.column(series.length), 1)) if series.length else times


def _place(row: Row, series: TableSeries) -> tuple[Any, ...]:
    time_ms = next((row[name] for name in series.time if row[name] is not None), -1)
    return (*(row[name] for name in series.key), time_ms, *(row[name] for name in series.order))


COLUMNS = (
    *("group", "topic", "partition", "committed_offset", "leader_epoch", "metadata", "time_ms", "log_offset"),
    *("effect_offset", "log_partition"),
)
_KEY = ("group", "topic", "partition")


class Exactness(StrEnum):
    """How certain an answer is."""

    EXACT = "exact"
    """Every record between this commit and the moment was collected: nothing came after it."""
    COMPACTED = "compacted"
    """Records in between were compacted away before they were collected: a later commit may have counted."""
    UNKNOWN = "unknown"
    """There may have been a commit: only later ones of this partition were collected, or it was deleted, and some of the records
    in between were compacted away."""


@frozen_in_order
class CommitAt:
    """What a group had committed for a partition at the moment asked for.

    ``offset`` is None where it is not known (`Exactness.UNKNOWN`), and so is all else about the commit. ``leader_epoch`` is None
    where the client gave none. ``committed_ms``: when it took effect, which for a transaction is its end.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    metadata: str | None
    leader_epoch: int | None
    committed_ms: int | None
    exactness: Exactness


def offsets_at(history: History, groups: Sequence[str] | None, at_ms: int) -> list[CommitAt]:
    """Every partition that had a commit at ``at_ms``, or may have had one; sorted by group, topic, partition.

    A commit counts from its own millisecond on. Of several commits the one that is last in the log counts, whatever their times.
    Partitions whose commit was deleted or had expired are not there.
    """
    import pyarrow.compute as pc

    rows = history.looked_back("offset_commits", COLUMNS, groups, at_ms, with_later=True)
    found: list[CommitAt] = []
    for partition in rows.column("log_partition").unique().to_pylist():
        here = rows.filter(pc.equal(rows.column("log_partition"), partition))
        found.extend(commits_at(here, history.coverage(partition), at_ms, history.pruned_until_ms))
    return sorted(found, key=lambda commit: (commit.group, commit.topic, commit.partition))


def commits_at(rows: pa.Table, runs: Sequence[CollectedRun], at_ms: int, thinned_until_ms: int = 0) -> list[CommitAt]:
    """The same of the commits (`COLUMNS`) of one log partition, of which ``runs`` were collected; in no order. Of commits before
    ``thinned_until_ms`` only the last ones are there; 0: none were thinned."""
    import pyarrow.compute as pc

    from kgctl.pipeline.answers.rows import last_of_each

    is_past = pc.less_equal(rows.column("time_ms"), at_ms)
    past = last_of_each(rows.filter(is_past), _KEY, ("effect_offset", "log_offset"))
    is_thinned = thinned_until_ms > 0 and at_ms < thinned_until_ms
    known_runs = () if is_thinned else runs
    found = [commit for row in past.to_pylist() if (commit := _commit(row, known_runs, at_ms)) is not None]
    if not is_whole_until(known_runs, at_ms):
        known = {_key(row) for row in past.select(_KEY).to_pylist()}
        later = _keys(rows.filter(pc.invert(is_past)))
        found += [CommitAt(*key, None, None, None, None, Exactness.UNKNOWN) for key in later if key not in known]
    return found


def _commit(row: dict[str, Any], runs: Sequence[CollectedRun], at_ms: int) -> CommitAt | None:
    """The commit that a row is; None for the deletion of one, if nothing can have been committed after it."""
    is_exact = is_whole_between(runs, row["log_offset"], at_ms)
    if row["committed_offset"] is None:
        return None if is_exact else CommitAt(*_key(row), None, None, None, None, Exactness.UNKNOWN)
    return CommitAt(
        *_key(row),
        row["committed_offset"],
        _without_end(row["metadata"]),
        None if row["leader_epoch"] < 0 else row["leader_epoch"],
        row["time_ms"],
        Exactness.EXACT if is_exact else Exactness.COMPACTED,
    )


def _without_end(metadata: str | None) -> str | None:
    """librdkafka ends metadata with a NUL that is not part of it."""
    return metadata[:-1] if metadata is not None and metadata.endswith("\0") else metadata


def _keys(rows: pa.Table) -> list[tuple[str, str, int]]:
    from kgctl.pipeline.answers.rows import last_of_each

    return [_key(row) for row in last_of_each(rows, _KEY).select(_KEY).to_pylist()]


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["topic"], row["partition"]
