"""The lag of a group over time, a line for each topic: the sum over the partitions that have a commit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import int64s

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

    Int64s: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
    Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

MOST_POINTS = 2000
"""Of one line. More than that cannot be told apart on a screen."""


@dataclass(frozen=True, slots=True)
class Line:
    """Points (time in ms, value; None: not known), and how many there were before they were thinned."""

    name: str
    points: list[tuple[int, int | None]]
    of: int


def lag_lines(history: History, group: str, from_ms: int, to_ms: int) -> list[Line]:
    """By topic; from ``from_ms`` on and before ``to_ms``, with what held at ``from_ms``."""
    topics: dict[str, list[pa.Table]] = {}
    for table, columns in (("lag", ("lag",)), ("offset_commits", ("committed_offset", "effect_offset", "log_offset"))):
        found = history.rows(table, ("group", "topic", "partition", "time_ms", *columns), [group])
        rows = found.filter(pc.less(found.column("time_ms"), to_ms))
        changes = rows if table == "lag" else _removals(rows)
        for topic in changes.column("topic").unique().to_pylist():
            topics.setdefault(topic, []).append(changes.filter(pc.equal(changes.column("topic"), topic)))
    return [_line(topic, tables, from_ms) for topic, tables in sorted(topics.items())]


def _removals(rows: pa.Table) -> pa.Table:
    """Commits that were deleted, or have expired: no lag from here on."""
    removed = rows.filter(pc.is_null(rows.column("committed_offset"))).select(["group", "topic", "partition", "time_ms"])
    return removed.append_column("lag", pa.array(np.zeros(removed.num_rows, np.int64)))


def _line(topic: str, tables: list[pa.Table], from_ms: int) -> Line:
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


def _drawn(topic: str, time_ms: Int64s, total: Int64s, unknown: Int64s) -> Line:
    """Of the points that were moved to the begin only the last one counts."""
    last = np.flatnonzero(np.append(time_ms[1:] != time_ms[:-1], True))
    time_ms, total, is_known = time_ms[last], total[last], unknown[last] == 0
    kept = extremes(total, is_known, MOST_POINTS)
    values = [int(total[i]) if is_known[i] else None for i in kept]
    return Line(topic, list(zip(time_ms[kept].tolist(), values, strict=True)), len(time_ms))


_COLUMNS = ("partition", "time_ms", "lag")
_UNKNOWN = int(np.iinfo(np.int64).min)


def _steps(values: Int64s, is_first: Any) -> Int64s:
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
