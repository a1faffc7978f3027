"""Assignments: which member had which partition from when to when.

``generation_id`` is the generation or epoch at which it was assigned. A member that keeps a partition over rebalances has one
row. Classic groups: by the assignments that the leader sent, from the moment the generation was stable until the next one is;
what a member gives up at the begin of a rebalance is not logged. Consumer protocol: until the member has confirmed that it gave
the partition up. Protocol types other than ``consumer`` have assignments of their own kind and are left out. ``topic`` is the
topic's id, in Kafka's base64 form, where the log has no name for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl.pipeline.tables.groups.replay import spans

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "assignments"
VERSION = 1
SCHEMA = pa.schema(
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


def build(inputs: PartitionInputs) -> pa.Table:
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
    return pa.table(columns, schema=SCHEMA).sort_by([(name, "ascending") for name in key])
