"""Records of ``__consumer_offsets``: model <-> Kafka's bytes, byte for byte what Apache Kafka 4.3 writes.

Reading takes every version that Kafka ever wrote (OffsetCommit 0-4, GroupMetadata 0-4, the rest 0); writing uses the one that
Kafka 4.3 uses: OffsetCommit 4, or 1 where the commit carries a retention of its own; GroupMetadata 3; the rest 0. Key types that
kgctl does not interpret (those of newer brokers) go through as `OpaqueKey` and raw bytes, nothing lost.

Bytes that cannot be read raise `RecordDecodeError`, whatever they hold. A tagged field of a newer broker is skipped, as Kafka
does, so bytes that must come out unchanged are to be kept as bytes.

Kafka: ``GroupCoordinatorRecordSerde``, ``GroupCoordinatorRecordHelpers``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from struct import Struct
from struct import error as struct_error
from typing import Any, NamedTuple, cast
from uuid import UUID

from kgctl.model import coordinator_records as model
from kgctl.model.coordinator_records import (
    ConsumerGroupPartitionMetadataKey,
    CoordinatorRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    RecordKey,
    RecordType,
    RecordValue,
)
from kgctl.model.groups import ZERO_UUID
from kgctl.model.values import frozen_in_order
from kgctl.serde.record_schema import (
    INT8,
    INT32,
    INT64,
    MAX_PLAIN_STRING_BYTES,
    PLAIN,
    Field,
    Layout,
    Reader,
    RecordDecodeError,
    RecordEncodeError,
    Structure,
    array,
    blob,
    nullable,
    nullable_string,
    string,
    uuid,
    uuid_from_bytes,
    write_varint,
)
from kgctl.serde.share_groups import SHARE_KEYS, SHARE_VALUES
from kgctl.serde.streams_groups import STREAMS_KEYS, STREAMS_VALUES

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


@frozen_in_order
class ValueSchema:
    """A value's table. ``written`` is the version that Kafka 4.3 writes, ``flexible_since`` the first with compact encoding."""

    build: Callable[..., Any]
    fields: Sequence[Field]
    newest: int = 0
    written: int = 0
    flexible_since: int = 0


@frozen_in_order
class KeySchema:
    """A key's table; keys are always in plain encoding."""

    build: Callable[..., Any]
    fields: Sequence[Field]


class _TopicPartitions(NamedTuple):
    """An element of ``model.records.TopicPartitions``: a plain pair with names."""

    topic_id: UUID
    partitions: tuple[int, ...]


def _topic_partitions(layout: Layout) -> Structure:
    rows = (Field("topic_id", uuid), Field("partitions", array(INT32)))
    return Structure(_TopicPartitions, rows, layout, values=tuple)


def _assigned_topic_partitions(layout: Layout) -> Structure:
    rows = (
        Field("topic_id", uuid),
        Field("partitions", array(INT32)),
        Field("assignment_epochs", array(INT32), tag=0, default=()),
    )
    return Structure(model.AssignedTopicPartitions, rows, layout)


def _classic_protocol(layout: Layout) -> Structure:
    return Structure(model.ClassicProtocol, (Field("name", string), Field("metadata", blob)), layout)


def _classic_member_metadata(layout: Layout) -> Structure:
    rows = (Field("session_timeout_ms", INT32), Field("supported_protocols", array(_classic_protocol)))
    return Structure(model.ClassicMemberMetadata, rows, layout)


def _group_member(layout: Layout) -> Structure:
    rows = (
        Field("member_id", string),
        Field("group_instance_id", nullable_string, since=3),
        Field("client_id", string),
        Field("client_host", string),
        Field("rebalance_timeout_ms", INT32, since=1),
        Field("session_timeout_ms", INT32),
        Field("subscription", blob),
        Field("assignment", blob),
    )
    return Structure(model.MemberMetadata, rows, layout)


OFFSET_COMMIT_FIELDS = (
    Field("offset", INT64),
    Field("leader_epoch", INT32, since=3),
    Field("metadata", string),
    Field("commit_timestamp_ms", INT64),
    Field("expire_timestamp_ms", INT64, since=1, until=1),
    Field("topic_id", uuid, since=4, tag=0, default=ZERO_UUID),
)
_GROUP_METADATA_FIELDS = (
    Field("protocol_type", string),
    Field("generation", INT32),
    Field("protocol", nullable_string),
    Field("leader", nullable_string),
    Field("current_state_timestamp_ms", INT64, since=2),
    Field("members", array(_group_member)),
)
_CONSUMER_MEMBER_FIELDS = (
    Field("instance_id", nullable_string),
    Field("rack_id", nullable_string),
    Field("client_id", string),
    Field("client_host", string),
    Field("subscribed_topic_names", array(string)),
    Field("subscribed_topic_regex", nullable_string),
    Field("rebalance_timeout_ms", INT32),
    Field("server_assignor", nullable_string),
    # The default of Kafka's schema is an empty structure, so None, the usual value, is written, as one zero byte.
    Field("classic_member_metadata", nullable(_classic_member_metadata), tag=0, default=model.ClassicMemberMetadata(0)),
)

