"""A warehouse to build, and an engine that notes how much memory its workers take."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.pipeline.engines import Engine, ItemDone
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.pipeline.generated_log import ENDS_PER_MS, START_MS, Size, generated_log
from tests.support.pipeline.warehouses import add

SAMPLE_EVERY_MS = 15_000


def collected(folder: Path, partitions: int, records: int) -> Warehouse:
    """So many records over so many partitions, one file each, and samples of all topics' ends."""
    warehouse = Warehouse.create(folder)
    for partition in range(partitions):
        add(warehouse, "c1", generated_log(partition, Size(records // partitions)), "generated")
    warehouse.add_samples("c1", samples(Size(records // partitions)))
    return warehouse


PIECE, INTERVAL_MS, PAUSE_MS = 1_000_000, 12, 60_000
"""A history that grows in one partition: so many records at a time, at the same rate however long it is, a pause behind each."""


def grow(warehouse: Warehouse, number: int, records: int, since: int = 0) -> None:
    """Collect piece ``number`` of such a history from record ``since`` on, up to so many, and samples of a minute's distance."""
    began_ms = number * (PIECE * INTERVAL_MS + PAUSE_MS)
    log = generated_log(0, Size(records, interval_ms=INTERVAL_MS, later_ms=began_ms, keeps_up=True), seed=number).slice(since)
    offsets = pa.array(np.arange(since, records) + number * PIECE)
    add(warehouse, "c1", log.set_column(log.schema.get_field_index("offset"), log.schema.field("offset"), offsets), "generated")
    if not since:
        end_ms = START_MS + began_ms + records * INTERVAL_MS
        warehouse.add_samples("c1", samples_at(np.arange(START_MS + began_ms, end_ms, PAUSE_MS), Size.partitions))


def samples(size: Size) -> pa.Table:
    """Every topic's ends, which grow evenly."""
    times = np.arange(START_MS, START_MS + size.records * size.interval_ms + SAMPLE_EVERY_MS, SAMPLE_EVERY_MS)
    return samples_at(times, size.partitions)


def samples_at(times: np.ndarray[tuple[int], np.dtype[np.int64]], partitions: int) -> pa.Table:
    """Every topic's ends at these times."""
    logs = [(f"topic-{topic}", partition) for topic in range(50) for partition in range(partitions)]
    count = len(times)
    return pa.table(
        {
            "topic": [topic for topic, _ in logs for _ in range(count)],
            "partition": pa.array([partition for _, partition in logs for _ in range(count)], pa.int32()),
            "timestamp_ms": np.tile(times, len(logs)),
            "log_start_offset": np.zeros(count * len(logs), np.int64),
            "log_end_offset": np.tile((times - START_MS) * ENDS_PER_MS, len(logs)),
        }
    )


class Noting(Engine):
    """Another engine's work; ``memory_kb`` is the most that one of its processes ever had."""

    def __init__(self, engine: Engine) -> None:
        self.name, self.slots = engine.name, engine.slots
        self._engine = engine
        self.memory_kb = 0

    def stream(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Generator[ItemDone[Any], None, None]:
        """The other engine's."""
        for done in self._engine.stream(partial(_noted, function), items):
            value, memory_kb = done.get()
            self.memory_kb = max(self.memory_kb, memory_kb)
            yield replace(done, value=value)


def _noted(function: Callable[[Any], Any], item: Any) -> tuple[Any, int]:
    return function(item), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
