"""Who was in a group and what it had: generations, members, assignments, and the changes that these begin and end with.

GROUP_GENERATIONS has a row for each generation (classic) or group epoch (consumer protocol), and for the group's end.
``duration_ms`` is from ``started_ms`` to ``stable_ms``. What ``started_ms`` is depends on ``started_by``: the exact begin
(``epoch_bump``, ``group_created``), or, where a classic group logs nothing earlier, the end of the join phase
(``join_phase_ended``): the rebalance began before, so that the duration is the least it can have been. An epoch that another one
overtook was never stable. ``members_joined`` and ``members_left`` compare with the row before; null where that is missing.
``generation_id`` is unchanged in rows of the causes ``static_member_returned`` and ``group_deleted``, which are no rebalances.

MEMBERS has a row for each member for as long as it was one without interruption, by what the log shows. ``from_ms`` is when the
log first shows the member: its first generation became stable (classic) or its subscription was written (consumer protocol).
``to_ms`` is when the log first shows the group without it; null: it is still there at the end of the log. ``first_generation``
and ``last_generation`` are the first and last generations or epochs that it took part in.

ASSIGNMENTS has which member had which partition from when to when. ``generation_id`` is the generation or epoch at which it was
assigned. A member that keeps a partition over rebalances has one row. Classic groups: by the assignments that the leader sent,
from the moment the generation was stable until the next one is; what a member gives up at the begin of a rebalance is not logged.
Consumer protocol: until the member has confirmed that it gave the partition up. Protocol types other than ``consumer`` have
assignments of their own kind and are left out. ``topic`` is the topic's id, in Kafka's base64 form, where the log has no name.

A warehouse keeps the changes: a row of them never has to be written again because its stretch ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from kgctl.pipeline.store.tables import columns_of
from kgctl.pipeline.tables.group_history import AssignmentSpan, Generation, MemberSpan, Spans
from kgctl.pipeline.tables.registry import PartitionInputs, Table
from kgctl.pipeline.tables.replay import spans

GENERATION_COLUMNS = columns_of("generations", "log_partition")


def _build_generations(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group and log_offset, the place of the record that made the row."""
    found = inputs.with_carried("group_generations", generation_rows(spans(inputs).generations))
    return found.sort_by([("group", "ascending"), ("log_offset", "ascending")])


def generation_rows(generations: Iterable[Generation]) -> pa.Table:
    """These generations as rows."""
    rows = sorted(generations, key=attrgetter("group", "log_offset"))
    return _table(map(attrgetter(*GENERATION_COLUMNS.names), rows), GENERATION_COLUMNS)


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows with their values in the order of the schema's columns as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


MEMBER_COLUMNS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("member_id", pa.string(), nullable=False),
        ("group_instance_id", pa.string()),
        pa.field("client_id", pa.string(), nullable=False),
        pa.field("client_host", pa.string(), nullable=False),
        ("session_timeout_ms", pa.int32()),
        ("rebalance_timeout_ms", pa.int32()),
        pa.field("from_ms", pa.int64(), nullable=False),
        ("to_ms", pa.int64()),
        pa.field("first_generation", pa.int32(), nullable=False),
        pa.field("last_generation", pa.int32(), nullable=False),
    ]
)
_INFO = ("group_instance_id", "client_id", "client_host", "session_timeout_ms", "rebalance_timeout_ms")


def _build_members(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, member_id, from_ms, first_generation."""
    rows = sorted(spans(inputs).members, key=lambda row: (row.group, row.member_id, row.from_ms, row.first_generation))
    columns = {
        name: [getattr(row.info, name) for row in rows] if name in _INFO else [getattr(row, name) for row in rows]
        for name in MEMBER_COLUMNS.names
    }
    found = inputs.with_carried("members", pa.table(columns, schema=MEMBER_COLUMNS))
    return found.sort_by([(name, "ascending") for name in ("group", "member_id", "from_ms", "first_generation")])


_ASSIGNMENT_COLUMNS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("member_id", pa.string(), nullable=False),
        pa.field("generation_id", pa.int32(), nullable=False),
        pa.field("from_ms", pa.int64(), nullable=False),
        ("to_ms", pa.int64()),
    ]
)


def _build_assignments(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, from_ms, member_id."""
    rows = spans(inputs).assignments
    columns = [
        [row.group for row in rows],
        [row.partition[0] for row in rows],
        [row.partition[1] for row in rows],
        [row.member_id for row in rows],
        [row.generation_id for row in rows],
        [row.from_ms for row in rows],
        [row.to_ms for row in rows],
    ]
    key = ("group", "topic", "partition", "from_ms", "member_id", "generation_id")
    return pa.table(columns, schema=_ASSIGNMENT_COLUMNS).sort_by([(name, "ascending") for name in key])


MEMBER_CHANGES = columns_of("member_changes", "log_partition")
ASSIGNMENT_CHANGES = columns_of("assignment_changes", "log_partition")


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
    rows.sort(key=lambda each: (each[1][0], each[1][1], each[1][-1], each[1][3] != "left"))
    return _split(rows, MEMBER_CHANGES)


_info = attrgetter(*_INFO)


def _rows_of_member(span: MemberSpan) -> Iterator[tuple[Any, ...]]:
    for number, (time_ms, log_offset, generation, info) in enumerate(span.infos):
        later = "closed" if info.is_closed else "updated"
        change = (later, generation) if number else ("joined", span.first_generation)
        yield (span.group, span.member_id, time_ms, *change, *_info(info), log_offset)
    if span.to_ms is not None:
        yield (span.group, span.member_id, span.to_ms, "left", span.last_generation, *_info(span.info), span.to_offset)


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
    rows.sort(key=lambda each: _PLACES(each[1]))
    return _split(rows, ASSIGNMENT_CHANGES)


_PLACES = itemgetter(*map(ASSIGNMENT_CHANGES.names.index, ("group", "topic", "partition", "log_offset", "change", "member_id")))


def _rows_of_assignment(span: AssignmentSpan) -> Iterator[tuple[Any, ...]]:
    place = (span.group, *span.partition, span.member_id)
    yield (*place, span.from_ms, "assigned", span.generation_id, span.from_offset)
    if span.to_ms is not None:
        yield (*place, span.to_ms, "revoked", span.generation_id, span.to_offset)


def _split(rows: Sequence[tuple[bool, tuple[Any, ...]]], schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    settled, open_ = (_table((row for is_settled, row in rows if is_settled is wanted), schema) for wanted in (True, False))
    return settled, open_


GROUP_GENERATIONS = Table("group_generations", GENERATION_COLUMNS, _build_generations)
MEMBERS = Table("members", MEMBER_COLUMNS, _build_members)
ASSIGNMENTS = Table("assignments", _ASSIGNMENT_COLUMNS, _build_assignments)
