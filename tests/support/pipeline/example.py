"""A morning of two groups, as built tables: what the tests of the history commands and the manual's examples are about.

On 2026-03-02, in UTC: ``payments`` reads ``orders`` from 08:00 on, with a second member from 08:20 to 08:35. At 08:40 somebody
resets partition 0 to the start; at 09:00 the collection ends. ``audit`` committed once and was deleted. Generations and members
are told here; what can be computed of them, of commits and of samples of the log is computed by the tables themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from kgctl.pipeline.decode.schemas import GROUP_RECORDS
from kgctl.pipeline.tables.registry import PartitionInputs
from tests.support.pipeline.gold import Row, commit, run, schema_of, write_gold

CLUSTER = "staging"
MINUTE_MS = 60_000
MORNING_MS = 1_772_438_400_000  # 2026-03-02T08:00:00Z
RESET_AT = 40
END_AT = 60
COMPUTED = ("lag", "commit_rate", "resets", "status_changes", "group_health")


def minute(number: float) -> int:
    """The time so many minutes after eight."""
    return MORNING_MS + int(number * MINUTE_MS)


def example_history(folder: Path) -> None:
    """Write the warehouse."""
    write_gold(folder, example_tables(), cluster=CLUSTER, sampled_ms=[row["timestamp_ms"] for row in _samples()])


def example_tables() -> Mapping[str, pa.Table]:
    """The tables, by name."""
    told = {
        "offset_commits": _commits(),
        "generations": _generations(),
        "coverage": [run(0, 600, minute(0), minute(END_AT))],
    }
    tables = {name: pa.Table.from_pylist([dict(row) for row in rows], schema=schema_of(name)) for name, rows in told.items()}
    inputs = PartitionInputs(
        offset_commits=tables["offset_commits"],
        group_records=GROUP_RECORDS.empty_table(),
        log_offsets=pa.Table.from_pylist([dict(row) for row in _samples()], schema=schema_of("log_end_offsets")),
        coverage=tables["coverage"],
    )
    members = pa.Table.from_pylist([dict(row) for row in _members()], schema=schema_of("members"))
    for name, given in (("group_generations", tables["generations"]), ("members", members)):
        inputs.once(f"table {name}", _constant(given))
    return {**tables, **{name: inputs.table(name) for name in COMPUTED}}


def _constant(table: pa.Table) -> Callable[[PartitionInputs], pa.Table]:
    return lambda _: table


def _commits() -> list[Row]:
    rows = [commit("audit", "orders", 0, 5, minute(1), 1), commit("audit", "orders", 0, None, minute(30), 400)]
    for partition in range(3):
        for number in range(0, END_AT, 5):
            read = number if partition or number < RESET_AT else number - RESET_AT
            rows.append(
                commit("payments", "orders", partition, 2 * read + partition, minute(number), 10 * number + 2 + partition)
            )
    return rows


def _samples() -> list[Row]:
    return [
        {
            "topic": "orders",
            "partition": partition,
            "timestamp_ms": minute(number),
            "log_start_offset": 0,
            "log_end_offset": 2 * number + partition + 4,
        }
        for partition in range(3)
        for number in range(0, END_AT + 1, 5)
    ]


def _generations() -> list[Row]:
    return [
        _generation(1, 0, 3_004, ["app-1"], [], "member_joined"),
        _generation(2, 20, 2_150, ["app-2"], [], "member_joined"),
        _generation(3, 35, 41, [], ["app-2"], "member_left"),
    ]


def _generation(number: int, at: int, took_ms: int, joined: list[str], left: list[str], cause: str) -> Row:
    return {
        "group": "payments",
        "type": "classic",
        "protocol_type": "consumer",
        "generation_id": number,
        "time_ms": minute(at) + took_ms,
        "started_ms": minute(at),
        "stable_ms": minute(at) + took_ms,
        "duration_ms": took_ms,
        "started_by": "group_created" if number == 1 else "join_phase_ended",
        "assignor": "range",
        "leader": "app-1",
        "members": 2 if number == 2 else 1,
        "members_joined": joined,
        "members_left": left,
        "cause": cause,
        "log_offset": 10 * at,
    }


def _members() -> Sequence[Row]:
    return [_member("app-1", 0, None, 1, 3), _member("app-2", 20, 35, 2, 2)]


def _member(member_id: str, begin: int, end: int | None, first: int, last: int) -> Row:
    return {
        "group": "payments",
        "member_id": member_id,
        "client_id": "app",
        "client_host": "/10.0.0.1",
        "from_ms": minute(begin),
        "to_ms": None if end is None else minute(end),
        "first_generation": first,
        "last_generation": last,
    }


def past_end(at_ms: int) -> dict[str, list[Row]]:
    """Of two partitions one was committed far behind the end of its log."""
    rows: dict[str, list[Row]] = {"offset_commits": [], "lag": [], "coverage": [run(0, 40, minute(0), minute(60))]}
    for group, number, committed, end in (("g", 0, 100_000, 4_190), ("g", 1, 0, 7_713), ("other", 0, 5, 10)):
        lag = end - committed if committed <= end else None
        place = {"group": group, "topic": "t", "partition": number, "time_ms": at_ms, "committed_offset": committed}
        rows["lag"].append({**place, "log_end_offset": end, "lag": lag, "lag_ms": lag and 5, "kind": "sample"})
        rows["offset_commits"].append(commit(group, "t", number, committed, at_ms, len(rows["lag"])))
    return rows
