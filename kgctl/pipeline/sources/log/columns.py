"""Columns of `kgctl.pipeline.store.raw.RAW` from the places of records in a buffer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kgctl.pipeline.sources.log.records import Fields
from kgctl.pipeline.store.raw import RAW

_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_ABORT, _COMMIT = 0, 1
_MARKER_KEY_BYTES = 4


class Rows(NamedTuple):
    """``rows`` of `RAW`, and which of them are ``wanted``: control records that are no transaction's marker are not."""

    rows: Any
    wanted: Any


def raw_table(buffer: Any, fields: Fields, headers: Any, batch: Any, partition: int) -> Rows:
    """The rows of these records; ``batch`` is each record's row in ``headers``."""
    attributes = headers["attributes"].astype(np.int16)
    is_control = (attributes & _CONTROL != 0)[batch]
    transactions = _transaction_columns(buffer, fields, headers, batch)
    columns = [
        pa.array(np.full(len(batch), partition, np.int32)),
        pa.array(headers["base_offset"].astype(np.int64)[batch] + fields.offset_delta),
        pa.array(_timestamps(headers, attributes, fields, batch)),
        *_bytes_columns(buffer, fields, is_control),
        *transactions,
    ]
    is_marker = ~transactions[-1].is_null().to_numpy(zero_copy_only=False)
    return Rows(pa.table(columns, schema=RAW), ~is_control | is_marker)


def _bytes_columns(buffer: Any, fields: Fields, is_control: Any) -> tuple[Any, Any]:
    """Keys and values; null for control records.

    Arrow sees the buffer as pieces in turn (key, between, value, between) and copies out those it is asked for, which is many
    times faster than gathering bytes by index.
    """
    size = len(fields.key_start)
    offsets = np.empty(4 * size + 1, np.int32)
    offsets[0:-1:4] = fields.key_start
    offsets[1::4] = fields.key_start + np.maximum(fields.key_length, 0)
    offsets[2::4] = fields.value_start
    offsets[3::4] = fields.value_start + np.maximum(fields.value_length, 0)
    offsets[-1] = len(buffer)
    if fields.is_bad.any():  # their places mean nothing; Arrow must not follow them
        offsets[:-1].reshape(-1, 4)[fields.is_bad] = 0
        np.maximum.accumulate(offsets, out=offsets)
    pieces = pa.Array.from_buffers(pa.binary(), 4 * size, [None, pa.py_buffer(offsets), pa.py_buffer(buffer)])
    number = np.arange(0, 4 * size, 4, dtype=np.int32)
    keys = pieces.take(_indices(number, is_control | (fields.key_length < 0)))
    return keys, pieces.take(_indices(number + 2, is_control | (fields.value_length < 0)))


def _indices(number: Any, is_null: Any) -> Any:
    return pa.array(number, mask=is_null) if is_null.any() else pa.array(number)


def _timestamps(headers: Any, attributes: Any, fields: Fields, batch: Any) -> Any:
    times = headers["base_timestamp_ms"].astype(np.int64)[batch] + fields.timestamp_delta
    appended = attributes & _LOG_APPEND_TIME != 0
    if appended.any():
        times = np.where(appended[batch], headers["max_timestamp_ms"].astype(np.int64)[batch], times)
    return times


def _transaction_columns(buffer: Any, fields: Fields, headers: Any, batch: Any) -> list[Any]:
    attributes, size = headers["attributes"], len(batch)
    is_plain = (attributes & (_TRANSACTIONAL | _CONTROL) == 0)[batch]
    if is_plain.all():
        return [pa.nulls(size, pa.int64()), pa.nulls(size, pa.int16()), pa.nulls(size, pa.bool_())]
    is_control = (attributes & _CONTROL != 0)[batch]
    kind = _marker_kinds(buffer, fields)
    return [
        pa.array(headers["producer_id"].astype(np.int64)[batch], mask=is_plain),
        pa.array(headers["producer_epoch"].astype(np.int16)[batch], mask=is_plain),
        pa.array(kind == _COMMIT, mask=~is_control | ((kind != _COMMIT) & (kind != _ABORT))),
    ]


def _marker_kinds(buffer: Any, fields: Fields) -> Any:
    """The kind in a control record's key (version int16, kind int16); -1 where the key is too short."""
    high, low = (buffer.take(fields.key_start + at, mode="clip").astype(np.int32) for at in (2, 3))
    return np.where(fields.key_length >= _MARKER_KEY_BYTES, (high << 8) | low, -1)
