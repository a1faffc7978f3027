"""The columns of the bronze tables. Times are milliseconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

RAW: Any = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("commits", pa.bool_()),
    ]
)
"""Records of ``__consumer_offsets``. ``producer_id`` and ``producer_epoch`` are those of transactional records and of markers,
else null; ``commits`` is null for a record, true or false for a transaction's marker, which has neither key nor value."""

LOG_OFFSETS: Any = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        pa.field("log_start_offset", pa.int64()),
        pa.field("log_end_offset", pa.int64()),
    ]
)
"""Samples: log start and log end (the high watermark) of a topic's partition at a moment; null is unknown."""

DAMAGED: Any = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("base_offset", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("data", pa.binary()),
    ]
)
"""What could not be read: ``size`` bytes at byte ``position`` of ``source``; ``data`` has the first 1,024 of them.
``base_offset`` and ``records`` are what a header that could be read says, else null."""

DAMAGED_DATA_BYTES = 1_024


def conform(table: Any, schema: Any) -> Any:
    """``table`` with exactly the columns of ``schema``, in its order and its types; missing nullable columns become null.

    Raises pyarrow.ArrowInvalid or KeyError where the table does not fit.
    """
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        if field.name in table.column_names:
            columns.append(table.column(field.name).cast(field.type))
        elif field.nullable:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            raise KeyError(field.name)
    return pa.table(columns, schema=schema)


def rows_of(columns: Mapping[str, Sequence[Any]], schema: Any) -> Any:
    """A table of this schema from columns; those left out are null."""
    size = len(next(iter(columns.values()), ()))
    return pa.table({field.name: columns.get(field.name, [None] * size) for field in schema}, schema=schema)
