"""How far a group is behind, at each of its commits and at the samples of the log in between, and when it was in trouble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, Int64s, only_used, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.store.tables import columns_of
from kgctl.pipeline.tables.points import Points, ends_of_rows, points
from kgctl.pipeline.tables.registry import BEGIN_MS, PartitionInputs, Table
from kgctl.pipeline.tables.samples import UNKNOWN, Samples, samples
from kgctl.pipeline.tables.series import NONE, CommitSeries, Known, begins, known_of, series, window_counts

LAG_COLUMNS = columns_of("lag", text=TEXT)
_KINDS = pa.array(["commit", "sample"])


def lag_rows(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, time_ms; commits of one time in the order in which they took effect, then the sample."""
    commits, found = series(inputs), points(inputs)
    at = np.flatnonzero(_told(inputs, commits, found))
    row, end, lag_ms = found.row[at], found.end[at], found.lag_ms[at]
    no_time = np.isnan(lag_ms)
    columns = {
        **commits.names(row),
        "time_ms": pa.array(found.time_ms[at]),
        "committed_offset": pa.array(commits.committed[row]),
        "log_end_offset": pa.array(end, mask=end == UNKNOWN),
        "lag": pa.array(end - commits.committed[row], mask=~found.is_known[at]),
        "lag_ms": pa.array(np.rint(np.where(no_time, 0, lag_ms)).astype(np.int64), mask=no_time),
        "kind": text_column(found.is_sample[at].astype(np.int64), _KINDS),
    }
    return pa.Table.from_arrays([columns[name] for name in LAG_COLUMNS.names], schema=LAG_COLUMNS)


def _told(inputs: PartitionInputs, commits: CommitSeries, found: Points) -> Bools:
    """Commits, and the samples that tell something new."""
    key = commits.key[found.row]
    first = begins(key)
    end_before = np.append(UNKNOWN, found.end[:-1])[: len(key)]
    end_before[first] = known_of(inputs)["end"][key[first]]
    is_new_row = begins(found.row) & ~(first & (commits.clock_ms[found.row] < commits.horizon[key]))
    same: Bools = found.is_sample & ~is_new_row & (found.end == end_before)
    at_once = np.append(False, found.time_ms[1:] == found.time_ms[:-1])[: len(same)] & ~first
    told: Bools = commits.is_commit[found.row] & ~(same & (at_once | (found.lag(commits) <= 0)))
    return told


LAG = Table("lag", LAG_COLUMNS, lag_rows)
"""``log_end_offset`` of a commit is interpolated between the samples around it, that of a sample is exact; both are no less than
what was committed, unless that is past even the next sample. Outside of the samples it is null, and so is ``lag``: unknown is
never 0. ``lag`` is ``log_end_offset - committed_offset``, and null where the commit is past the log's end or below its start
(`kgctl.model.lag`). ``lag_ms`` is how long ago the log's end left the committed offset behind, by kafka-lag-exporter's rule:
interpolated between samples; 0 if nothing is unread; from before the first sample by the average rate up to the sample behind
the moment; null with fewer than two samples.

Rows of kind ``sample`` are there once a window at most, and only where something changed or is unread. Times that go back in the
log of a group (clock skew) stand still instead.
"""


INTERVALS = 10
"""Commits in a window, and samples of the log that count as recent."""
ALLOWED_LAG = 0
MINIMUM_COMMITS = 2
"""Fewer commits say nothing: OK. (Burrow's ``minimum-complete``; its default would call a lone commit stalled.)"""
MINIMUM_LAGS = 5
"""Known lags without which no growth is told: they are interpolated, so a few of them grow by chance. Burrow takes any number."""
MIN_DISTANCE_MS = 1000
STATUSES = ("OK", "WARN", "STALL", "STOP", "REWIND", "PAST_END", "BELOW_START")
OK, WARN, STALL, STOP, REWIND, PAST_END, BELOW_START = range(7)
_OF_RANGE = np.array([OK, PAST_END, BELOW_START])
"""The status of a commit that is out of its log's range, as `RANGE` numbers it: Burrow's rules have nothing to go by."""

Statuses = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Entries:
    """Commits that count as one each, sorted by series and time. ``run``: commits of a series without a removal in between.

    ``time_ms`` is the first one's, ``offset`` and ``lag`` the last one's. ``has_lag``: the lag is known.
    """

    run: Int64s
    time_ms: Int64s
    offset: Int64s
    lag: Int64s
    has_lag: Bools


