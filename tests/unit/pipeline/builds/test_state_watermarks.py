"""From when on rows may still change: partitions that are away, or whose clocks are behind, are waited for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kgctl.pipeline.builds.state import Standing
from kgctl.pipeline.decode.schemas import COVERAGE
from kgctl.pipeline.sources.live import OFFSETS_TOPIC
from kgctl.pipeline.store.files import DataFile
from kgctl.pipeline.store.tables import LOG_OFFSETS
from kgctl.pipeline.store.warehouse import Known, Warehouse, commit_records, stage_records
from kgctl.pipeline.tables.registry import BEGIN_MS
from kgctl.pipeline.tables.rounds import SKEW_MS, EndSeen
from tests.benchmarks.pipeline.build_work import samples_at
from tests.support.pipeline.generated_log import START_MS, Size, generated_log
from tests.support.pipeline.warehouses import built, tables_of

MINUTE_MS, MINUTES = 60_000, 10
PARTITIONS, LAST = 4, 3
AWAY = range(4, 7)
"""The minutes in which the last partition has no leader."""


class Cluster:
    """What a collector finds each minute. ``is_live``: it looks at the ends of the log itself, too; by so much is the clock of
    the second partition's leader behind."""

    def __init__(self, *, is_live: bool, behind_ms: int = 0) -> None:
        self.is_live = is_live
        size = Size(700, groups=2, topics=2, partitions=2, interval_ms=1_000, keeps_up=True)
        self.logs = [generated_log(partition, size) for partition in range(PARTITIONS)]
        self.appended_ms = [log.column("timestamp_ms").to_numpy() for log in self.logs]
        place = self.logs[1].schema.get_field_index("timestamp_ms")
        skewed = pc.subtract(self.logs[1].column("timestamp_ms"), behind_ms)
        self.logs[1] = self.logs[1].set_column(place, self.logs[1].schema.field(place), skewed)

    def collect(self, warehouse: Warehouse, minutes: range, *, is_away: bool = False) -> None:
        """What came in these minutes; of the last partition all since the collector last had it, or nothing."""
        for partition in range(PARTITIONS - is_away):
            first = self._end(partition, minutes.start)
            known = Known.of(warehouse, "c1")
            first = min(first, known.highs.get(partition, 0))
            rows = self.logs[partition].slice(first, self._end(partition, minutes.stop) - first)
            warehouse.tell("c1", 0)
            positions = {partition: self._end(partition, minutes.stop)} if self.is_live else {}
            staged = stage_records(known, rows, "by hand")
            commit_records(warehouse, known, [staged] if staged else [], positions=positions)
        warehouse.add_samples("c1", pa.concat_tables(list(self._samples(minutes, is_away=is_away))))

    def _end(self, partition: int, minute: int) -> int:
        return int(np.searchsorted(self.appended_ms[partition], START_MS + minute * MINUTE_MS))

    def _samples(self, minutes: range, *, is_away: bool) -> Iterator[pa.Table]:
        for minute in minutes:
            at_ms = START_MS + (minute + 1) * MINUTE_MS - 1
            yield samples_at(np.array([at_ms]), 2).select(LOG_OFFSETS.names).cast(LOG_OFFSETS)
            ends = [None if is_away and number == LAST else self._end(number, minute + 1) for number in range(PARTITIONS)]
            rows = [(OFFSETS_TOPIC, number, at_ms, 0, end) for number, end in enumerate(ends) if self.is_live]
            yield pa.Table.from_pylist([dict(zip(LOG_OFFSETS.names, row, strict=True)) for row in rows], schema=LOG_OFFSETS)


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("behind_ms", [0, 200_000])
def test_a_partition_that_was_away_makes_nothing_anew(tmp_path: Path, is_live: bool, behind_ms: int) -> None:
    cluster = Cluster(is_live=is_live, behind_ms=behind_ms)
    whole, warehouse = Warehouse.create(tmp_path / "whole"), Warehouse.create(tmp_path / "w")
    for minute in range(MINUTES):
        cluster.collect(warehouse, range(minute, minute + 1), is_away=minute in AWAY)
        result = built(warehouse)
        assert (result.failed, result.late) == ([], {}), f"minute {minute}"
    cluster.collect(whole, range(MINUTES))
    built(whole)
    expected, found = tables_of(whole), tables_of(warehouse)
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert len(expected["lag"]) > 1_000


def test_an_end_that_is_unknown_or_past_what_was_collected_tells_nothing(tmp_path: Path) -> None:
    warehouse = Warehouse.create(tmp_path / "w")
    rows = [(0, 1, 10), (0, 2, 12), (0, 3, 12), (0, 4, None), (1, 1, 5), (1, 2, 6), (2, 1, 0), (3, 1, 7)]
    columns = ("partition", "timestamp_ms", "log_end_offset")
    table = [{"topic": OFFSETS_TOPIC, "log_start_offset": 0, **dict(zip(columns, row, strict=True))} for row in rows]
    warehouse.tell("c1", 0)
    warehouse.add_samples("c1", pa.Table.from_pylist(table, schema=LOG_OFFSETS))
    standing = Standing().sampled(warehouse, warehouse.table("samples").files(), {0: 12, 1: 5, 3: 6}.get)

    assert standing.watermarks() == {0: EndSeen(2, 3, 12), 1: EndSeen(1, 1, 5), 2: EndSeen(1, 1, 0)}
    run = {"first_offset": 0, "last_offset": 5, "first_ms": 0}
    runs = [{**run, "log_partition": number, "last_ms": SKEW_MS + 10 * number} for number in range(5)]
    state = DataFile(f"data/b0-4-{0:032x}.parquet", 1, 1, "1970-01-01")
    late = replace(standing, runs=pa.Table.from_pylist(runs, schema=COVERAGE), states=[state])
    assert late.watermarks() == standing.watermarks() | {3: EndSeen(BEGIN_MS, 20), 4: EndSeen(BEGIN_MS, 20)}, "as the middle one"


def test_records_are_known_by_the_clock_of_who_wrote_them() -> None:
    seen = EndSeen(1_000_000, 1_600_000, end=50)
    assert seen.until_ms(49, 1_000_000) == 1_600_000
    assert seen.until_ms(49, 900_000) == 1_500_000, "the clock was behind by as much at most"
    assert seen.until_ms(49, 0) == 1_600_000 - SKEW_MS
    assert seen.until_ms(50, 1_000_000) == BEGIN_MS, "another record came since"
