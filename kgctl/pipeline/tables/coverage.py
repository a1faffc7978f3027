"""Which offsets of the log were collected: runs without a hole, ends included, with the times of their first and last record.

A moment between two records of one run is known exactly; in a hole, records may have been compacted away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.pipeline.decode.schemas import COVERAGE, merge_runs

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "coverage"
VERSION = 1
SCHEMA = COVERAGE


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by log_partition, first_offset; the fewest runs that say it."""
    return merge_runs([inputs.coverage])