@dataclass(frozen=True)
class Moments:
    """What is asked: the state as of ``now_ms``, with this lag, after ``entry``.

    ``log_was_reached``: a recent sample of the log's end is not past the last commit; ``out``: see `Points`.
    """

    entry: Int64s
    now_ms: Int64s
    lag: Int64s
    log_was_reached: Bools
    out: Int64s


def statuses(entries: Entries, asked: Moments) -> Statuses:
    """The state at each moment. The lag must be known, or the commit out of range."""
    windows = _Windows(entries)
    entry, first = asked.entry, windows.first[asked.entry]
    last_ms = entries.time_ms[entry]
    has_stopped = (asked.now_ms - last_ms > last_ms - entries.time_ms[first]) & ~asked.log_was_reached
    says_nothing = (asked.lag <= ALLOWED_LAG) | (entry - first + 1 < MINIMUM_COMMITS)
    return np.select(
        [
            asked.out != 0,
            says_nothing,
            has_stopped,
            windows.rewound[entry],
            windows.up_to_date[entry],
            windows.still[entry],
            windows.growing[entry],
        ],
        [_OF_RANGE[asked.out], OK, STOP, REWIND, OK, STALL, WARN],
        OK,
    ).astype(np.int8)


class _Windows:
    """What the rules ask of the window that ends with each entry."""

    def __init__(self, entries: Entries) -> None:
        last = np.arange(len(entries.run))
        run_first = np.maximum.accumulate(np.where(begins(entries.run), last, 0))
        self.first = np.maximum(last - INTERVALS + 1, run_first)
        moved = np.diff(entries.offset, prepend=entries.offset[:1])
        self.still = window_counts(moved != 0, self.first + 1, last) == 0
        self.up_to_date = window_counts(entries.has_lag & (entries.lag <= ALLOWED_LAG), self.first, last) > 0
        self.rewound = self._rewound(entries, moved < 0, last)
        self.growing = self._growing(entries, last)

    def _rewound(self, entries: Entries, fell: Bools, last: Int64s) -> Bools:
        """The last offset is below one before it in the window: what fell has not come back."""
        rows = np.flatnonzero(window_counts(fell, self.first + 1, last) > 0)
        highest = entries.offset[rows].copy()
        for distance in range(1, INTERVALS):
            before = np.maximum(rows - distance, self.first[rows])
            np.maximum(highest, entries.offset[before], out=highest)
        found = np.zeros(len(last), np.bool_)
        found[rows] = entries.offset[rows] < highest
        return found

    def _growing(self, entries: Entries, last: Int64s) -> Bools:
        """Of the lags that are known, none is below the one before it."""
        known = np.flatnonzero(entries.has_lag)
        fell = np.zeros(len(known), np.bool_)
        fell[1:] = entries.lag[known[1:]] < entries.lag[known[:-1]]
        low = np.searchsorted(known, self.first)
        high = np.searchsorted(known, last, "right") - 1
        enough = high - low + 1 >= MINIMUM_LAGS
        found = np.zeros(len(last), np.bool_)
        found[enough] = window_counts(fell, low[enough] + 1, high[enough]) == 0
        return found


STATUS_CHANGES_COLUMNS = columns_of("status_changes", text=TEXT)


@dataclass(frozen=True)
class StatusChanges:
    """When series got another status, sorted by series and time. ``row`` is the commit that stood then."""

    row: Int64s
    key: Int64s
    time_ms: Int64s
    status: Statuses


def changes(inputs: PartitionInputs) -> StatusChanges:
    """Return the changes from the horizon on, found once for all tables."""
    return inputs.once("changes of status", _changes)


def _changes(inputs: PartitionInputs) -> StatusChanges:
    commits, known, found = series(inputs), samples(inputs), points(inputs)
    entries, entry_of_row, closes = _entries(inputs, commits)
    judged = _judged(commits, found, closes)
    row, time_ms = found.row[judged], found.time_ms[judged]
    reached = _log_was_reached(commits, known, found.sample[judged], row)
    asked = Moments(entry_of_row[row], time_ms, found.lag(commits)[judged], reached, found.out[judged])
    status = statuses(entries, asked)
    key = commits.key[row]
    before = np.append(np.int8(OK), status[:-1])[: len(status)]
    is_first = begins(key)
    before[is_first] = known_of(inputs)["status"][key[is_first]]
    at = np.flatnonzero(status != before)
    return StatusChanges(row[at], key[at], time_ms[at], status[at])


