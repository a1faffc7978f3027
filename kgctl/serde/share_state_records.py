"""Records of ``__share_group_state``: model <-> Kafka's bytes, byte for byte what Apache Kafka 4.3 writes.

Kafka: ``ShareCoordinatorRecordSerde``, ``ShareCoordinatorRecordHelpers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from struct import Struct
from typing import Any

from kgctl.model.share import (
    NO_DELIVERY_COMPLETE_COUNT,
    SharePartitionKey,
    ShareSnapshot,
    ShareStateRecord,
    ShareUpdate,
    StateBatch,
)
from kgctl.serde.record_schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    PLAIN,
    Field,
    Layout,
    Reader,
    RecordDecodeError,
    Structure,
    array,
    string,
    uuid,
)


class ShareRecordType(IntEnum):
    """The int16 with which a record's key begins. Kafka: CoordinatorRecordType of the share coordinator."""

    SHARE_SNAPSHOT = 0
    SHARE_UPDATE = 1


def _state_batch(layout: Layout) -> Structure:
    rows = (
        Field("first_offset", INT64),
        Field("last_offset", INT64),
        Field("delivery_state", INT8),
        Field("delivery_count", INT16),
    )
    return Structure(StateBatch, rows, layout)


_KEY_FIELDS = (Field("group_id", string), Field("topic_id", uuid), Field("partition", INT32))
_COUNT = Field("delivery_complete_count", INT32, tag=0, default=NO_DELIVERY_COMPLETE_COUNT)
_SNAPSHOT_FIELDS = (
    Field("snapshot_epoch", INT32),
    Field("state_epoch", INT32),
    Field("leader_epoch", INT32),
    Field("start_offset", INT64),
    Field("create_timestamp_ms", INT64),
    Field("write_timestamp_ms", INT64),
    Field("batches", array(_state_batch)),
    _COUNT,
)
_UPDATE_FIELDS = (
    Field("snapshot_epoch", INT32),
    Field("leader_epoch", INT32),
    Field("start_offset", INT64),
    Field("batches", array(_state_batch)),
    _COUNT,
)

_VERSION = 0
_FLEXIBLE = Layout(_VERSION, flexible=True)
_INT16 = Struct(">h")
_KEY = Structure(SharePartitionKey, _KEY_FIELDS, PLAIN)
_VALUES: Mapping[int, Structure] = {
    ShareRecordType.SHARE_SNAPSHOT: Structure(ShareSnapshot, _SNAPSHOT_FIELDS, _FLEXIBLE),
    ShareRecordType.SHARE_UPDATE: Structure(ShareUpdate, _UPDATE_FIELDS, _FLEXIBLE),
}
_TYPE_OF_VALUE: Mapping[type, ShareRecordType] = {
    ShareSnapshot: ShareRecordType.SHARE_SNAPSHOT,
    ShareUpdate: ShareRecordType.SHARE_UPDATE,
    type(None): ShareRecordType.SHARE_SNAPSHOT,
}


def encode_record(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Key and value (None: a tombstone) as Kafka writes them. Raises `RecordEncodeError` for a group id too long for it."""
    record_type = _TYPE_OF_VALUE[type(record.value)]
    key = _written(record_type, _KEY, record.key)
    return key, None if record.value is None else _written(_VERSION, _VALUES[record_type], record.value)


def _written(head: int, structure: Structure, value: Any) -> bytes:
    out = bytearray(_INT16.pack(head))
    structure.write(out, value)
    return bytes(out)


def decode_record(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    """The record that these bytes hold; None for a type of a newer broker, which Kafka leaves out. Raises `RecordDecodeError`."""
    reader = Reader(key)
    record_type: int = _INT16.unpack(reader.take(2))[0]
    if record_type not in _VALUES:
        return None
    partition: SharePartitionKey = _KEY.read(reader)
    return ShareStateRecord(partition, _decoded_value(record_type, value))


def _decoded_value(record_type: int, value: bytes | None) -> ShareSnapshot | ShareUpdate | None:
    if value is None:
        if record_type != ShareRecordType.SHARE_SNAPSHOT:
            raise RecordDecodeError("a ShareUpdate without value: tombstones are those of a ShareSnapshot")
        return None
    reader = Reader(value)
    version: int = _INT16.unpack(reader.take(2))[0]
    if version != _VERSION:
        raise RecordDecodeError(f"version {version} of a record of type {record_type}")
    decoded: ShareSnapshot | ShareUpdate = _VALUES[record_type].read(reader)
    return decoded
