"""What was collected, as tables: the offset commits as the decoder has made them, and which offsets of the log are there."""

from __future__ import annotations

from kgctl.pipeline.decode.schemas import COVERAGE as COVERAGE_COLUMNS
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS as COMMIT_COLUMNS
from kgctl.pipeline.decode.schemas import merge_runs
from kgctl.pipeline.tables.registry import Table

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
