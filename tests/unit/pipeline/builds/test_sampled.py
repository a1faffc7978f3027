"""The samples that a slice goes on with."""

from __future__ import annotations

import pyarrow as pa

from kgctl.pipeline.builds.sampled import each_sample_once
from kgctl.pipeline.tables.collected import LOG_END_COLUMNS


def test_samples_that_are_there_twice_are_kept_once_and_different_ones_of_a_moment_both() -> None:
    rows = [("u", 0, 10, 0, 5), ("t", 1, 10, None, 5), ("t", 0, 20, 0, 7), ("t", 0, 10, 0, None), ("t", 0, 20, 0, 8)]
    told = [[dict(zip(LOG_END_COLUMNS.names, row, strict=True)) for row in part] for part in (rows, rows[:3])]
    parts = [pa.Table.from_pylist(part).cast(LOG_END_COLUMNS) for part in told]
    found = each_sample_once(pa.concat_tables(parts).unify_dictionaries())

    assert found.schema == LOG_END_COLUMNS
    ordered = [("t", 0, 10, 0, None), ("t", 0, 20, 0, 7), ("t", 0, 20, 0, 8), ("t", 1, 10, None, 5), ("u", 0, 10, 0, 5)]
    assert [tuple(row.values()) for row in found.to_pylist()] == ordered
