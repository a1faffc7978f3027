"""Which log offsets were collected: runs without a hole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.cells import Bools, Int64s
from kgctl.pipeline.decode.schemas import COVERAGE


def runs_of(log_partition: int, offsets: Int64s, times_ms: Int64s) -> pa.Table:
    """The runs (``COVERAGE``) of records of one log partition, in any order; an offset may be there twice."""
    if len(offsets) and (np.diff(offsets) <= 0).any():
        order = np.lexsort((times_ms, offsets))
        offsets, times_ms = offsets[order], times_ms[order]
    begins = np.ones(len(offsets), np.bool_)
    begins[1:] = np.diff(offsets) > 1
    return _table(log_partition, begins, (offsets, times_ms), (offsets, times_ms))


def merge_runs(tables: Sequence[pa.Table]) -> pa.Table:
    """All runs of ``tables`` as the fewest runs, by log partition and offset, whatever the order and overlap of the input."""
    together = pa.concat_tables([COVERAGE.empty_table(), *tables])
    columns = [together.column(name).to_numpy() for name in COVERAGE.names]
    partitions = columns[0]
    merged = [_merge(int(one), *(column[partitions == one] for column in columns[1:])) for one in np.unique(partitions)]
    return pa.concat_tables([COVERAGE.empty_table(), *merged]).combine_chunks()


def _merge(log_partition: int, first: Int64s, last: Int64s, first_ms: Int64s, last_ms: Int64s) -> pa.Table:
    order = np.lexsort((first_ms, first))
    first, last, first_ms, last_ms = first[order], last[order], first_ms[order], last_ms[order]
    reach = np.maximum.accumulate(last)
    begins = np.ones(len(first), np.bool_)
    begins[1:] = first[1:] > reach[:-1] + 1
    by_end = np.lexsort((last_ms, last, np.cumsum(begins)))
    return _table(log_partition, begins, (first, first_ms), (last[by_end], last_ms[by_end]))


def _table(log_partition: int, begins: Bools, first: tuple[Int64s, Int64s], last: tuple[Int64s, Int64s]) -> pa.Table:
    """Rows ``begins`` open a run; the row before the next one closes it. ``first``, ``last``: offsets and times."""
    opening = np.flatnonzero(begins)
    closing = np.append(opening[1:], len(begins)) - 1 if len(begins) else opening
    partitions = np.full(len(opening), log_partition, np.int32)
    columns = [partitions, first[0][opening], last[0][closing], first[1][opening], last[1][closing]]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=COVERAGE)
