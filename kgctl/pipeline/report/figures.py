"""A row for each group, and what is drawn of one: lag, commit rate, health, rebalances, resets; as plain lists for the page.

Lag is a line for each topic: the sum over the partitions that have a commit.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.causes import GroupEvidence, Likely, Spell
from kgctl.pipeline.answers.rows import by_group
from kgctl.pipeline.answers.series import COMMIT_RATE, HEALTH, REBALANCES, RESETS, Row, flooded, rows_between, table_between
from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s
from kgctl.pipeline.tables.windows import STATUSES

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


@frozen_in_order
class GroupOverview:
    """One group. ``status`` is the worst that is known of a window; None: none is."""

    group: str
    status: str | None
    rebalances: int
    rebalance_ms: int | None
    resets: int
    commits: int
    max_lag: int | None
    max_lag_ms: int | None
    cluster: str = ""


def overview(history: History, groups: Sequence[str] | None, from_ms: int, to_ms: int) -> list[GroupOverview]:
    """The groups of which something is known in that time, sorted by name."""
    table = table_between(history, HEALTH, groups, from_ms, to_ms)
    found = [replace(_group(name, rows), cluster=history.cluster) for name, rows in by_group(table)]
    return sorted(found, key=lambda each: each.group)


def worst_first(found: Sequence[GroupOverview]) -> list[GroupOverview]:
    """Return the groups by resets, then status, rebalances and lag."""
    return sorted(
        found,
        key=lambda each: (-each.resets, -_badness(each.status), -each.rebalances, -(each.max_lag or 0), each.group),
    )


def _badness(status: str | None) -> int:
    return -1 if status is None else STATUSES.index(status)


def _group(name: str, rows: pa.Table) -> GroupOverview:
    statuses = [status for status in rows.column("status").unique().to_pylist() if status is not None]
    return GroupOverview(
        group=name,
        status=max(statuses, key=_badness, default=None),
        rebalances=pc.sum(rows.column("rebalances")).as_py(),
        rebalance_ms=pc.sum(rows.column("rebalance_ms")).as_py(),
        resets=pc.sum(rows.column("resets")).as_py(),
        commits=pc.sum(rows.column("commits")).as_py(),
        max_lag=pc.max(rows.column("max_lag")).as_py(),
        max_lag_ms=pc.max(rows.column("max_lag_ms")).as_py(),
    )


MOST_POINTS = 2000
"""Of one line. More than that cannot be told apart on a screen."""


@frozen_in_order
class FigureLine:
    """Points (time in ms, value; None: not known), and how many there were before they were thinned."""

    name: str
    points: list[tuple[int, int | None]]
    of: int


def lag_lines(history: History, group: str, from_ms: int, to_ms: int) -> list[FigureLine]:
    """By topic; from ``from_ms`` on and before ``to_ms``, with what held at ``from_ms``."""
    topics: dict[str, list[pa.Table]] = {}
    for table, columns in (
        ("lag", ("lag", "log_end_offset")),
        ("offset_commits", ("committed_offset", "effect_offset", "log_offset")),
    ):
        found = history.rows(table, ("group", "topic", "partition", "time_ms", *columns), [group])
        rows = found.filter(pc.less(found.column("time_ms"), to_ms))
        changes = _unread(rows) if table == "lag" else _removals(rows)
        for topic in changes.column("topic").unique().to_pylist():
            topics.setdefault(topic, []).append(changes.filter(pc.equal(changes.column("topic"), topic)))
    return [_line(topic, tables, from_ms) for topic, tables in sorted(topics.items())]


def _unread(rows: pa.Table) -> pa.Table:
    """The lag where the log's end is known: nothing is unread of a commit out of its range."""
    lag = pc.if_else(pc.is_valid(rows.column("log_end_offset")), pc.fill_null(rows.column("lag"), 0), None)
    return rows.select(["group", "topic", "partition", "time_ms"]).append_column("lag", lag)


def _removals(rows: pa.Table) -> pa.Table:
    """Commits that were deleted, or have expired: no lag from here on."""
    removed = rows.filter(pc.is_null(rows.column("committed_offset"))).select(["group", "topic", "partition", "time_ms"])
    return removed.append_column("lag", pa.array(np.zeros(removed.num_rows, np.int64)))


def _line(topic: str, tables: list[pa.Table], from_ms: int) -> FigureLine:
    partition, time_ms, lag = (np.concatenate([int64s(table, name, _UNKNOWN) for table in tables]) for name in _COLUMNS)
    is_known = lag != _UNKNOWN
    order = np.lexsort((np.arange(len(time_ms)), time_ms, partition))
    partition, time_ms, lag, is_known = partition[order], time_ms[order], lag[order], is_known[order]
    is_first = np.append(True, partition[1:] != partition[:-1])
    steps = _steps(np.where(is_known, lag, 0), is_first)
    gaps = _steps((~is_known).astype(np.int64), is_first)
    order = np.argsort(time_ms, kind="stable")
    time_ms, total, unknown = time_ms[order], np.cumsum(steps[order]), np.cumsum(gaps[order])
    last = np.flatnonzero(np.append(time_ms[1:] != time_ms[:-1], True))
    return _drawn(topic, np.maximum(time_ms[last], from_ms), total[last], unknown[last])


