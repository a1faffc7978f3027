"""Rebalances: one row for each generation (classic) or group epoch (consumer protocol) of a group, and for its end.

``duration_ms`` is from ``started_ms`` to ``stable_ms``. What ``started_ms`` is depends on ``started_by``: the exact begin
(``epoch_bump``, ``group_created``), or, where a classic group logs nothing earlier, the end of the join phase
(``join_phase_ended``): the rebalance began before, so that the duration is the least it can have been. An epoch that another one
overtook was never stable. ``members_joined`` and ``members_left`` compare with the row before; null where that is missing.
``generation_id`` is unchanged in rows of the causes ``static_member_returned`` and ``group_deleted``, which are no rebalances.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl.pipeline.tables.groups.history import Generation
from kgctl.pipeline.tables.groups.replay import spans

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "group_generations"
VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("protocol_type", pa.string(), nullable=False),
        pa.field("generation_id", pa.int32(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        ("started_ms", pa.int64()),
        ("stable_ms", pa.int64()),
        ("duration_ms", pa.int64()),
        ("started_by", pa.string()),
        ("assignor", pa.string()),
        ("leader", pa.string()),
        pa.field("members", pa.int32(), nullable=False),
        ("members_joined", pa.list_(pa.string())),
        ("members_left", pa.list_(pa.string())),
        pa.field("cause", pa.string(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
    ]
)


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group and log_offset, the place of the record that made the row."""
    found = inputs.with_carried(NAME, rows_of(spans(inputs).generations))
    return found.sort_by([("group", "ascending"), ("log_offset", "ascending")])


def rows_of(generations: Iterable[Generation]) -> pa.Table:
    """These generations as rows."""
    rows = sorted(generations, key=lambda row: (row.group, row.log_offset))
    return pa.table({name: [getattr(row, name) for row in rows] for name in SCHEMA.names}, schema=SCHEMA)
