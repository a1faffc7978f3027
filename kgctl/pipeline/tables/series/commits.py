"""The table of offset commits as numpy columns, cut into series: one a group, topic and partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, only_used, ranked, text_column
from kgctl.pipeline.tables.series.scan import begins, running_max

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs


@dataclass(frozen=True)
class Series:
    """One entry a row of ``offset_commits``, in its order.

    ``key`` numbers the series, ascending. ``clock_ms`` is the time, or that of a row before it in the series if that is later,
    so that it never goes back. ``previous`` is the row of the commit before, -1 where there is none or it was removed since.
    """

    key: Int64s
    groups: pa.Array
    topics: pa.Array
    group: Int64s
    topic: Int64s
    partition: Int64s
    is_commit: Bools
    committed: Int64s
    clock_ms: Int64s
    log_offset: Int64s
    previous: Int64s

    def names(self, rows: Int64s) -> dict[str, pa.Array]:
        """The columns ``group``, ``topic``, ``partition`` of these rows."""
        return {
            "group": text_column(*only_used(self.group[rows], self.groups)),
            "topic": text_column(*only_used(self.topic[rows], self.topics)),
            "partition": pa.array(self.partition[rows].astype(np.int32)),
        }


def series(inputs: PartitionInputs) -> Series:
    """Cut up once for all tables."""
    return inputs.once("series of commits", lambda found: _series(found.offset_commits))


def _series(table: pa.Table) -> Series:
    group, groups = ranked(table.column("group"))
    topic, topics = ranked(table.column("topic"))
    partition, committed, time_ms, log_offset = (
        int64s(table, name) for name in ("partition", "committed_offset", "time_ms", "log_offset")
    )
    first = begins(group, topic, partition)
    key = np.cumsum(first) - 1
    is_commit = np.ones(len(key), np.bool_)
    if table.column("committed_offset").null_count:
        is_commit = table.column("committed_offset").is_valid().to_numpy()
    previous = np.arange(len(key)) - 1
    after_commit = np.append(False, is_commit[:-1])[: len(key)]
    previous[first | ~is_commit | ~after_commit] = -1
    clock_ms = running_max(time_ms, key)
    return Series(key, groups, topics, group, topic, partition, is_commit, committed, clock_ms, log_offset, previous)
