"""The points at which lag is measured: at each commit, and at the last sample of each window after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kgctl.model.lag import Flag
from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s
from kgctl.pipeline.tables.samples import UNKNOWN, Floats, Samples, samples
from kgctl.pipeline.tables.series import CommitSeries, begins, last_at_or_before, series

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True)
class Points:
    """Those from the horizon on, sorted by series and time; a commit comes before a sample of the same time.

    ``row``: the row of ``offset_commits`` that stands then; ``is_sample``: this moment is a sample's, not the row's own;
    ``sample``: the last sample up to then, -1 for none; ``end``: the log's end, `UNKNOWN` where it is; ``lag_ms``: NaN likewise,
    and where the commit is out of the log's range; ``out``: which `RANGE` it is in.
    """

    row: Int64s
    time_ms: Int64s
    is_sample: Bools
    sample: Int64s
    end: Int64s
    lag_ms: Floats
    out: Int64s

    def lag(self, commits: CommitSeries) -> Int64s:
        """What is unread; means nothing where `is_known` does not hold."""
        found: Int64s = self.end - commits.committed[self.row]
        return found

    @property
    def is_known(self) -> Bools:
        """Return where the lag is known: that of `kgctl.model.lag.lag_of`."""
        found: Bools = (self.end != UNKNOWN) & (self.out == 0)
        return found


RANGE: Sequence[Flag | None] = (None, Flag.PAST_LOG_END, Flag.BELOW_LOG_START)
"""What `kgctl.model.lag.out_of_range` says of a commit, by number."""
PAST_END, BELOW_START = 1, 2


def points(inputs: PartitionInputs) -> Points:
    """Return the inputs' points, found once for all tables."""
    return inputs.once("points", lambda found: _points(series(found), samples(found), found.window_ms))


def ends_of_rows(inputs: PartitionInputs) -> tuple[Int64s, Int64s]:
    """(the log's end, the place in `RANGE`) at each row of ``offset_commits``: from before the horizon as they were carried."""
    table, commits, found = inputs.offset_commits, series(inputs), points(inputs)
    end = int64s(table, "end", UNKNOWN).copy() if "end" in table.column_names else np.full(len(commits.key), UNKNOWN)
    out = int64s(table, "out").copy() if "out" in table.column_names else np.zeros(len(commits.key), np.int64)
    own = ~found.is_sample
    end[found.row[own]], out[found.row[own]] = found.end[own], found.out[own]
    return end, out


def _points(commits: CommitSeries, known: Samples, window_ms: int) -> Points:
    """A block of series at a time, which bounds the memory in between."""
    last = np.flatnonzero(np.append(begins(known.log, known.time_ms // window_ms)[1:], True)[: len(known.log)])
    edges = _edges(commits.key)
    parts = [_block(commits, known, last, first, end) for first, end in pairwise(edges)]
    return Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Points)))


def _edges(key: Int64s) -> list[int]:
    """Where to cut: at the next series after each `_BLOCK_ROWS` rows."""
    wanted = np.arange(_BLOCK_ROWS, len(key), _BLOCK_ROWS)
    return [0, *np.unique(np.searchsorted(key, key[wanted - 1], "right")).tolist(), len(key)]


def _block(commits: CommitSeries, known: Samples, windows: Int64s, first: int, end: int) -> Points:
    """The points of rows ``first`` to ``end``, which are whole series."""
    key, clock_ms = commits.key[first:end], commits.clock_ms[first:end]
    own = np.flatnonzero(clock_ms >= commits.horizon[key])
    row, sample = _at_samples(commits, key, clock_ms, known, windows)
    stands = commits.is_commit[first + row]
    row, sample = row[stands], sample[stands]
    # Both parts are sorted already: a sample comes right behind the row that stands then.
    order = np.argsort(np.concatenate([own, row]), kind="stable")
    is_sample = order >= len(own)
    rows = first + np.concatenate([own, row])[order]
    at = np.concatenate([known.at(known.log_of_key[key[own]], clock_ms[own]), sample])[order]
    times = np.concatenate([clock_ms[own], known.time_ms[sample]])[order]
    committed = commits.committed[rows]
    ends = _ends(committed, known, at, times)
    out = np.where(commits.is_commit[rows], ranges(committed, _starts(known, at), ends), 0)
    lag_ms = np.where(out, np.nan, _lag_ms(committed, known, at, times, ends))
    return Points(rows, times, is_sample, at, ends, lag_ms, out)


def _at_samples(commits: CommitSeries, key: Int64s, clock_ms: Int64s, known: Samples, windows: Int64s) -> tuple[Int64s, Int64s]:
    """(the row that stands, the sample): for each series the last sample of each window, from its first row and the horizon on.
    ``windows``: the samples that are the last ones of their windows."""
    keys = key[begins(key)]
    keys = keys[known.log_of_key[keys] >= 0]
    if not len(keys) or not len(windows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    log, log_of_key = known.log[windows], known.log_of_key[keys]
    before = np.maximum(commits.horizon[keys], known.time_ms[windows].min()) - 1
    since = last_at_or_before(log, known.time_ms[windows], log_of_key, before)
    starts = np.where(since >= 0, since + 1, np.searchsorted(log, log_of_key))
    of_key = np.searchsorted(log, log_of_key, "right") - starts
    nth = np.arange(of_key.sum()) - np.repeat(np.cumsum(of_key) - of_key, of_key)
    sample = windows[np.repeat(starts, of_key) + nth]
    row = last_at_or_before(key, clock_ms, np.repeat(keys, of_key), known.time_ms[sample])
    return row[row >= 0], sample[row >= 0]


def _ends(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s) -> Int64s:
    """The log is at least as long as what is committed, unless that is past even the next end: clocks may differ a little."""
    end = known.end_at(sample, time_ms)
    if not len(known.end):
        return end
    after = known.next_of(sample, time_ms)
    between = (after >= 0) & (end >= 0) & (committed <= known.end[after])
    return np.where(between, np.maximum(end, committed), end)


def _starts(known: Samples, sample: Int64s) -> Int64s:
    """The log's start by the last sample; `UNKNOWN` without one."""
    return np.where(sample >= 0, known.start[sample], UNKNOWN) if len(known.start) else np.full(len(sample), UNKNOWN)


def ranges(committed: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """Of each commit its place in `RANGE`; start and end may be `UNKNOWN`."""
    is_past = (end != UNKNOWN) & (committed > end)
    return np.where((start != UNKNOWN) & (committed < start), BELOW_START, np.where(is_past, PAST_END, 0))


def _lag_ms(committed: Int64s, known: Samples, sample: Int64s, time_ms: Int64s, end: Int64s) -> Floats:
    """How long ago the log's end left the commit behind: 0 where nothing is unread."""
    waited = np.maximum(time_ms - known.reached_at(sample, committed, time_ms), 0)
    none_unread = (end != UNKNOWN) & (committed >= end)
    return np.where(none_unread, 0.0, waited)
