"""Numpy steps over rows that are sorted by a key: runs, running maxima, joins on the row before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kgctl.pipeline.decode.arrow import Bools, Int64s, packed

_BITS = 63


def begins(*columns: npt.NDArray[np.generic]) -> Bools:
    """Where a row differs from the one before in one of the columns; the first row does."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = False
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def running_max(values: Int64s, run: Int64s) -> Int64s:
    """The greatest value so far of each run; ``run`` ascends."""
    both, width = packed([run, values])
    if width <= _BITS:
        low = int(values.min()) if len(values) else 0
        mask = (1 << (int(values.max()) - low).bit_length()) - 1 if len(values) else 0
        highest: Int64s = (np.maximum.accumulate(both) & mask) + low
        return highest
    distinct, rank = np.unique(values, return_inverse=True)
    found: Int64s = distinct[running_max(rank.astype(np.int64), run)]
    return found


def last_at_or_before(keys: Int64s, values: Int64s, key: Int64s, value: Int64s) -> Int64s:
    """The last row of (keys, values), which are sorted, that has ``key`` and at most ``value``; -1 where there is none."""
    count = len(keys)
    if not count or not len(key):
        return np.full(len(key), -1, np.int64)
    both, width = packed([np.concatenate([keys, key]), np.concatenate([values, value])])
    if width > _BITS:
        rank = np.unique(np.concatenate([values, value]), return_inverse=True)[1].astype(np.int64)
        return last_at_or_before(keys, rank[:count], key, rank[count:])
    at: Int64s = np.searchsorted(both[:count], both[count:], "right") - 1
    at[keys[at] != key] = -1
    return at


def window_counts(flags: Bools, first: Int64s, last: Int64s) -> Int64s:
    """How many flags are set in rows ``first`` to ``last``, ends included; ``first`` may be just behind ``last``: none."""
    total = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=total[1:])
    counted: Int64s = total[last + 1] - total[first]
    return counted
