"""Windows of groups, held against a look at every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
from kgctl.pipeline.tables import windows
from kgctl.pipeline.tables.lag import STATUSES as BURROW
from kgctl.pipeline.tables.lag import stalls
from kgctl.pipeline.tables.registry import BEGIN_MS, PartitionInputs
from kgctl.pipeline.tables.series import NONE
from kgctl.pipeline.tables.windows import Windows
from tests.support.pipeline.histories import inputs_of, told_by_simulation
from tests.support.pipeline.history_of import commits, ends, table
from tests.support.simulated import CONSUMER, RANGE, event, scenario

Row = dict[str, Any]
WINDOW_MS = 10_000


def simulated(config: Mapping[str, str], unsampled: int | None = 3) -> PartitionInputs:
    told = told_by_simulation(
        scenario(event("crash", "app/1", 60), event("stop", "app", 150), config=config, count=3, rate=40, duration_s=250), 1
    )
    begin = told.raw.column("timestamp_ms")[0].as_py()
    rows = [
        {"topic": at.topic, "partition": at.partition, "timestamp_ms": ms, "log_end_offset": end * (ms - begin) // 250_000}
        for at, end in told.state.end_offsets.items()
        for ms in range(begin, told.state.now_ms, 7_000)
        if at.partition != unsampled
    ]
    inputs = inputs_of(told.raw, pa.Table.from_pylist(rows, schema=LOG_OFFSETS))
    return PartitionInputs(inputs.offset_commits, inputs.group_records, inputs.log_offsets, inputs.coverage, window_ms=WINDOW_MS)


@pytest.mark.parametrize("config", [RANGE, CONSUMER], ids=["classic", "consumer"])
def test_a_window_says_what_the_other_tables_say(config: Mapping[str, str]) -> None:
    inputs = simulated(config)
    rows = windows.group_health_rows(inputs).to_pylist()
    tables = {name: inputs.table(name).to_pylist() for name in ("members", "group_generations", "resets", "lag")}
    found = stalls(inputs)
    ends_ms = [None if to_ms == NONE else to_ms for to_ms in found.to_ms.tolist()]
    names = [BURROW[status] for status in found.status]
    tables["stalls"] = [
        {"from_ms": from_ms, "to_ms": to_ms, "status": status}
        for from_ms, to_ms, status in zip(found.from_ms.tolist(), ends_ms, names, strict=True)
    ]

    assert len(rows) > 15
    assert {row["status"] for row in rows} == {None, "STOP"}, "one partition is never sampled"
    for row in rows:
        start, end = row["window_start_ms"], row["window_start_ms"] + WINDOW_MS
        assert row["members"] == _standing(tables["members"], end)
        stalled = _standing([one for one in tables["stalls"] if one["status"] in ("STOP", "STALL")], end)
        assert row["stalled_partitions"] == (stalled or None)  # one partition is never sampled
        assert row["resets"] == sum(start <= one["time_ms"] < end for one in tables["resets"])
        stable = [one for one in tables["group_generations"] if start <= (one["stable_ms"] or one["started_ms"]) < end]
        assert row["rebalances"] == len(stable)
        took = [one["duration_ms"] for one in stable if one["duration_ms"] is not None]
        assert row["rebalance_ms"] == (sum(took) if took or not stable else None)
        assert row["commits"] == sum(start <= one["time_ms"] < end and one["kind"] == "commit" for one in tables["lag"])
        touched = [one["status"] for one in tables["stalls"] if one["from_ms"] < end and (one["to_ms"] or end) > start]
        if touched:
            worst = max(touched, key=windows.STATUSES.index)
            assert row["status"] == (None if worst == "OK" else worst)
        assert row["total_lag"] is None or row["max_lag"] <= row["total_lag"]


def _standing(rows: list[Row], end_ms: int) -> int:
    return sum(row["from_ms"] < end_ms and (row["to_ms"] is None or row["to_ms"] >= end_ms) for row in rows)


@pytest.mark.parametrize("unsampled", [3, None])
def test_lag_is_that_of_the_last_look_at_each_partition(unsampled: int | None) -> None:
    inputs = simulated(RANGE, unsampled)
    by_place: dict[int, Row] = {}
    lags = sorted(inputs.table("lag").to_pylist(), key=lambda row: row["time_ms"])
    rows = windows.group_health_rows(inputs).to_pylist()
    assert any(row["total_lag"] for row in rows) == (unsampled is None)
    for row in rows:
        end = row["window_start_ms"] + WINDOW_MS
        by_place |= {one["partition"]: one for one in lags if one["time_ms"] < end}
        known = [one["lag"] for one in by_place.values() if one["lag"] is not None]
        times = [one["lag_ms"] for one in by_place.values() if one["lag_ms"] is not None]
        if by_place and len(known) < len(by_place):
            assert (row["total_lag"], row["max_lag"]) == (None, None)
        else:
            assert (row["total_lag"], row["max_lag"]) == (sum(known) if known else None, max(known, default=None))
        assert row["max_lag_ms"] == (max(times, default=None) if len(times) == len(by_place) else None)


def test_a_group_without_samples_has_no_status_and_no_lag() -> None:
    inputs = simulated(RANGE)
    blind = PartitionInputs(
        inputs.offset_commits, inputs.group_records, inputs.log_offsets.slice(0, 0), inputs.coverage, window_ms=WINDOW_MS
    )
    rows = windows.group_health_rows(blind).to_pylist()

    unknown = ("status", "total_lag", "max_lag", "max_lag_ms", "stalled_partitions", "past_end", "below_start")
    assert {tuple(row[name] for name in unknown) for row in rows} == {(None,) * len(unknown)}


def test_nothing_is_stalled_where_all_partitions_were_measured_alone() -> None:
    records = [*commits((1_000, 5)), *commits((1_000, 5), partition=1)]
    (both,) = table("group_health", records, [*ends((0, 9), (50_000, 9)), *ends((0, 9), (50_000, 9), partition=1)])
    (one,) = table("group_health", records, ends((0, 9), (50_000, 9)))
    counted = ("stalled_partitions", "past_end", "below_start")

    assert [(row["status"], *(row[name] for name in counted)) for row in (both, one)] == [
        ("OK", 0, 0, 0),
        (None, None, None, None),
    ]


def test_a_commit_past_the_end_takes_nothing_off_what_others_have_to_read() -> None:
    records = [*commits((1_000, 100)), *commits((1_000, 90), partition=1), *commits((1_000, 7), partition=2)]
    ends_of = [
        sample for number, end in enumerate((10, 95, 60)) for sample in ends((0, end), (50_000, end), partition=number, start=8)
    ]
    (row,) = table("group_health", records, ends_of)
    assert (row["total_lag"], row["max_lag"], row["max_lag_ms"]) == (5, 5, None)
    assert (row["status"], row["past_end"], row["below_start"]) == ("PAST_END", 1, 1)

    (alone,) = table("group_health", records[:1], ends_of)
    assert (alone["total_lag"], alone["status"], alone["past_end"]) == (None, "PAST_END", 1)


def test_nothing_at_all() -> None:
    assert windows.group_health_rows(inputs_of(RAW.empty_table())).num_rows == 0


stretches = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(-50, 50)), max_size=30)


@given(stretches, st.integers(1, 20))
def test_sums_and_maxima_over_stretches_of_rows(found: list[tuple[int, int, int]], size: int) -> None:
    windows = Windows(np.zeros(size, np.int64), np.arange(size), 1)
    first = np.array([min(low, size) for low, _, _ in found], np.int64)
    end = np.array([min(max(low, high), size) for low, high, _ in found], np.int64)
    values = np.array([value for *_, value in found], np.int64)
    held = [values[(first <= row) & (row < end)] for row in range(size)]

    assert windows.summed(first, end, values).tolist() == [int(each.sum()) for each in held]
    assert windows.highest(first, end, values).tolist() == [int(each.max(initial=NONE)) for each in held]


def test_what_ended_as_the_first_window_begins_is_not_in_it() -> None:
    """It is from before the horizon: the windows in which it held were made by earlier builds."""
    rows = Windows(np.zeros(2, np.int64), np.array([7, 8]), WINDOW_MS)
    began, ended = np.array([BEGIN_MS, BEGIN_MS, 70_000]), np.array([70_000, 70_001, 70_000])
    low, high = windows._Stretches(np.zeros(3, np.int64), began, ended).touched(rows)

    assert (high - low).tolist() == [0, 1, 1]