def _drawn(topic: str, time_ms: Int64s, total: Int64s, unknown: Int64s) -> FigureLine:
    """Of the points that were moved to the begin only the last one counts."""
    last = np.flatnonzero(np.append(time_ms[1:] != time_ms[:-1], True))
    time_ms, total, is_known = time_ms[last], total[last], unknown[last] == 0
    kept = extremes(total, is_known, MOST_POINTS)
    values = [int(total[i]) if is_known[i] else None for i in kept]
    return FigureLine(topic, list(zip(time_ms[kept].tolist(), values, strict=True)), len(time_ms))


_COLUMNS = ("partition", "time_ms", "lag")
_UNKNOWN = int(np.iinfo(np.int64).min)


def _steps(values: Int64s, is_first: Bools) -> Int64s:
    """What each value adds to that before it of the same partition."""
    before = np.append(0, values[:-1])
    return values - np.where(is_first, 0, before)


def extremes(values: Int64s, is_known: Bools, most: int) -> Int64s:
    """Which points to draw, ascending: all, or of each of ``most / 4`` stretches the first, the last, the highest and the lowest.

    Points of unknown value count as the lowest, so that a gap is not drawn over.
    """
    size = len(values)
    if size <= most:
        return np.arange(size)
    shown = np.where(is_known, values, -1)
    bounds = np.linspace(0, size, most // 4 + 1).astype(np.int64)
    kept = [bounds[:-1], bounds[1:] - 1]
    for begin, end in pairwise(bounds.tolist()):
        stretch = shown[begin:end]
        kept.append(np.array([begin + stretch.argmax(), begin + stretch.argmin()]))
    return np.unique(np.concatenate(kept))


MOST_MARKS = 1000
"""Rebalances, resets, stretches of health: of more than that the longest are drawn."""
MOST_WINDOWS = 400
"""Of the commit rate: more windows than that are averaged."""


@frozen_in_order
class Stretch:
    """A span of time in which a state held."""

    from_ms: int
    to_ms: int
    what: str
    label: str


@frozen_in_order
class Figures:
    """Everything of one group. ``notes`` say what was left out or averaged; ``resets`` has all of them, ``marks`` those drawn."""

    cluster: str
    group: str
    lag: Sequence[FigureLine]
    rate: Sequence[FigureLine]
    rate_ms: int
    health: Sequence[Stretch]
    rebalances: Sequence[Stretch]
    members: Sequence[tuple[int, int]]
    resets: Sequence[Row]
    marks: Sequence[Row]
    changes: Sequence[Likely]
    spells: Sequence[Spell]
    notes: Sequence[str]


def figures(history: History, group: str, from_ms: int, to_ms: int) -> Figures:
    """What happened from ``from_ms`` on and before ``to_ms``."""
    notes: list[str] = []
    lag = _known(lag_lines(history, group, from_ms, to_ms), notes)
    if thinned := [line for line in lag if len(line.points) < line.of]:
        names = ", ".join(f"{line.name} {len(line.points)} of {line.of}" for line in thinned)
        notes.append(f"lag: the highest and lowest points of each stretch are drawn ({names})")
    rate, rate_ms, windows_ms = _rates(history, group, from_ms, to_ms)
    if rate_ms > windows_ms:
        notes.append(f"commit rate: averaged over {_span(rate_ms)}")
    health = _longest(_health(history, group, from_ms, to_ms), "stretches of health", notes)
    rows = rows_between(history, REBALANCES, [group], None, to_ms)
    rebalances = _longest(_rebalances(rows, from_ms), "rebalances", notes)
    members = [(max(_begin(row), from_ms), row["members"]) for row in rows if _begin(row) >= 0]
    resets = flooded(rows_between(history, RESETS, [group], from_ms, to_ms))
    marks = resets
    if len(resets) > MOST_MARKS:
        notes.append(f"resets: the {MOST_MARKS} that moved most of {len(resets)} are drawn")
        marks = sorted(sorted(resets, key=lambda row: -abs(row["records"]))[:MOST_MARKS], key=lambda row: row["time_ms"])
    account = GroupEvidence(history, group, to_ms)
    told = account.changes(from_ms), account.spells(from_ms)
    return Figures(history.cluster, group, lag, rate, rate_ms, health, rebalances, members, resets, marks, *told, notes)


def _known(lines: Sequence[FigureLine], notes: list[str]) -> list[FigureLine]:
    known = {line.name for line in lines if any(value is not None for _, value in line.points)}
    if len(known) < len(lines):
        names = ", ".join(line.name for line in lines if line.name not in known)
        notes.append(f"lag: not known of {names} in that time, as the log end was not sampled")
    return [line for line in lines if line.name in known]


def _health(history: History, group: str, from_ms: int, to_ms: int) -> list[Stretch]:
    """Windows that follow each other with the same status are one stretch; a window that is not there is as the last."""
    found: list[Stretch] = []
    rows = rows_between(history, HEALTH, [group], None, to_ms)
    ends = [*(row["window_start_ms"] for row in rows[1:]), to_ms]
    for row, end in zip(rows, ends, strict=False):
        status, begin = row["status"] or "unknown", max(row["window_start_ms"], from_ms)
        if end <= from_ms:
            continue
        if found and found[-1].what == status:
            begin = found.pop().from_ms
        found.append(Stretch(begin, end, status, status))
    return found


def _rebalances(rows: Sequence[Row], from_ms: int) -> list[Stretch]:
    return [
        Stretch(begin, begin + (row["duration_ms"] or 0), row["cause"], _rebalance_text(row))
        for row in rows
        if (begin := _begin(row)) >= from_ms
    ]


def _rebalance_text(row: Row) -> str:
    parts = [
        f"generation {row['generation_id']}: {row['cause'].replace('_', ' ')}",
        f"{row['members']} member{'s' if row['members'] != 1 else ''}",
    ]
    for name, word in (("members_joined", "joined"), ("members_left", "left")):
        if row[name]:
            parts.append(f"{len(row[name])} {word}")
    if row["duration_ms"] is not None:
        least = "at least " if row["started_by"] == "join_phase_ended" else ""
        parts.append(f"{least}{row['duration_ms']} ms")
    return ", ".join(parts)


def _begin(row: Row) -> int:
    return next((row[name] for name in REBALANCES.time if row[name] is not None), -1)


def _rates(history: History, group: str, from_ms: int, to_ms: int) -> tuple[list[FigureLine], int, int]:
    """Records a second by topic, over windows of the width that is returned, and the width of the table's."""
    rows = rows_between(history, COMMIT_RATE, [group], from_ms, to_ms)
    windows_ms = rows[0]["window_ms"] if rows else 60_000
    every = -(-(to_ms - from_ms) // (windows_ms * MOST_WINDOWS)) or 1
    width_ms = every * windows_ms
    read: dict[str, dict[int, int]] = {}
    for row in rows:
        if row["records_consumed"] is not None:
            at = max(row["window_start_ms"] // width_ms * width_ms, from_ms)
            sums = read.setdefault(row["topic"], {})
            sums[at] = sums.get(at, 0) + row["records_consumed"]
    lines = [
        FigureLine(topic, [(at, total) for at, total in sorted(sums.items())], len(sums)) for topic, sums in sorted(read.items())
    ]
    return lines, width_ms, windows_ms


def _longest(found: list[Stretch], what: str, notes: list[str]) -> list[Stretch]:
    """Of many the longest; of equally long ones some from everywhere (multiples of the golden ratio are spread evenly)."""
    if len(found) <= MOST_MARKS:
        return found
    notes.append(f"{what}: the {MOST_MARKS} longest of {len(found)} are drawn")
    places = sorted(range(len(found)), key=lambda i: (found[i].from_ms - found[i].to_ms, i * 0.6180339887 % 1))
    return [found[i] for i in sorted(places[:MOST_MARKS])]


def _span(width_ms: int) -> str:
    minutes = width_ms // 60_000
    return f"{minutes} minutes" if width_ms % 60_000 == 0 and minutes > 1 else f"{width_ms / 1000:g} seconds"


def as_data(each: Figures) -> dict[str, Any]:
    """Return the figures as JSON has them."""
    return {
        "cluster": each.cluster,
        "group": each.group,
        "lag": [{"topic": line.name, "points": line.points} for line in each.lag],
        "rate": [{"topic": line.name, "points": line.points} for line in each.rate],
        "rate_ms": each.rate_ms,
        "health": [[one.from_ms, one.to_ms, one.what] for one in each.health],
        "rebalances": [[one.from_ms, one.to_ms, one.label] for one in each.rebalances],
        "members": each.members,
        "resets": [[row["time_ms"], reset_text(row), reset_id(each.cluster, row)] for row in each.marks],
        "changes": [[one.at_ms, one.text] for one in each.changes[-MOST_MARKS:]],
        "notes": list(each.notes),
    }


def reset_id(cluster: str, row: Row) -> str:
    """Return the id of a reset's row on a page."""
    return f"reset-{zlib.crc32(cluster.encode()):x}-{zlib.crc32(row['group'].encode()):x}-{row['log_offset']}"


def reset_text(row: Row) -> str:
    """Return a row of ``resets`` as a sentence."""
    why = ", ".join(row["evidence"]).replace("_", " ")
    if row["times"] > 1:
        why += f", {row['times']} times"
    return f"{row['topic']}-{row['partition']}: {row['offset_before']} to {row['offset_after']} ({row['records']:+}): {why}"
