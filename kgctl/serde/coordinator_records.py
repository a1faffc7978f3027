"""Records of ``__consumer_offsets``: model <-> Kafka's bytes, byte for byte what Apache Kafka 4.3 writes.

Reading takes every version that Kafka ever wrote (OffsetCommit 0-4, GroupMetadata 0-4, the rest 0); writing uses the one that
Kafka 4.3 uses: OffsetCommit 4, or 1 where the commit carries a retention of its own; GroupMetadata 3; the rest 0. Key types that
kgctl does not interpret (share and streams groups, those of newer brokers) go through as `OpaqueKey` and raw bytes, nothing lost.

Bytes that cannot be read raise `RecordDecodeError`, whatever they hold. A tagged field of a newer broker is skipped, as Kafka
does, so bytes that must come out unchanged are to be kept as bytes.

Kafka: ``GroupCoordinatorRecordSerde``, ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Any, cast

from kgctl.model.partitions import ZERO_UUID
from kgctl.model.records import (
    ConsumerGroupPartitionMetadataKey,
    CoordinatorRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    RecordKey,
    RecordType,
    RecordValue,
)
from kgctl.serde.coordinator_schemas import (
    OPAQUE_TYPES_WITH_GROUP,
    TYPE_OF_KEY,
    VALUES,
    key_structure,
    value_structure,
)
from kgctl.serde.record_schema import (
    MAX_PLAIN_STRING_BYTES,
    Reader,
    RecordDecodeError,
    RecordEncodeError,
    uuid_from_bytes,
    write_varint,
)

__all__ = [
    "RecordDecodeError",
    "RecordEncodeError",
    "UnknownValueVersionError",
    "decode_key",
    "decode_record",
    "decode_value",
    "encode_key",
    "encode_record",
    "encode_value",
]

_NO_EXPIRE_TIMESTAMP = -1


class UnknownValueVersionError(RecordDecodeError):
    """A value in a version newer than any known one. Kafka refuses to load a partition that holds one."""


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Key and value (None: a tombstone) as Kafka writes them.

    Raises `RecordEncodeError` where Kafka's format has no room: a group id, topic or member id of more than 32,767 bytes.
    """
    return encode_key(record.key), encode_value(record.key, record.value)


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord:
    """The record that these bytes hold. Raises `RecordDecodeError`."""
    decoded = decode_key(key)
    return CoordinatorRecord(decoded, decode_value(decoded, value))


def encode_key(key: RecordKey) -> bytes:
    """The key's bytes: its type as int16, then its fields."""
    if isinstance(key, OffsetCommitKey):
        return _encode_offset_commit_key(key)
    if isinstance(key, OpaqueKey):
        return key.raw
    record_type = TYPE_OF_KEY[type(key)]
    out = bytearray(_INT16.pack(record_type))
    _structure(key_structure(record_type)).write(out, key)
    return bytes(out)


def decode_key(data: bytes) -> RecordKey:
    """The key of these bytes; `OpaqueKey` for a type that kgctl does not interpret. Type 0 reads as type 1."""
    if data[:2] == _OFFSET_COMMIT_TYPE:
        return _decode_offset_commit_key(data)
    reader = Reader(data)
    record_type: int = _INT16.unpack(reader.take(2))[0]
    structure = key_structure(record_type)
    if structure is not None:
        return cast("RecordKey", structure.read(reader))
    group = _plain_string(reader) if record_type in OPAQUE_TYPES_WITH_GROUP else None
    return OpaqueKey(record_type, data, group)


