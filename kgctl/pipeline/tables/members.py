"""Members: one row for each member for as long as it was one without interruption, by what the log shows.

``from_ms`` is when the log first shows the member: its first generation became stable (classic) or its subscription was written
(consumer protocol). ``to_ms`` is when the log first shows the group without it; null: it is still there at the end of the log.
``first_generation`` and ``last_generation`` are the first and last generations or epochs that it took part in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl.pipeline.tables.groups.replay import spans

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "members"
VERSION = 1
SCHEMA = pa.schema(
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


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, member_id, from_ms, first_generation."""
    rows = sorted(spans(inputs).members, key=lambda row: (row.group, row.member_id, row.from_ms, row.first_generation))
    columns = {
        name: [getattr(row.info, name) for row in rows] if name in _INFO else [getattr(row, name) for row in rows]
        for name in SCHEMA.names
    }
    found = inputs.with_carried(NAME, pa.table(columns, schema=SCHEMA))
    return found.sort_by([(name, "ascending") for name in ("group", "member_id", "from_ms", "first_generation")])
