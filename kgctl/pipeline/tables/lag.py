"""How far a group is behind, in records and in time: at each of its commits, and at the samples of the log in between.

``log_end_offset`` of a commit is interpolated between the samples around it, that of a sample is exact; outside of the samples
it is null, and so is ``lag``: unknown is never 0. ``lag`` is ``log_end_offset - committed_offset``, negative where somebody
committed past the end. ``lag_ms`` is how long ago the log's end left the committed offset behind, by kafka-lag-exporter's rule:
interpolated between samples; 0 if nothing is unread; from before the first sample by the average rate up to the sample behind
the moment; null with fewer than two samples.

Rows of kind ``sample`` are there once a window at most, and only where something changed or is unread. Times that go back in the
log of a group (clock skew) stand still instead.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.registry import PartitionInputs, Table
from kgctl.pipeline.tables.series import UNKNOWN, Points, Series, points, series

SCHEMA = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("committed_offset", pa.int64(), nullable=False),
        ("log_end_offset", pa.int64()),
        ("lag", pa.int64()),
        ("lag_ms", pa.int64()),
        pa.field("kind", TEXT, nullable=False),
    ]
)
_KINDS = pa.array(["commit", "sample"])


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, time_ms; commits of one time in the order in which they took effect, then the sample."""
    commits, found = series(inputs), points(inputs)
    at = np.flatnonzero(_told(commits, found))
    row, end, lag_ms = found.row[at], found.end[at], found.lag_ms[at]
    is_unknown, no_time = end == UNKNOWN, np.isnan(lag_ms)
    columns = {
        **commits.names(row),
        "time_ms": pa.array(found.time_ms[at]),
        "committed_offset": pa.array(commits.committed[row]),
        "log_end_offset": pa.array(end, mask=is_unknown),
        "lag": pa.array(end - commits.committed[row], mask=is_unknown),
        "lag_ms": pa.array(np.rint(np.where(no_time, 0, lag_ms)).astype(np.int64), mask=no_time),
        "kind": text_column(found.is_sample[at].astype(np.int64), _KINDS),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _told(commits: Series, found: Points) -> Bools:
    """Commits, and the samples that tell something new."""
    same: Bools = np.zeros(len(found.row), np.bool_)
    same[1:] = found.is_sample[1:] & (found.row[1:] == found.row[:-1]) & (found.end[1:] == found.end[:-1])
    at_once = np.append(False, found.time_ms[1:] == found.time_ms[:-1])[: len(same)]
    told: Bools = commits.is_commit[found.row] & ~(same & (at_once | (found.lag(commits) <= 0)))
    return told


LAG = Table("lag", SCHEMA, build)
