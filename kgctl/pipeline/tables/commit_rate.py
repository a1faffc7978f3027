"""How often a group commits and how much it reads, by windows that begin at multiples of ``window_ms``.

``records_consumed`` is what the commits in the window moved on since the commit before each. A step back counts 0, and so does a
jump forward that is a row of ``resets``: neither is reading. A first commit, and the first after the offset was removed, moves on
from nowhere: where a window has only such ones, what was read is null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Int64s
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.registry import PartitionInputs, Table
from kgctl.pipeline.tables.resets import jumps
from kgctl.pipeline.tables.series import begins, series

SCHEMA = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("window_start_ms", pa.int64(), nullable=False),
        pa.field("window_ms", pa.int64(), nullable=False),
        pa.field("commits", pa.int64(), nullable=False),
        ("records_consumed", pa.int64()),
        ("records_per_s", pa.float64()),
    ]
)


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, window_start_ms; windows without a commit have no row."""
    commits = series(inputs)
    rows = np.flatnonzero(commits.is_commit)
    window = commits.clock_ms[rows] // inputs.window_ms
    first = np.flatnonzero(begins(commits.key[rows], window))
    previous = commits.previous[rows]
    known = previous >= 0
    steps = np.where(known, np.maximum(commits.committed[rows] - commits.committed[previous], 0), 0)
    steps[np.searchsorted(rows, jumps(inputs).row)] = 0
    consumed, is_known = _sums(steps, first), _sums(known.astype(np.int64), first) > 0
    columns = {
        **commits.names(rows[first]),
        "window_start_ms": pa.array(window[first] * inputs.window_ms),
        "window_ms": pa.array(np.full(len(first), inputs.window_ms)),
        "commits": pa.array(np.diff(np.append(first, len(rows)))),
        "records_consumed": pa.array(consumed, mask=~is_known),
        "records_per_s": pa.array(consumed * 1000 / inputs.window_ms, mask=~is_known),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _sums(values: Int64s, first: Int64s) -> Int64s:
    found: Int64s = np.add.reduceat(values, first) if len(first) else values[:0]
    return found


COMMIT_RATE = Table("commit_rate", SCHEMA, build)
