"""Warehouses with built tables, written by hand: what the answers read, without collecting, decoding and building."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.coordinator.partitioning import partition_for
from kgctl.pipeline.tables.registry import module
from kgctl.pipeline.warehouse.files import write_table
from kgctl.pipeline.warehouse.schemas import RAW
from kgctl.pipeline.warehouse.warehouse import Warehouse

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
    folder: Path, tables: Mapping[str, pa.Table | Sequence[Row]], *, partition: int = HOME, cluster: str = "c1", files: int = 1
) -> Warehouse:
    """Make these rows the built tables of a partition, beside what is in the folder already; ``files``: over how many files.

    Rows stand in the order given; nullable columns may be left out.
    """
    warehouse = Warehouse.create(folder)
    if not warehouse.bronze_files(cluster, partition):
        collect(warehouse, [0], partition=partition, cluster=cluster)
    written = {f"gold/{name}": _write(warehouse, cluster, partition, name, rows, files) for name, rows in tables.items()}
    inputs = [file.path for file in warehouse.bronze_files(cluster, partition)]
    warehouse.publish(cluster, partition, written, inputs)
    return warehouse


def collect(warehouse: Warehouse, offsets: Sequence[int], *, partition: int = HOME, cluster: str = "c1") -> None:
    """Keep raw records at these offsets; there is nothing in them."""
    rows = [{"partition": partition, "offset": offset, "timestamp_ms": START_MS + offset, "key": b""} for offset in offsets]
    warehouse.add_records(cluster, partition, pa.Table.from_pylist(rows, schema=RAW), "by hand")


def schema_of(table: str) -> pa.Schema:
    """The schema of a gold table."""
    return module(table).SCHEMA


def _write(
    warehouse: Warehouse, cluster: str, partition: int, name: str, rows: pa.Table | Sequence[Row], files: int
) -> list[Path]:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([dict(row) for row in rows], schema=schema_of(name))
    size = -(-table.num_rows // files) or 1
    paths = []
    for number in range(files):
        path = warehouse.table_file("gold", name, cluster, partition, f"part-{number}")
        write_table(path, table.slice(number * size, size))
        paths.append(path)
    return paths
