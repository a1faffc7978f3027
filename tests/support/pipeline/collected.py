"""What a collection brings home, made by the simulator: records of `__consumer_offsets`, and samples of the topic's ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kgctl.pipeline.store.tables import LOG_OFFSETS
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.model import Scenario
from tests.support.pipeline.histories import Told, told_by_simulation
from tests.support.pipeline.warehouses import add
from tests.support.simulated import RANGE, event, scenario

RESTARTS: Sequence[Event] = (event("restart", "app/0"),)


def small_scenario(config: dict[str, str] = RANGE) -> Scenario:
    """Two minutes of three members, one of which restarts, on a topic of six partitions that grows by ten records a second."""
    return scenario(*RESTARTS, count=3, partitions=6, rate=10, config=config, duration_s=100)


def collected_history(folder: Path, cluster: str = "c1") -> Told:
    """A warehouse with a collection in it and nothing built; the end of the log is sampled once, at the end."""
    told = told_by_simulation(small_scenario(), 1)
    warehouse = Warehouse.create(folder)
    add(warehouse, cluster, told.raw, "the simulator")
    warehouse.add_samples(cluster, samples_of(told))
    return told


def samples_of(told: Told) -> pa.Table:
    """The ends of the logs when the run was over."""
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "timestamp_ms": told.state.now_ms,
            "log_start_offset": 0,
            "log_end_offset": end,
        }
        for partition, end in sorted(told.state.end_offsets.items())
    ]
    return pa.Table.from_pylist(rows, schema=LOG_OFFSETS)
