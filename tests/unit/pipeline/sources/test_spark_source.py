"""What a task of the data source does with a cluster that gives nothing: without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.errors import KgctlError, TimedOutError
from kgctl.pipeline.sources import live
from kgctl.pipeline.sources.live import LivePart
from kgctl.pipeline.store.tables import RAW, rows_of
from tests.support.machine import is_there
from tests.support.pipeline.segments import example_segments

if TYPE_CHECKING or is_there("pyspark"):
    from kgctl.pipeline.sources.spark_source import ConsumerOffsetsSource, OffsetRange, PieceInput, RangesInput

pytestmark = pytest.mark.needs("pyspark")
ANY_SCHEMA: Any = None


class Log:
    """Records at offsets 0 to 3; then, so many times, ``silent`` for a partition of which nothing is heard, else nothing new."""

    def __init__(self, *, silent: int) -> None:
        self.silent = silent
        self.asked = 0

    def fetch(self, positions: Mapping[int, int], max_wait_ms: int) -> tuple[Mapping[int, LivePart], Mapping[int, KgctlError]]:
        self.asked += 1
        ((number, position),) = positions.items()
        if position == 2 and self.silent:
            self.silent -= 1
            return {}, {}
        found = list(range(position, min(position + 2, 4)))
        columns = {"partition": [number] * len(found), "offset": found, "timestamp_ms": [7] * len(found)}
        return {number: LivePart(rows_of(columns, RAW), (), position + len(found))}, {}

    def close(self) -> None:
        pass


def read(monkeypatch: pytest.MonkeyPatch, log: Log, end: int) -> list[int]:
    monkeypatch.setattr(live, "open_reader", lambda *_: (log, None))
    stream = ConsumerOffsetsSource({"kafka.bootstrap.servers": "there:9092"}).streamReader(ANY_SCHEMA)
    batches: Iterator[Any] = stream.read(RangesInput([OffsetRange(0, 0, end)]))
    return [row["log_offset"] for batch in batches for row in batch.to_pylist()]


def test_a_broker_that_is_slow_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, Log(silent=20), 4) == [0, 1, 2, 3]


def test_what_does_not_come_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimedOutError, match="__consumer_offsets-0: nothing came from offset 2 on"):
        read(monkeypatch, Log(silent=1_000), 4)


def test_a_log_that_ends_in_what_no_client_is_given_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    log: Any = Log(silent=0)
    assert read(monkeypatch, log, 9) == [0, 1, 2, 3]
    assert log.asked < 10


def test_a_relative_path_is_the_drivers_on_executors_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example_segments(tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    inputs = ConsumerOffsetsSource({"segments": "logs"}).reader(ANY_SCHEMA).partitions()
    monkeypatch.chdir("/")
    sources = {each.piece.source for each in inputs if isinstance(each, PieceInput)}
    assert sources == {str(path) for path in (tmp_path / "logs").rglob("*.log")}
    assert len(sources) == len(inputs)
