"""How far behind the groups were at the end of each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.tables.health.windows import NONE, Windows
from kgctl.pipeline.tables.series.commits import series
from kgctl.pipeline.tables.series.points import points
from kgctl.pipeline.tables.series.samples import UNKNOWN
from kgctl.pipeline.tables.series.scan import begins

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


@dataclass(frozen=True)
class Cells:
    """The last known state of a partition in each window in which it was looked at, by partition and time.

    ``group`` numbers the groups of the series; ``is_there``: the offset was not removed; ``lag`` and ``lag_ms`` are `NONE` where
    they are not known; ``commits``: how many there were in this window; ``is_last``: the partition has no later cell.
    """

    group: Int64s
    time_ms: Int64s
    is_there: Bools
    lag: Int64s
    lag_ms: Int64s
    commits: Int64s
    is_last: Bools


def cells(inputs: PartitionInputs) -> Cells:
    """All of them."""
    commits, found = series(inputs), points(inputs)
    key = commits.key[found.row]
    first = begins(key, found.time_ms // inputs.window_ms)
    last = np.flatnonzero(np.append(first[1:], True)[: len(first)])
    is_commit = ~found.is_sample & commits.is_commit[found.row]
    counted = np.diff(np.append(0, np.cumsum(is_commit)[last]))
    row, end, lag_ms = found.row[last], found.end[last], found.lag_ms[last]
    is_there = commits.is_commit[row]
    is_known = (end != UNKNOWN) & is_there
    key_after = np.append(key[last][1:], -1)
    return Cells(
        group=commits.group[row],
        time_ms=found.time_ms[last],
        is_there=is_there,
        lag=np.where(is_known, end - commits.committed[row], NONE),
        lag_ms=np.where(is_there & ~np.isnan(lag_ms), np.rint(np.nan_to_num(lag_ms)).astype(np.int64), NONE),
        commits=counted,
        is_last=key[last] != key_after[: len(last)],
    )


@dataclass(frozen=True)
class Lags:
    """By row: sums and maxima over the partitions that have a commit.

    ``known`` and ``unknown`` count those partitions; ``unknown_ms``: those whose lag in time is not known.
    """

    total: Int64s
    highest: Int64s
    highest_ms: Int64s
    known: Int64s
    unknown: Int64s
    unknown_ms: Int64s
    commits: Int64s


def lags(windows: Windows, found: Cells, group: Int64s) -> Lags:
    """Each cell holds until the partition's next one. ``group``: the group of each cell as ``windows`` numbers it."""
    first = windows.at(group, found.time_ms)
    end = np.append(first[1:], 0)[: len(first)]
    end[found.is_last] = windows.ends(group[found.is_last])
    is_known = found.lag != NONE
    has_time = found.lag_ms != NONE
    is_unknown = found.is_there & ~is_known
    is_timeless = found.is_there & ~has_time
    return Lags(
        total=windows.summed(first[is_known], end[is_known], found.lag[is_known]),
        highest=windows.highest(first[is_known], end[is_known], found.lag[is_known]),
        highest_ms=windows.highest(first[has_time], end[has_time], found.lag_ms[has_time]),
        known=windows.summed(first[is_known], end[is_known]),
        unknown=windows.summed(first[is_unknown], end[is_unknown]),
        unknown_ms=windows.summed(first[is_timeless], end[is_timeless]),
        commits=windows.counted(first, found.commits),
    )
