"""Warehouses with built tables, written by hand: what the answers read, without collecting, decoding and building."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.model.values import partition_for
from kgctl.pipeline.builds.state import Standing
from kgctl.pipeline.store.files import write_files
from kgctl.pipeline.store.tables import BUILT, RAW, to_stored
from kgctl.pipeline.store.warehouse import TABLES_VERSION, Warehouse, version_number
from kgctl.pipeline.tables.membership import ASSIGNMENT_CHANGES, MEMBER_CHANGES
from kgctl.pipeline.tables.registry import table_named
from kgctl.pipeline.tables.rounds import rounds_of
from tests.support.pipeline.warehouses import add, rows_of

Row = Mapping[str, Any]
START_MS = 1_700_000_000_000
HOME = partition_for("payments", 50)
"""The partition of ``__consumer_offsets`` that the examples are in."""


def commit(group: str, topic: str, partition: int, offset: int | None, time_ms: int, log_offset: int, **other: Any) -> Row:
    """A row of ``offset_commits``; ``offset`` None is a tombstone."""
    row = {
        "group": group,
        "topic": topic,
        "partition": partition,
        "committed_offset": offset,
        "leader_epoch": -1,
        "metadata": None if offset is None else "",
        "commit_timestamp_ms": None if offset is None else time_ms,
        "time_ms": time_ms,
        "log_partition": HOME,
        "log_offset": log_offset,
        "effect_offset": log_offset,
        "transactional": False,
    }
    return {**row, **other}


def run(first_offset: int, last_offset: int, first_ms: int, last_ms: int) -> Row:
    """A row of ``coverage``."""
    return {
        "log_partition": HOME,
        "first_offset": first_offset,
        "last_offset": last_offset,
        "first_ms": first_ms,
        "last_ms": last_ms,
    }


def write_gold(
    folder: Path,
    tables: Mapping[str, pa.Table | Sequence[Row]],
    *,
    partition: int = HOME,
    cluster: str = "c1",
    files: int = 1,
    sampled_ms: Sequence[int] = (),
) -> Warehouse:
    """Add these rows to the built tables of a cluster; ``files``: over how many files; ``sampled_ms``: when log ends were asked.

    Columns are those of the functions that make the tables. Nullable ones may be left out.
    """
    warehouse = Warehouse.create(folder)
    if partition not in {row["partition"] for row in rows_of(warehouse, "records", cluster)}:
        collect(warehouse, [0], partition=partition, cluster=cluster)
    for name, rows in tables.items():
        _write(warehouse, cluster, name, _placed(name, rows, partition), files)
    state = warehouse.table("state")
    numbers = {f"records/{cluster}": warehouse.table("records").version, f"tables/{cluster}": TABLES_VERSION}
    number = state.number(f"build/{cluster}")
    versions = {name: warehouse.table(name).version for name in BUILT}
    numbers |= {version_number(name): version for name, version in versions.items() if version >= 0}
    rounds = Standing(rounds=rounds_of(np.array(sampled_ms, np.int64)))
    told = [rounds.write(warehouse, cluster)] if len(sampled_ms) else []
    state.commit(told, once=(f"build/{cluster}", 0 if number is None else number + 1), numbers=numbers)
    return warehouse


def collect(warehouse: Warehouse, offsets: Sequence[int], *, partition: int = HOME, cluster: str = "c1") -> None:
    """Keep raw records at these offsets; there is nothing in them."""
    rows = [{"partition": partition, "offset": offset, "timestamp_ms": START_MS + offset, "key": b""} for offset in offsets]
    add(warehouse, cluster, pa.Table.from_pylist(rows, schema=RAW))


def schema_of(table: str) -> pa.Schema:
    """The schema of what the functions make of a table."""
    return SCHEMAS[table] if table in SCHEMAS else table_named(MODULES.get(table, table)).schema


SCHEMAS = {
    "member_changes": MEMBER_CHANGES,
    "assignment_changes": ASSIGNMENT_CHANGES,
}
MODULES = {"generations": "group_generations"}


def _placed(name: str, rows: pa.Table | Sequence[Row], partition: int) -> pa.Table:
    """With the partition of the log that this is said to be of."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows], schema=schema_of(name))
    there = pa.repeat(pa.scalar(partition, pa.int32()), table.num_rows)
    if "log_partition" in table.column_names:
        table = table.drop_columns(["log_partition"])
    if name == "coverage":
        table = table.append_column("time", table.column("first_ms"))
    return table.append_column("log_partition", there)


def _write(warehouse: Warehouse, cluster: str, name: str, table: pa.Table, files: int) -> None:
    size = -(-table.num_rows // files) or 1
    for number in range(files):
        part = to_stored(name, table.slice(number * size, size), cluster)
        found = write_files(warehouse.location, name, part, "b0-63-")
        if found:
            warehouse.table(name).commit(found)
