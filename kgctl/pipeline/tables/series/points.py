"""The moments at which the lag of a series is looked at: each commit, each removal, and each window's last sample of the log."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.tables.series.commits import Series, series
from kgctl.pipeline.tables.series.samples import UNKNOWN, Floats, Samples, samples
from kgctl.pipeline.tables.series.scan import begins, last_at_or_before

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True)
class Points:
    """Sorted by series and time; a commit comes before a sample of the same time.

    ``row``: the row of ``offset_commits`` that stands then; ``is_sample``: this moment is a sample's, not the row's own;
    ``sample``: the last sample up to then, -1 for none; ``end``: the log's end, `UNKNOWN` where it is; ``lag_ms``: NaN likewise.
    """

    row: Int64s
    time_ms: Int64s
    is_sample: Bools
    sample: Int64s
    end: Int64s
    lag_ms: Floats

    def lag(self, commits: Series) -> Int64s:
        """End minus commit; means nothing where ``end`` is unknown."""
        found: Int64s = self.end - commits.committed[self.row]
        return found


def points(inputs: PartitionInputs) -> Points:
    """Found once for all tables."""
    return inputs.once("points", lambda found: _points(series(found), samples(found), found.window_ms))


def _points(commits: Series, known: Samples, window_ms: int) -> Points:
    """A block of series at a time, which bounds the memory in between."""
    edges = _edges(commits.key)
    parts = [_block(commits, known, window_ms, first, last) for first, last in pairwise(edges)]
    return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))


def _edges(key: Int64s) -> list[int]:
    """Where to cut: at the next series after each `_BLOCK_ROWS` rows."""
    wanted = np.arange(_BLOCK_ROWS, len(key), _BLOCK_ROWS)
    return [0, *np.unique(np.searchsorted(key, key[wanted - 1], "right")).tolist(), len(key)]


def _block(commits: Series, known: Samples, window_ms: int, first: int, last: int) -> Points:
    """The points of rows ``first`` to ``last``, which are whole series."""
    key, clock_ms = commits.key[first:last], commits.clock_ms[first:last]
    row, sample = _at_samples(key, clock_ms, known, window_ms)
    stands = commits.is_commit[first + row]
    row, sample = row[stands], sample[stands]
    # Both parts are sorted already: a sample comes right behind the row that stands then.
    total = len(key) + len(row)
    is_sample = np.zeros(total, np.bool_)
    is_sample[row + 1 + np.arange(len(row))] = True
    rows, at, times = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    rows[~is_sample], rows[is_sample] = np.arange(first, last), first + row
    at[~is_sample], at[is_sample] = known.at(known.log_of_key[key], clock_ms), sample
    times[~is_sample], times[is_sample] = clock_ms, known.time_ms[sample]
    committed = commits.committed[rows]
    end = _ends(committed, known, at, times)
    return Points(rows, times, is_sample, at, end, _lag_ms(committed, known, at, times, end))


def _at_samples(key: Int64s, clock_ms: Int64s, known: Samples, window_ms: int) -> tuple[Int64s, Int64s]:
    """(the row that stands, the sample): for each series the last sample of each window, from its first row on."""
    last = np.flatnonzero(np.append(begins(known.log, known.time_ms // window_ms)[1:], True)[: len(known.log)])
    keys = np.unique(key)
    keys = keys[known.log_of_key[keys] >= 0]
    if not len(keys) or not len(last):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    counts = np.bincount(known.log[last])
    of_key = counts[known.log_of_key[keys]]
    starts = (np.cumsum(counts) - counts)[known.log_of_key[keys]]
    nth = np.arange(of_key.sum()) - np.repeat(np.cumsum(of_key) - of_key, of_key)
    sample = last[np.repeat(starts, of_key) + nth]
    row = last_at_or_before(key, clock_ms, np.repeat(keys, of_key), known.time_ms[sample])
    return row[row >= 0], sample[row >= 0]


def _ends(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s) -> Int64s:
    """Between two samples the log is at least as long as what is committed, unless that is past even the next end."""
    end = known.end_at(sample, time_ms)
    if not len(known.end):
        return end
    after = known.next_of(sample)
    between = (after >= 0) & (end >= 0) & (known.time_ms[sample] < time_ms) & (committed <= known.end[after])
    return np.where(between, np.maximum(end, committed), end)


def _lag_ms(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s, end: Int64s) -> Floats:
    """How long ago the log's end left the commit behind: 0 where nothing is unread."""
    waited = np.maximum(time_ms - known.reached_at(sample, committed), 0)
    none_unread = (end != UNKNOWN) & (committed >= end)
    return np.where(none_unread, 0.0, waited)
