"""Rows from before the last window in which anything was sampled stay as they are; what comes late makes a slice go back to the
state that it had before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.upkeep import MANY_FILES, compact
from tests.benchmarks.pipeline.build_work import samples_at
from tests.support.pipeline.generated_log import START_MS, Size, generated_log
from tests.support.pipeline.warehouses import add, built, collected, data_files, rows_of, tables_of

FIRST_MS, SECOND_MS = START_MS + 490_000, START_MS + 600_000
"""When the first two builds are; windows begin 440, 500 and 560 s behind `START_MS`."""
SAMPLES = samples_at(START_MS + np.arange(0, 660_000, 30_000), 2)
IN_TIME, LATE = 0, 45_000


def log_of(later_ms: int) -> pa.Table:
    """1,600 records of 640 s; those behind the second build claim to be older by so much."""
    log = generated_log(0, Size(1_600, groups=4, topics=2, partitions=2, interval_ms=400, keeps_up=True))
    times = log.column("timestamp_ms").to_numpy()
    return log.set_column(2, log.schema.field(2), pa.array(np.where(times >= SECOND_MS, times - later_ms, times)))


def of_log(samples: pa.Table) -> pa.Array:
    return pc.and_(pc.equal(samples.column("topic"), "topic-1"), pc.equal(samples.column("partition"), 0)).combine_chunks()


def without(samples: pa.Table, from_ms: int, to_ms: int) -> pa.Table:
    """The samples, less some of one log."""
    times = samples.column("timestamp_ms")
    gone = pc.and_(of_log(samples), pc.and_(pc.greater_equal(times, from_ms), pc.less(times, to_ms)))
    return samples.filter(pc.invert(gone))


def behind(samples: pa.Table, time_ms: int) -> pa.Table:
    """The samples; in one of one log a replica was behind."""
    is_it = pc.and_(of_log(samples), pc.equal(samples.column("timestamp_ms"), time_ms))
    end = pc.if_else(is_it, pc.subtract(samples.column("log_end_offset"), 5_000_000), samples.column("log_end_offset"))
    return samples.set_column(4, samples.schema.field(4), end)


def two_builds(warehouse: Warehouse, log: pa.Table, samples: pa.Table) -> tuple[int, int]:
    """How many records of the log each of them has."""
    times = log_of(IN_TIME).column("timestamp_ms").to_numpy()
    sampled_ms, low, from_ms = samples.column("timestamp_ms").to_numpy(), 0, START_MS
    edges = [int(each) for each in np.searchsorted(times, [FIRST_MS, SECOND_MS])]
    for high, to_ms in zip(edges, (FIRST_MS, SECOND_MS), strict=True):
        add(warehouse, "c1", log.slice(low, high - low), "first")
        warehouse.add_samples("c1", samples.filter(pa.array((sampled_ms >= from_ms) & (sampled_ms < to_ms))))
        assert built(warehouse).late == {}
        low, from_ms = high, to_ms
    return edges[0], edges[1]


def test_what_lies_before_the_last_sampled_window_is_not_written_again(tmp_path: Path) -> None:
    log = log_of(IN_TIME)
    warehouse = Warehouse.create(tmp_path / "w")
    _, end = two_builds(warehouse, log, SAMPLES)
    before = {path: path.read_bytes() for path in data_files(warehouse, "lag")}
    add(warehouse, "c1", log.slice(end, 5))

    result = built(warehouse)

    written = next(each.written for each in result.tables if each.table == "lag")
    since = [row for row in rows_of(warehouse, "lag") if row["time_ms"] >= START_MS + 560_000]
    assert (result.late, written) == ({}, len(since))
    assert sum(path in before for path in data_files(warehouse, "lag")) == len(before) - 1, "the file since then went"


@pytest.mark.parametrize(
    ("later_ms", "samples"),
    [
        pytest.param(LATE, SAMPLES, id="records"),
        pytest.param(IN_TIME, without(SAMPLES, START_MS + 510_000, START_MS + 600_000), id="a log that was left out"),
        pytest.param(IN_TIME, behind(SAMPLES, START_MS + 570_000), id="a replica that was behind"),
    ],
)
def test_what_is_late_is_built_from_an_earlier_state(tmp_path: Path, later_ms: int, samples: pa.Table) -> None:
    log = log_of(later_ms)
    whole = collected(tmp_path / "whole", [log], samples)
    built(whole)
    warehouse = Warehouse.create(tmp_path / "w")
    first, end = two_builds(warehouse, log, samples)
    (unread,) = (path for path in data_files(warehouse, "records") if pq.read_metadata(path).num_rows == first)
    data = unread.read_bytes()
    unread.write_bytes(b"PAR1")
    add(warehouse, "c1", log.slice(end))
    warehouse.add_samples("c1", samples.filter(pc.greater_equal(samples.column("timestamp_ms"), SECOND_MS)))

    result = built(warehouse)

    unread.write_bytes(data)
    assert (result.failed, result.late) == ([], {})
    expected, found = tables_of(whole), tables_of(warehouse)
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_a_state_whose_files_are_put_together_with_others_is_not_gone_back_to(tmp_path: Path) -> None:
    log = log_of(LATE)
    whole = collected(tmp_path / "whole", [log], SAMPLES)
    built(whole)
    warehouse = Warehouse.create(tmp_path / "w")
    for low in range(0, 5 * MANY_FILES, 5):
        add(warehouse, "c1", log.slice(low, 5))
        built(warehouse)
    _, end = two_builds(warehouse, log, SAMPLES)
    assert compact(warehouse) > 0
    add(warehouse, "c1", log.slice(end))
    warehouse.add_samples("c1", SAMPLES.filter(pc.greater_equal(SAMPLES.column("timestamp_ms"), SECOND_MS)))

    result = built(warehouse)

    why = "records of __consumer_offsets-0 are older than when it was last looked at"
    assert [each.split(":")[0] for each in result.late["c1"]] == [why]
    assert tables_of(warehouse) == tables_of(whole)
