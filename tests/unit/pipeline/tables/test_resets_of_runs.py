"""Runs of the simulator: deploys, crashes and scaling are no resets; what somebody sets while nobody is there is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kgctl.pipeline.store.tables import RAW
from kgctl.serde.coordinator_records import encode_record
from tests.support.pipeline.histories import inputs_of, told_by_simulation
from tests.support.pipeline.history_of import columns, commit, rows_of
from tests.support.simulated import CONSUMER, COOPERATIVE, RANGE, event, scenario

GOES_ON = (event("rolling_restart", "app", settle=2_000_000), event("crash", "app/1", 100), event("scale", "app", 120, to=5))


@pytest.mark.parametrize("config", [RANGE, COOPERATIVE, CONSUMER], ids=["range", "cooperative", "consumer"])
def test_only_what_was_set_while_nobody_was_there(config: dict[str, Any]) -> None:
    told = told_by_simulation(scenario(*GOES_ON, event("stop", "app", 200), config=config, rate=40, duration_s=300), 1)
    assert told.moments[-1].state == "Empty"
    assert rows_of("resets", inputs_of(told.raw)) == []

    places = sorted({(row["group"], row["topic"], row["partition"]) for row in inputs_of(told.raw).offset_commits.to_pylist()})
    before = {place: offset for place in places if (offset := _committed(told.raw, place)) > 3}
    set_to = {place: offset + (7 if number % 2 else -3) for number, (place, offset) in enumerate(before.items())}
    found = rows_of("resets", inputs_of(_with_commits(told.raw, set_to)))
    assert columns(found, "offset_before", "offset_after", "evidence") == [
        (before[place], set_to[place], "group_empty") for place in before
    ]
    assert len(found) > 1


def _committed(raw: pa.Table, place: tuple[str, str, int]) -> int:
    rows = inputs_of(raw).offset_commits.to_pylist()
    offset: int = [row["committed_offset"] for row in rows if (row["group"], row["topic"], row["partition"]) == place][-1]
    return offset


def _with_commits(raw: pa.Table, offsets: dict[tuple[str, str, int], int]) -> pa.Table:
    """As kafka-consumer-groups.sh --reset-offsets leaves it: one commit a partition, later than all else."""
    next_offset, time_ms = raw.column("offset")[-1].as_py() + 1, raw.column("timestamp_ms")[-1].as_py() + 5_000
    rows = []
    for number, ((group, topic, partition), offset) in enumerate(offsets.items()):
        key, value = encode_record(commit(offset, topic, partition, group))
        rows.append({"partition": 0, "offset": next_offset + number, "timestamp_ms": time_ms, "key": key, "value": value})
    return pa.concat_tables([raw, pa.Table.from_pylist(rows, schema=RAW)])
