"""Stretches as the changes that they begin and end with: members, assignments, and the status of a partition.

Changes are what tables keep: a row of them never has to be written again because its stretch has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa

from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.groups.history import AssignmentSpan, MemberSpan, Spans

_INFO = ("group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")

MEMBER_CHANGES = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("member_id", pa.string(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("change", pa.string(), nullable=False),
        pa.field("generation_id", pa.int32(), nullable=False),
        ("group_instance_id", pa.string()),
        pa.field("client_id", pa.string(), nullable=False),
        pa.field("client_host", pa.string(), nullable=False),
        ("session_timeout_ms", pa.int32()),
        ("rebalance_timeout_ms", pa.int32()),
        pa.field("log_offset", pa.int64(), nullable=False),
    ]
)
ASSIGNMENT_CHANGES = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("member_id", pa.string(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("change", pa.string(), nullable=False),
        pa.field("generation_id", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
    ]
)
STATUS_CHANGES = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("status", TEXT, nullable=False),
    ]
)


def member_changes(found: Spans) -> tuple[pa.Table, pa.Table]:
    """A row where a member joined, where its properties changed, and where it left: (rows that are for good, rows that a later
    record may change), each sorted by group, member_id, log_offset."""
    settled = {id(span): count for span, count in found.open_members}
    rows = [
        (number < settled.get(id(span), number + 1), row)
        for span in found.members
        for number, row in enumerate(_rows_of_member(span))
        if number >= span.told
    ]
    rows.sort(key=lambda each: (each[1]["group"], each[1]["member_id"], each[1]["log_offset"], each[1]["change"] != "left"))
    return _split(rows, MEMBER_CHANGES)


def _rows_of_member(span: MemberSpan) -> Iterator[dict[str, Any]]:
    for number, (time_ms, log_offset, generation, info) in enumerate(span.infos):
        row = {"group": span.group, "member_id": span.member_id, "time_ms": time_ms, "log_offset": log_offset}
        row.update(change="updated" if number else "joined", generation_id=generation if number else span.first_generation)
        yield {**row, **{name: getattr(info, name) for name in _INFO}}
    if span.to_ms is not None:
        row = {"group": span.group, "member_id": span.member_id, "time_ms": span.to_ms, "log_offset": span.to_offset}
        row.update(change="left", generation_id=span.last_generation)
        yield {**row, **{name: getattr(span.info, name) for name in _INFO}}


def assignment_changes(found: Spans) -> tuple[pa.Table, pa.Table]:
    """A row where a member got a partition and where it gave it up: (rows that are for good, rows that a later record may
    change), each sorted by group, topic, partition, log_offset."""
    settled = {id(span): count for span, count in found.open_assignments}
    rows = [
        (number < settled.get(id(span), number + 1), row)
        for span in found.assignments
        for number, row in enumerate(_rows_of_assignment(span))
        if number >= span.told
    ]
    key = ("group", "topic", "partition", "log_offset", "change", "member_id")
    rows.sort(key=lambda each: tuple(each[1][name] for name in key))
    return _split(rows, ASSIGNMENT_CHANGES)


def _rows_of_assignment(span: AssignmentSpan) -> Iterator[dict[str, Any]]:
    topic, partition = span.partition
    row = {"group": span.group, "topic": topic, "partition": partition, "member_id": span.member_id}
    row["generation_id"] = span.generation_id
    yield {**row, "time_ms": span.from_ms, "change": "assigned", "log_offset": span.from_offset}
    if span.to_ms is not None:
        yield {**row, "time_ms": span.to_ms, "change": "revoked", "log_offset": span.to_offset}


def _split(rows: Sequence[tuple[bool, dict[str, Any]]], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    parts = [[row for is_settled, row in rows if is_settled is wanted] for wanted in (True, False)]
    return pa.Table.from_pylist(parts[0], schema=schema), pa.Table.from_pylist(parts[1], schema=schema)


def status_changes(stalls: pa.Table) -> pa.Table:
    """A row for each begin of a stretch (`kgctl.pipeline.tables.stalls`), and one with OK where none follows its end at once."""
    rows = stalls.to_pylist()
    found: list[dict[str, Any]] = []
    for row, after in zip_longest(rows, rows[1:]):
        place = {name: row[name] for name in ("group", "topic", "partition")}
        found.append({**place, "time_ms": row["from_ms"], "status": row["status"]})
        goes_on = after is not None and all(after[name] == place[name] for name in place) and after["from_ms"] == row["to_ms"]
        if row["to_ms"] is not None and not goes_on:
            found.append({**place, "time_ms": row["to_ms"], "status": "OK"})
    return pa.Table.from_pylist(found, schema=STATUS_CHANGES)
