"""The rows of ``group_health``: one for each window of a group in which something happened; ways to spread facts over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kgctl.pipeline.decode.arrow import Int64s

NONE = np.iinfo(np.int64).min
"""No value."""


@dataclass(frozen=True)
class Windows:
    """``group`` and ``window`` of each row, ascending. A window is its start divided by its width; groups are numbers."""

    group: Int64s
    window: Int64s
    window_ms: int

    @classmethod
    def of(cls, moments: Sequence[tuple[Int64s, Int64s]], window_ms: int) -> Windows:
        """The rows that these moments (groups, times) fall into."""
        keys = np.unique(np.concatenate([np.empty(0, np.int64), *(_keys(group, at // window_ms) for group, at in moments)]))
        return cls(keys >> _BITS, (keys & _MASK) - _ZERO, window_ms)

    def __len__(self) -> int:
        return len(self.group)

    def at(self, group: Int64s, time_ms: Int64s) -> Int64s:
        """The row of a moment, or the next one of the group, or where that would be."""
        return self.from_window(group, time_ms // self.window_ms)

    def from_window(self, group: Int64s, window: Int64s) -> Int64s:
        """The first row of a group that is not before this window; the row behind the group's last one if there is none."""
        found: Int64s = np.searchsorted(_keys(self.group, self.window), _keys(group, window))
        return found

    def ends(self, group: Int64s) -> Int64s:
        """The row behind the last one of each group."""
        found: Int64s = np.searchsorted(self.group, group, "right")
        return found

    def counted(self, rows: Int64s, weights: Int64s | None = None) -> Int64s:
        """How often each row occurs, or the sum of its weights."""
        found = np.zeros(len(self), np.int64)
        np.add.at(found, rows, 1 if weights is None else weights)
        return found

    def summed(self, first: Int64s, end: Int64s, values: Int64s | int = 1) -> Int64s:
        """The sum at each row of the values that hold from row ``first`` on and before row ``end``."""
        steps = np.zeros(len(self) + 1, np.int64)
        np.add.at(steps, first, values)
        np.subtract.at(steps, end, values)
        found: Int64s = np.cumsum(steps)[:-1]
        return found

    def highest(self, first: Int64s, end: Int64s, values: Int64s) -> Int64s:
        """The greatest at each row of the values that hold from row ``first`` on and before row ``end``; `NONE` for none.

        Each stretch is two overlapping blocks whose length is a power of two; blocks are halved until they are rows.
        """
        some = end > first
        first, end, values = first[some], end[some], values[some]
        level = np.log2(np.maximum(end - first, 1)).astype(np.int64)
        above = np.full(len(self), NONE)
        for power in range(int(level.max(initial=0)), -1, -1):
            size, here = 1 << power, level == power
            now = above.copy()
            now[size:] = np.maximum(now[size:], above[:-size])
            np.maximum.at(now, first[here], values[here])
            np.maximum.at(now, end[here] - size, values[here])
            above = now
        return above


_BITS = 40
_MASK = (1 << _BITS) - 1
_ZERO = 1 << (_BITS - 1)
"""Windows before 1970 have numbers, too. A record may claim any time: what is beyond all reason falls into the first or last."""


def _keys(group: npt.NDArray[np.int64], window: npt.NDArray[np.int64]) -> Int64s:
    """One integer that sorts by group and window."""
    found: Int64s = group << _BITS | np.clip(window + _ZERO, 0, _MASK)
    return found
