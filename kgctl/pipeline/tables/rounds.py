"""Time as builds go by it: when the log ends of topics were sampled, by which clock records count, and up to when rows are for
good.

Whatever is collected later must not change a row that was made for good. So what a sample says of the time before it counts only
if it comes soon: in the window behind the next one in which anything of the cluster was sampled, at the latest. A log that is
left out while others are sampled (its broker is away) is unknown in between, and its samples are awaited no longer than that.

Brokers write the times of records, each by its own clock, and a partition may change its broker. So a record that claims to be
older than the newest one before it in its partition, by more than a window, counts as of that window's distance: what is still
to come is never older than that, and rows from before are for good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.tables.registry import BEGIN_MS, DEFAULT_WINDOW_MS, EVER_MS

LONGEST = 240
"""So many windows may lie between two samples, where nothing else of the cluster was sampled either."""


def rounds_of(times_ms: Int64s) -> Int64s:
    """The windows, ascending, in which these samples were taken. A window is its start divided by `DEFAULT_WINDOW_MS`."""
    found: Int64s = np.unique(times_ms // DEFAULT_WINDOW_MS)
    return found


def is_soon(rounds: Int64s, time_ms: Int64s, sampled_ms: Int64s) -> Bools:
    """Whether what a sample says counts for these moments before it."""
    window, sampled = time_ms // DEFAULT_WINDOW_MS, sampled_ms // DEFAULT_WINDOW_MS
    if not len(rounds):
        return sampled <= window
    at = np.searchsorted(rounds, window + 1)
    following = np.append(rounds, np.iinfo(np.int64).max - 1)[at]
    found: Bools = (sampled <= window) | ((following <= window + LONGEST) & (sampled <= following + 1))
    return found


def settled_until(rounds: Int64s, newest_ms: int) -> int:
    """The time before which no sample that is still to come counts; ``newest_ms``: up to when records are known."""
    given_up = BEGIN_MS if newest_ms == BEGIN_MS else (newest_ms // DEFAULT_WINDOW_MS - LONGEST - 1) * DEFAULT_WINDOW_MS
    if not len(rounds):
        return max(given_up, newest_ms)
    awaited = rounds[rounds < rounds[-1] - 1]
    return max(given_up, int(awaited[-1]) * DEFAULT_WINDOW_MS if len(awaited) else BEGIN_MS)


def sampled_for(rounds: Int64s, time_ms: int) -> int:
    """Up to when samples must be known for `settled_until` to be no earlier than the window of a time; `EVER_MS`: all."""
    at = np.searchsorted(rounds, time_ms // DEFAULT_WINDOW_MS)
    after = rounds[np.searchsorted(rounds, rounds[at] + 2) :] if at < len(rounds) else rounds[:0]
    return (int(after[0]) + 1) * DEFAULT_WINDOW_MS if len(after) else EVER_MS


_BACK_MS = 3_600_000
"""A record whose next one is older by more than this claims a time that nobody else has: it moves no clock."""


def clocks(times_ms: Int64s, newest_ms: int, last_ms: int) -> tuple[Int64s, Int64s, int]:
    """(the time of each of a partition's records that counts, the newest time up to there, the newest one behind them).

    ``newest_ms``: up to the records before the last one, whose own time is ``last_ms``; `BEGIN_MS` where there are none. A time
    counts for others once the next record is there.
    """
    every = np.append(last_ms, times_ms)
    moved = np.where(every[1:] >= every[:-1] - _BACK_MS, every[:-1], BEGIN_MS)
    newest = np.maximum.accumulate(np.maximum(moved, newest_ms)) if len(moved) else moved
    counted = np.maximum(times_ms, newest - DEFAULT_WINDOW_MS)
    return counted, np.maximum.accumulate(np.maximum(newest, times_ms)), int(newest[-1]) if len(newest) else newest_ms


SKEW_MS = 5 * DEFAULT_WINDOW_MS
"""By so much the clock of a partition's leader may be behind others' without a cost."""


class EndSeen(NamedTuple):
    """From when to when, by the clock of whoever looked, a partition's log ended at ``end``, with all before it collected."""

    first_ms: int
    last_ms: int
    end: int = 1 << 62

    def until_ms(self, offset: int, record_ms: int) -> int:
        """Up to when all records of the partition are known, by the clock of its leader, as far as this tells; ``offset`` and
        ``record_ms``: of its last record."""
        behind_ms = min(max(self.first_ms - record_ms, 0), SKEW_MS)
        return BEGIN_MS if offset >= self.end else self.last_ms - behind_ms


def horizon_of(newest_ms: int, sampled_until_ms: int) -> int:
    """The begin of a window before which rows are for good; ``newest_ms``: up to when all records of the partition are known,
    ``sampled_until_ms``: before which no sample counts that is still to come."""
    if newest_ms == BEGIN_MS:
        return BEGIN_MS
    window = DEFAULT_WINDOW_MS
    return min(newest_ms // window * window - window, sampled_until_ms // window * window)


def likely_horizon(newest_ms: int, rounds: Int64s) -> int:
    """The begin of a window before which rows stay if nothing comes late: the last one in which anything was sampled and that
    has begun by the records. What comes may be from before it; `horizon_of` is what holds then."""
    begun = rounds[rounds <= newest_ms // DEFAULT_WINDOW_MS]
    return int(begun[-1]) * DEFAULT_WINDOW_MS if len(begun) and newest_ms != BEGIN_MS else BEGIN_MS
