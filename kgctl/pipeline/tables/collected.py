"""What was collected, as tables: the offset commits as the decoder has made them, which offsets of the log are there, and the
samples of the topics' logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import int64s, only_used, order_by, ranked, text_column
from kgctl.pipeline.decode.schemas import COVERAGE as COVERAGE_COLUMNS
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS as COMMIT_COLUMNS
from kgctl.pipeline.decode.schemas import TEXT, merge_runs
from kgctl.pipeline.store.tables import columns_of
from kgctl.pipeline.tables.registry import ClusterInputs, Table
from kgctl.pipeline.tables.rounds import is_soon, rounds_of
from kgctl.pipeline.tables.series import begins

if TYPE_CHECKING:
    from kgctl.pipeline.decode.arrow import Bools, Int64s


OFFSET_COMMITS = Table("offset_commits", COMMIT_COLUMNS, lambda inputs: inputs.offset_commits)
"""Every offset commit that took effect, and every removal of one (null ``committed_offset``).

Of the rows of a group, topic and partition with ``time_ms`` up to T, the one with the highest ``effect_offset`` is what was
committed at T. Sorted by group, topic, partition, effect_offset.
"""
COVERAGE = Table("coverage", COVERAGE_COLUMNS, lambda inputs: merge_runs([inputs.coverage]))
"""Which offsets of the log were collected: the fewest runs without a hole, ends included, with the times of their first and last
record; sorted by log_partition, first_offset.

A moment between two records of one run is known exactly; in a hole, records may have been compacted away.
"""


LOG_END_COLUMNS = columns_of("samples", text=TEXT)
_UNKNOWN = -1


def log_end_rows(inputs: ClusterInputs) -> pa.Table:
    """Return the table's rows, sorted by their key and time."""
    topic, topics = ranked(inputs.log_offsets.column("topic"))
    partition, time_ms, start, end = (int64s(inputs.log_offsets, name, _UNKNOWN) for name in LOG_END_COLUMNS.names[1:])
    order = order_by([topic, partition, time_ms])
    order = order[(start[order] >= 0) | (end[order] >= 0)]
    topic, partition, time_ms, start, end = (column[order] for column in (topic, partition, time_ms, start, end))
    new_log = begins(topic, partition)
    moments = np.flatnonzero(new_log | begins(time_ms))
    if len(moments):
        start, end = np.maximum.reduceat(start, moments), np.maximum.reduceat(end, moments)
    topic, partition, time_ms, new_log = topic[moments], partition[moments], time_ms[moments], new_log[moments]
    rounds = rounds_of(time_ms) if inputs.rounds is None else inputs.rounds
    fine = ~_behind(new_log, end, time_ms, rounds)
    return pa.Table.from_arrays(
        [
            text_column(*only_used(topic[fine], topics)),
            pa.array(partition[fine], pa.int32()),
            pa.array(time_ms[fine]),
            pa.array(start[fine], mask=start[fine] < 0),
            pa.array(end[fine], mask=end[fine] < 0),
        ],
        schema=LOG_END_COLUMNS,
    )


def _behind(new_log: Bools, end: Int64s, time_ms: Int64s, rounds: Int64s) -> Bools:
    """Rows with an end below the one before, to which the next one is soon back."""
    behind = np.zeros(len(end), np.bool_)
    if len(end) > 2:
        before, here, after = end[:-2], end[1:-1], end[2:]
        behind[1:-1] = ~new_log[1:-1] & ~new_log[2:] & (here >= 0) & (here < before) & (after >= before)
        at = np.flatnonzero(behind)
        behind[at] = is_soon(rounds, time_ms[at], time_ms[at + 1])
    return behind


LOG_END_OFFSETS = Table("log_end_offsets", LOG_END_COLUMNS, log_end_rows)
"""The samples of the topics' logs, cleaned: one a moment, no row that says nothing, no answer of a replica that was behind.

Of several samples of one moment the highest offsets count. An end below the one before is an answer of a replica that was behind
(a follower that had just become leader) if the next sample is back where it was, and is dropped. If the next one is not, the log
itself is another (cut off by an unclean election, or the topic was created anew), and the samples stay.
"""