VALUES: Mapping[int, ValueSchema] = {
    RecordType.OFFSET_COMMIT: ValueSchema(model.OffsetCommitValue, OFFSET_COMMIT_FIELDS, newest=4, written=4, flexible_since=4),
    RecordType.GROUP_METADATA: ValueSchema(
        model.GroupMetadataValue, _GROUP_METADATA_FIELDS, newest=4, written=3, flexible_since=4
    ),
    RecordType.CONSUMER_GROUP_METADATA: ValueSchema(
        model.ConsumerGroupMetadataValue,
        (Field("epoch", INT32), Field("metadata_hash", INT64, tag=0, default=0)),
    ),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: ValueSchema(model.ConsumerGroupMemberMetadataValue, _CONSUMER_MEMBER_FIELDS),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: ValueSchema(
        model.ConsumerGroupTargetAssignmentMetadataValue,
        (Field("assignment_epoch", INT32), Field("assignment_timestamp_ms", INT64, tag=0, default=0)),
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: ValueSchema(
        model.ConsumerGroupTargetAssignmentMemberValue,
        (Field("topic_partitions", array(_topic_partitions)),),
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: ValueSchema(
        model.ConsumerGroupCurrentMemberAssignmentValue,
        (
            Field("member_epoch", INT32),
            Field("previous_member_epoch", INT32),
            Field("state", INT8),
            Field("assigned_partitions", array(_assigned_topic_partitions)),
            Field("partitions_pending_revocation", array(_assigned_topic_partitions)),
        ),
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: ValueSchema(
        model.ConsumerGroupRegularExpressionValue,
        (Field("topics", array(string)), Field("version", INT64), Field("timestamp_ms", INT64)),
    ),
    **{record_type: ValueSchema(build, fields) for record_type, (build, fields) in {**SHARE_VALUES, **STREAMS_VALUES}.items()},
}

_GROUP = (Field("group", string),)
_GROUP_AND_MEMBER = (*_GROUP, Field("member_id", string))
_OFFSET_KEY = (*_GROUP, Field("topic", string), Field("partition", INT32))

KEYS: Mapping[int, KeySchema] = {
    RecordType.LEGACY_OFFSET_COMMIT: KeySchema(model.OffsetCommitKey, _OFFSET_KEY),
    RecordType.OFFSET_COMMIT: KeySchema(model.OffsetCommitKey, _OFFSET_KEY),
    RecordType.GROUP_METADATA: KeySchema(model.GroupMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_METADATA: KeySchema(model.ConsumerGroupMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: KeySchema(model.ConsumerGroupPartitionMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: KeySchema(model.ConsumerGroupMemberMetadataKey, _GROUP_AND_MEMBER),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: KeySchema(model.ConsumerGroupTargetAssignmentMetadataKey, _GROUP),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: KeySchema(
        model.ConsumerGroupTargetAssignmentMemberKey, _GROUP_AND_MEMBER
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: KeySchema(
        model.ConsumerGroupCurrentMemberAssignmentKey, _GROUP_AND_MEMBER
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: KeySchema(
        model.ConsumerGroupRegularExpressionKey, (*_GROUP, Field("regular_expression", string))
    ),
    **{record_type: KeySchema(build, fields) for record_type, (build, fields) in {**SHARE_KEYS, **STREAMS_KEYS}.items()},
}

TYPE_OF_KEY: Mapping[type, int] = {
    schema.build: record_type  # type: ignore[misc]  # each build is a class
    for record_type, schema in KEYS.items()
    if record_type != RecordType.LEGACY_OFFSET_COMMIT
}


@cache
def key_structure(record_type: int) -> Structure | None:
    """The codec of a key's fields, after the type; None for a type that kgctl does not interpret."""
    schema = KEYS.get(record_type)
    return None if schema is None else Structure(schema.build, schema.fields, PLAIN)


@cache
def value_structure(record_type: int, version: int) -> Structure | None:
    """The codec of a value in this version, after the version itself; None where there is no such version."""
    schema = VALUES[record_type]
    if not 0 <= version <= schema.newest:
        return None
    return Structure(schema.build, schema.fields, Layout(version, flexible=version >= schema.flexible_since))


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
    return OpaqueKey(record_type, data)


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


@lru_cache(maxsize=4_096)
def _encode_offset_commit_key(key: OffsetCommitKey) -> bytes:
    """Remembered, because the same partitions are committed again and again."""
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


def _structure(found: Any) -> Any:
    """Return ``found``, which the tables have for every type and version that is asked for."""
    assert found is not None
    return found


OFFSET_COMMIT_KEYS = (b"\x00\x00", b"\x00\x01")
NEWEST, OLDER = struct.pack(">h", 4), 3
_ANY_KEY = OffsetCommitKey("", "", 0)


def older_value(key: bytes | None, value: bytes | None) -> bytes | None:
    """An OffsetCommitValue of version 4 (Kafka 4.1 and later) as version 3, without its topic id; anything else as it is."""
    if key is None or value is None or key[:2] not in OFFSET_COMMIT_KEYS or value[:2] != NEWEST:
        return value
    commit = decode_value(_ANY_KEY, value)
    assert isinstance(commit, OffsetCommitValue)
    metadata = commit.metadata.encode()
    head = struct.pack(">hqih", OLDER, commit.offset, commit.leader_epoch, len(metadata))
    return head + metadata + struct.pack(">q", commit.commit_timestamp_ms)