def status_changes_rows(inputs: PartitionInputs) -> pa.Table:
    """Return the table's rows, sorted by their key and time."""
    commits, found = series(inputs), changes(inputs)
    columns = {
        **commits.names(found.row),
        "time_ms": pa.array(found.time_ms),
        "status": text_column(*only_used(found.status.astype(np.int64), pa.array(STATUSES))),
    }
    return pa.Table.from_arrays([columns[name] for name in STATUS_CHANGES_COLUMNS.names], schema=STATUS_CHANGES_COLUMNS)


def status_until(inputs: PartitionInputs, until: Int64s) -> Known:
    """The status of each series before later horizons, one of each series (`kgctl.pipeline.tables.series`)."""
    found, status = changes(inputs), known_of(inputs)["status"].copy()
    is_before = found.time_ms < until[found.key]
    status[found.key[is_before]] = found.status[is_before]  # of several the last one counts
    return {"status": status}


@dataclass(frozen=True)
class Stretches:
    """When series were not OK, sorted by series and time; ``to_ms`` is `NONE` where they still are. What was so before the
    horizon begins at `BEGIN_MS`."""

    key: Int64s
    from_ms: Int64s
    to_ms: Int64s
    status: Statuses


def stalls(inputs: PartitionInputs) -> Stretches:
    """Return the stretches between the changes of status."""
    found, before = changes(inputs), known_of(inputs)["status"]
    at = np.flatnonzero(before != OK)
    key = np.concatenate([at, found.key])
    order = np.argsort(key, kind="stable")
    from_ms = np.concatenate([np.full(len(at), BEGIN_MS), found.time_ms])[order]
    key, status = key[order], np.concatenate([before[at].astype(np.int8), found.status])[order]
    to_ms = np.append(from_ms[1:], NONE)[: len(key)]
    to_ms[np.append(key[1:] != key[:-1], True)[: len(key)]] = NONE
    told = status != OK
    return Stretches(key[told], from_ms[told], to_ms[told], status[told])


def _entries(inputs: PartitionInputs, commits: CommitSeries) -> tuple[Entries, Int64s, Bools]:
    """(the entries, the number of each row's entry, whether the row is the last of it)."""
    run = np.cumsum(begins(commits.key) | (commits.previous < 0)) - 1
    first = begins(run, commits.clock_ms // MIN_DISTANCE_MS)
    last = np.append(first[1:], True)[: len(first)]
    end, out = ends_of_rows(inputs)
    lag, has_lag = end - commits.committed, (end != UNKNOWN) & (out == 0)
    entries = Entries(run[last], commits.clock_ms[first], commits.committed[last], lag[last], has_lag[last])
    return entries, np.cumsum(first) - 1, last


def _judged(commits: CommitSeries, found: Points, closes: Bools) -> Int64s:
    """Moments with a known end, and removals; commits before the last one of their second are not looked at."""
    is_removal = ~commits.is_commit[found.row]
    looked_at = (found.is_sample | closes[found.row]) & ((found.end != UNKNOWN) | (found.out != 0))
    return np.flatnonzero(looked_at | is_removal)


def _log_was_reached(commits: CommitSeries, known: Samples, sample: Int64s, row: Int64s) -> Bools:
    """Whether one of the last samples up to then, of the log as it is now, has an end that was committed."""
    if not len(known.end):
        return np.zeros(len(row), np.bool_)
    oldest = np.maximum(sample - INTERVALS + 1, known.first_of_life[known.life[sample]])
    found: Bools = (sample >= 0) & (known.end[oldest] <= commits.committed[row])
    return found


STATUS_CHANGES = Table("status_changes", STATUS_CHANGES_COLUMNS, status_changes_rows)
"""What a group is with a partition from each moment on, by Burrow's rules, as they would have judged at each commit and
sample; and when its commit was out of the log's range, of which Burrow knows nothing. A partition that has no row yet is OK.

=========== ====================================================================================================
WARN        it reads, but its lag never shrank over the last ten commits (five at least)
STALL       it commits, but always the same offset, with records unread
STOP        it commits no more: longer since the last commit than the last ten took, with records unread ever since
REWIND      its offset went back and has not come back to where it was
PAST_END    the commit lies past the log's end
BELOW_START the commit lies before the first record that is left
=========== ====================================================================================================

Judged are the moments at which the lag is known: where samples of the log are missing nothing changes. Commits within the same
second count as one. A removed offset ends what was.

Burrow (``core/internal/evaluator/caching.go``) keeps the last ten commits of a partition, those that come within a second
counted as one, and asks, in this order: is nothing unread? has it stopped? was it rewound? was it ever up to date? is it stalled?
does its lag only grow? Where Burrow asks the wall clock, here the moment asked about counts.
"""
