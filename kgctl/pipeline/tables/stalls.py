"""When a group was in trouble with a partition, by Burrow's rules, as they would have judged at each commit and sample.

====== =========================================================================================================
WARN   it reads, but its lag never shrank over the last ten commits (five at least)
STALL  it commits, but always the same offset, with records unread
STOP   it commits no more: longer since the last commit than the last ten took, with records unread ever since
REWIND its offset went back and has not come back to where it was
====== =========================================================================================================

Judged are the moments at which the lag is known: where samples of the log are missing there is no row, and that does not mean
OK. Commits within the same second count as one. ``to_ms`` is the first moment with another state; null: so it was at the end.
A removed offset ends what was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, Int64s, only_used, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.series.burrow import INTERVALS, MIN_DISTANCE_MS, OK, STATUSES, Entries, Moments, statuses
from kgctl.pipeline.tables.series.commits import Series, series
from kgctl.pipeline.tables.series.points import Points, points
from kgctl.pipeline.tables.series.samples import UNKNOWN, Samples, samples
from kgctl.pipeline.tables.series.scan import begins

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "stalls"
VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("from_ms", pa.int64(), nullable=False),
        ("to_ms", pa.int64()),
        pa.field("status", TEXT, nullable=False),
    ]
)


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, from_ms."""
    commits, known, found = series(inputs), samples(inputs), points(inputs)
    entries, entry_of_row, closes = _entries(commits, found)
    judged = _judged(commits, found, closes)
    row, time_ms = found.row[judged], found.time_ms[judged]
    reached = _log_was_reached(commits, known, found.sample[judged], row)
    status = statuses(entries, Moments(entry_of_row[row], time_ms, found.lag(commits)[judged], reached))
    key = commits.key[row]
    changes = np.flatnonzero(begins(key, status))
    until = np.append(time_ms[changes[1:]], 0)
    is_open = np.append(key[changes[1:]] != key[changes[:-1]], True)[: len(changes)]
    told = status[changes] != OK
    at = changes[told]
    columns = {
        **commits.names(row[at]),
        "from_ms": pa.array(time_ms[at]),
        "to_ms": pa.array(until[: len(changes)][told], mask=is_open[told]),
        "status": text_column(*only_used(status[at].astype(np.int64), pa.array(STATUSES))),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _entries(commits: Series, found: Points) -> tuple[Entries, Int64s, Bools]:
    """(the entries, the number of each row's entry, whether the row is the last of it)."""
    own = np.flatnonzero(~found.is_sample)
    run = np.cumsum(begins(commits.key) | (commits.previous < 0)) - 1
    first = begins(run, commits.clock_ms // MIN_DISTANCE_MS)
    last = np.append(first[1:], True)[: len(first)]
    lag, has_lag = found.lag(commits)[own], found.end[own] != UNKNOWN
    entries = Entries(run[last], commits.clock_ms[first], commits.committed[last], lag[last], has_lag[last])
    return entries, np.cumsum(first) - 1, last


def _judged(commits: Series, found: Points, closes: Bools) -> Int64s:
    """Moments with a known lag, and removals; commits before the last one of their second are not looked at."""
    is_removal = ~commits.is_commit[found.row]
    looked_at = (found.is_sample | closes[found.row]) & (found.end != UNKNOWN)
    return np.flatnonzero(looked_at | is_removal)


def _log_was_reached(commits: Series, known: Samples, sample: Int64s, row: Int64s) -> Bools:
    """Whether one of the last samples up to then, of the log as it is now, has an end that was committed."""
    if not len(known.end):
        return np.zeros(len(row), np.bool_)
    first_of_life = np.searchsorted(known.life, known.life[sample])
    oldest = np.maximum(sample - INTERVALS + 1, first_of_life)
    found: Bools = (sample >= 0) & (known.end[oldest] <= commits.committed[row])
    return found
