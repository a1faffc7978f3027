"""Burrow's rules for the state of a consumer, for many windows of commits at once.

Burrow (``core/internal/evaluator/caching.go``) keeps the last ten commits of a partition, those that come within a second
counted as one, and asks, in this order: is nothing unread? has it stopped? was it rewound? was it ever up to date? is it stalled?
does its lag only grow? Where Burrow asks the wall clock, here the moment asked about counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.tables.series.scan import begins, window_counts

INTERVALS = 10
"""Commits in a window, and samples of the log that count as recent."""
ALLOWED_LAG = 0
MINIMUM_COMMITS = 2
"""Fewer commits say nothing: OK. (Burrow's ``minimum-complete``; its default would call a lone commit stalled.)"""
MINIMUM_LAGS = 5
"""Known lags without which no growth is told: they are interpolated, so a few of them grow by chance. Burrow takes any number."""
MIN_DISTANCE_MS = 1000
STATUSES = ("OK", "WARN", "STALL", "STOP", "REWIND")
OK, WARN, STALL, STOP, REWIND = range(5)

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

    ``log_was_reached``: a recent sample of the log's end is not past the last commit.
    """

    entry: Int64s
    now_ms: Int64s
    lag: Int64s
    log_was_reached: Bools


def statuses(entries: Entries, asked: Moments) -> Statuses:
    """The state at each moment. The lag must be known."""
    windows = _Windows(entries)
    entry, first = asked.entry, windows.first[asked.entry]
    last_ms = entries.time_ms[entry]
    has_stopped = (asked.now_ms - last_ms > last_ms - entries.time_ms[first]) & ~asked.log_was_reached
    says_nothing = (asked.lag <= ALLOWED_LAG) | (entry - first + 1 < MINIMUM_COMMITS)
    return np.select(
        [
            says_nothing,
            has_stopped,
            windows.rewound[entry],
            windows.up_to_date[entry],
            windows.still[entry],
            windows.growing[entry],
        ],
        [OK, STOP, REWIND, OK, STALL, WARN],
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