def encode_value(key: RecordKey, value: RecordValue | None) -> bytes | None:
    """The value's bytes: its version as int16, then its fields; None for a tombstone. Raw bytes stay as they are."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp_ms == _NO_EXPIRE_TIMESTAMP:
        return _encode_offset_commit_value(value)
    record_type = TYPE_OF_KEY[type(key)]
    version = 1 if isinstance(value, OffsetCommitValue) else VALUES[record_type].written
    out = bytearray(_INT16.pack(version))
    _structure(value_structure(record_type, version)).write(out, value)
    return bytes(out)


def decode_value(key: RecordKey, data: bytes | None) -> RecordValue | None:
    """The value that belongs to ``key``; None for a tombstone, raw bytes where kgctl does not interpret the type.

    Raises `UnknownValueVersionError` for a version that nobody writes yet, else `RecordDecodeError`.
    """
    if data is None or isinstance(key, (OpaqueKey, ConsumerGroupPartitionMetadataKey)):
        return data
    if isinstance(key, OffsetCommitKey) and data[:2] == _VERSION_4:
        return _decode_offset_commit_value(data)
    reader = Reader(data)
    version: int = _INT16.unpack(reader.take(2))[0]
    structure = value_structure(TYPE_OF_KEY[type(key)], version)
    if structure is None:
        raise UnknownValueVersionError(f"version {version} of {type(key).__name__.removesuffix('Key')}Value")
    return cast("RecordValue", structure.read(reader))


# Nearly all of a log are offset commits, so their layout is spelled out here. The tables say the same; the tests compare them.

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_TYPE_AND_LENGTH = Struct(">hh")
_VALUE_HEAD = Struct(">hqi")
_OFFSET_COMMIT_TYPE = _INT16.pack(RecordType.OFFSET_COMMIT)
_VERSION_4 = _INT16.pack(4)
_NO_TAGS = b"\x00"
_TOPIC_ID_TAG = b"\x01\x00\x10"
"""One tagged field: tag 0, 16 bytes."""


def _encode_offset_commit_key(key: OffsetCommitKey) -> bytes:
    group, topic = key.group.encode("utf-8", "replace"), key.topic.encode("utf-8", "replace")
    if max(len(group), len(topic)) > MAX_PLAIN_STRING_BYTES:
        raise RecordEncodeError(f"a group or topic name of more than {MAX_PLAIN_STRING_BYTES} bytes")
    try:
        partition = _INT32.pack(key.partition)
    except struct_error:
        raise RecordEncodeError(f"partition {key.partition}") from None
    return _TYPE_AND_LENGTH.pack(1, len(group)) + group + _INT16.pack(len(topic)) + topic + partition


def _decode_offset_commit_key(data: bytes) -> OffsetCommitKey:
    try:
        topic_at = 4 + _INT16.unpack_from(data, 2)[0]
        partition_at = topic_at + 2 + _INT16.unpack_from(data, topic_at)[0]
        if not 4 <= topic_at < partition_at - 1:
            raise RecordDecodeError("a negative length in an OffsetCommit key")
        partition = _INT32.unpack_from(data, partition_at)[0]
        return OffsetCommitKey(data[4:topic_at].decode(), data[topic_at + 2 : partition_at].decode(), partition)
    except (struct_error, UnicodeDecodeError) as error:
        raise RecordDecodeError(f"an OffsetCommit key of {len(data)} bytes: {error}") from None


def _encode_offset_commit_value(value: OffsetCommitValue) -> bytes:
    try:
        out = bytearray(_VALUE_HEAD.pack(4, value.offset, value.leader_epoch))
        metadata = value.metadata.encode("utf-8", "replace")
        write_varint(out, len(metadata) + 1)
        out += metadata
        out += _INT64.pack(value.commit_timestamp_ms)
    except struct_error as error:
        raise RecordEncodeError(f"{value}: {error}") from None
    out += _NO_TAGS if value.topic_id == ZERO_UUID else _TOPIC_ID_TAG + value.topic_id.bytes
    return bytes(out)


def _decode_offset_commit_value(data: bytes) -> OffsetCommitValue:
    """The usual shape by its fixed places; whatever is longer or has other tags goes through the table."""
    tags_at = 15 + data[14] - 1 + 8 if len(data) > 14 else 0
    rest = data[tags_at:]
    if tags_at < 23 or data[14] > 0x7F or not (rest == _NO_TAGS or (rest[:3] == _TOPIC_ID_TAG and len(rest) == 19)):
        return cast("OffsetCommitValue", _structure(value_structure(RecordType.OFFSET_COMMIT, 4)).read(Reader(data, 2)))
    _, offset, leader_epoch = _VALUE_HEAD.unpack_from(data)
    topic_id = ZERO_UUID if len(rest) == 1 else uuid_from_bytes(rest[3:])
    try:
        metadata = data[15 : tags_at - 8].decode()
    except UnicodeDecodeError as error:
        raise RecordDecodeError(f"a string that is not UTF-8: {error}") from None
    return OffsetCommitValue(offset, leader_epoch, metadata, _INT64.unpack_from(data, tags_at - 8)[0], -1, topic_id)


def _plain_string(reader: Reader) -> str:
    try:
        return reader.take(_INT16.unpack(reader.take(2))[0]).decode()
    except UnicodeDecodeError as error:
        raise RecordDecodeError(f"a string that is not UTF-8: {error}") from None


def _structure(found: Any) -> Any:
    """``found``, which the tables have for sure."""
    assert found is not None
    return found
