"""The samples of the topics' logs, cleaned: one a moment, no row that says nothing, no answer of a replica that was behind.

Of several samples of one moment the highest offsets count. An end below the one before is an answer of a replica that was behind
(a follower that had just become leader) if the next sample is back where it was, and is dropped. If the next one is not, the log
itself is another (cut off by an unclean election, or the topic was created anew), and the samples stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import int64s, only_used, order_by, ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.registry import ClusterInputs, Table
from kgctl.pipeline.tables.series import begins

if TYPE_CHECKING:
    from kgctl.pipeline.decode.arrow import Bools, Int64s

SCHEMA = pa.schema(
    [
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
    ]
)
_UNKNOWN = -1


def build(inputs: ClusterInputs) -> pa.Table:
    """Return the table's rows, sorted by their key and time."""
    topic, topics = ranked(inputs.log_offsets.column("topic"))
    partition, time_ms, start, end = (int64s(inputs.log_offsets, name, _UNKNOWN) for name in SCHEMA.names[1:])
    order = order_by([topic, partition, time_ms])
    order = order[(start[order] >= 0) | (end[order] >= 0)]
    topic, partition, time_ms, start, end = (column[order] for column in (topic, partition, time_ms, start, end))
    new_log = begins(topic, partition)
    moments = np.flatnonzero(new_log | begins(time_ms))
    if len(moments):
        start, end = np.maximum.reduceat(start, moments), np.maximum.reduceat(end, moments)
    topic, partition, time_ms, new_log = topic[moments], partition[moments], time_ms[moments], new_log[moments]
    fine = ~_behind(new_log, end)
    return pa.Table.from_arrays(
        [
            text_column(*only_used(topic[fine], topics)),
            pa.array(partition[fine], pa.int32()),
            pa.array(time_ms[fine]),
            pa.array(start[fine], mask=start[fine] < 0),
            pa.array(end[fine], mask=end[fine] < 0),
        ],
        schema=SCHEMA,
    )


def _behind(new_log: Bools, end: Int64s) -> Bools:
    """Rows with an end below the one before, to which the next one is back."""
    behind = np.zeros(len(end), np.bool_)
    if len(end) > 2:
        before, here, after = end[:-2], end[1:-1], end[2:]
        behind[1:-1] = ~new_log[1:-1] & ~new_log[2:] & (here >= 0) & (here < before) & (after >= before)
    return behind


LOG_END_OFFSETS = Table("log_end_offsets", SCHEMA, build)
