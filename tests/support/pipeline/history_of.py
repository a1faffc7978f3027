"""A partition of ``__consumer_offsets`` by hand: records, samples of the logs, and what the tables get of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from kgctl.model.coordinator_records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kgctl.model.groups import ZERO_UUID
from kgctl.pipeline.decode.arrow import each_once
from kgctl.pipeline.decode.decode import decode, resolve
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
from kgctl.pipeline.tables.collected import log_end_rows
from kgctl.pipeline.tables.registry import ClusterInputs, PartitionInputs, table_named
from kgctl.serde.coordinator_records import encode_record

Timed = tuple[int, CoordinatorRecord]
Sample = tuple[str, int, int, int | None, int | None]
"""Topic, partition, time, log start, log end."""


def commit(
    offset: int | None, topic: str = "t", partition: int = 0, group: str = "g", topic_id: UUID = ZERO_UUID
) -> CoordinatorRecord:
    """A commit; without an offset, its removal."""
    key = OffsetCommitKey(group, topic, partition)
    return CoordinatorRecord(key, None if offset is None else OffsetCommitValue(offset, topic_id=topic_id))


def commits(*found: tuple[int, int | None], **place: Any) -> list[Timed]:
    """(time, offset) of one series."""
    return [(time_ms, commit(offset, **place)) for time_ms, offset in found]


def members(count: int, generation: int, group: str = "g") -> CoordinatorRecord:
    """A generation of a classic group."""
    there = tuple(MemberMetadata(f"m{number}", client_id="c", client_host="/h") for number in range(count))
    leader, protocol = ("m0", "range") if count else (None, None)
    return CoordinatorRecord(GroupMetadataKey(group), GroupMetadataValue("consumer", generation, protocol, leader, 0, there))


def ends(*found: tuple[int, int | None], topic: str = "t", partition: int = 0, start: int | None = 0) -> list[Sample]:
    """(time, log end) of one log."""
    return [(topic, partition, time_ms, start, end) for time_ms, end in found]


def raw(records: Iterable[Timed], log_partition: int = 0) -> pa.Table:
    """The records as they are collected, from log offset 0 on."""
    rows = []
    for offset, (time_ms, record) in enumerate(records):
        key, value = encode_record(record)
        rows.append({"partition": log_partition, "offset": offset, "timestamp_ms": time_ms, "key": key, "value": value})
    return pa.Table.from_pylist(rows, schema=RAW)


def log_ends(samples: Sequence[Sample]) -> pa.Table:
    """The samples, cleaned."""
    names = LOG_OFFSETS.names
    table = pa.Table.from_pylist([dict(zip(names, sample, strict=True)) for sample in samples], schema=LOG_OFFSETS)
    return log_end_rows(ClusterInputs(table))


def inputs_of(collected: pa.Table, samples: Sequence[Sample] = (), window_ms: int = 60_000) -> PartitionInputs:
    """What tables get of raw records."""
    decoded = decode(collected)
    commits = resolve(decoded.commits, decoded.markers).offset_commits
    groups = each_once(decoded.group_records, "log_offset")
    return PartitionInputs(commits, groups, log_ends(samples), decoded.coverage, window_ms=window_ms)


def table(name: str, records: Iterable[Timed], samples: Sequence[Sample] = (), window_ms: int = 60_000) -> list[dict[str, Any]]:
    """The rows of a table; its schema is what its module says."""
    return rows_of(name, inputs_of(raw(records), samples, window_ms))


def rows_of(name: str, inputs: PartitionInputs) -> list[dict[str, Any]]:
    """The rows of a table of these inputs."""
    found = inputs.table(name)
    found.validate(full=True)
    assert found.schema == table_named(name).schema
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def columns(rows: Iterable[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """These columns of the rows."""
    return [tuple(row[name] for name in names) for row in rows]
