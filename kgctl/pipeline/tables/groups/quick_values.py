"""Values of group records by their fixed places, as nearly all are; the rest is left to `kgctl.serde.coordinator_records`.

A history has millions of these records. Kafka writes them in one version and one shape each, so most fields stand where the
numbers before them say; what is any different (another version, a tagged field of a newer broker, a number that needs a second
byte, bytes that end early) is not guessed at but decoded by the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct, unpack_from
from struct import error as struct_error
from uuid import UUID

from kgctl.model.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    MemberMetadata,
    RecordType,
)
from kgctl.serde.record_schema import uuid_from_bytes

_INT16 = Struct(">h").unpack_from
_INT32 = Struct(">i").unpack_from
_TIMEOUTS = Struct(">iii").unpack_from
_EPOCH = Struct(">hi").unpack_from
_EPOCH_AND_TAG = Struct(">hi3sq").unpack_from
_CURRENT = Struct(">hiib").unpack_from
_ONE_INT64_TAG = b"\x01\x00\x08"

Value = (
    GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupCurrentMemberAssignmentValue
)


class _Unusual(Exception):  # noqa: N818 - not an error: the tables decode it
    """These bytes are not of the usual shape."""


def quick_value(record_type: int, data: bytes) -> Value | None:
    """The value, equal to what the tables decode; None where they have to be asked."""
    read = _READERS.get(record_type)
    try:
        return None if read is None else read(data)
    except (_Unusual, struct_error, IndexError, UnicodeDecodeError):
        return None


def _group_metadata(data: bytes) -> GroupMetadataValue:
    if data[:2] != b"\x00\x03":
        raise _Unusual
    protocol_type, at = _text(data, 2)
    (generation,) = _INT32(data, at)
    protocol, at = _nullable_text(data, at + 4)
    leader, at = _nullable_text(data, at)
    state_ms, count = unpack_from(">qi", data, at)
    at += 12
    members = []
    for _ in range(count):
        member, at = _member(data, at)
        members.append(member)
    if count < 0:
        raise _Unusual
    return GroupMetadataValue(protocol_type, generation, protocol, leader, state_ms, tuple(members))


def _member(data: bytes, at: int) -> tuple[MemberMetadata, int]:
    member_id, at = _text(data, at)
    instance, at = _nullable_text(data, at)
    client_id, at = _text(data, at)
    host, at = _text(data, at)
    rebalance_ms, session_ms, size = _TIMEOUTS(data, at)
    subscription, at = _bytes(data, at + 12, size)
    (size,) = _INT32(data, at)
    assignment, at = _bytes(data, at + 4, size)
    return MemberMetadata(member_id, instance, client_id, host, rebalance_ms, session_ms, subscription, assignment), at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _INT16(data, at)
    text, end = _bytes(data, at + 2, size)
    return text.decode(), end


def _nullable_text(data: bytes, at: int) -> tuple[str | None, int]:
    return (None, at + 2) if data[at : at + 2] == b"\xff\xff" else _text(data, at)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if size < 0 or end > len(data):
        raise _Unusual
    return data[at:end], end


def _epoch_and_number(data: bytes) -> tuple[int, int]:
    """An int32, and the int64 of tag 0, 0 where it is not there."""
    if len(data) == 7 and data[6] == 0:
        version, epoch = _EPOCH(data)
        number = 0
    else:
        version, epoch, tag, number = _EPOCH_AND_TAG(data)
        if tag != _ONE_INT64_TAG:
            raise _Unusual
    if version != 0:
        raise _Unusual
    return epoch, number


def _current_assignment(data: bytes) -> ConsumerGroupCurrentMemberAssignmentValue:
    version, epoch, previous, state = _CURRENT(data)
    if version != 0:
        raise _Unusual
    assigned, at = _topics(data, 11)
    pending, at = _topics(data, at)
    if data[at] != 0:
        raise _Unusual
    return ConsumerGroupCurrentMemberAssignmentValue(epoch, previous, state, assigned, pending)


def _topics(data: bytes, at: int) -> tuple[tuple[AssignedTopicPartitions, ...], int]:
    count, at = _count(data, at)
    topics = []
    for _ in range(count):
        topic_id: UUID = uuid_from_bytes(_bytes(data, at, 16)[0])
        partitions, at = _numbers(data, at + 16)
        epochs: tuple[int, ...] = ()
        if data[at] == 1 and data[at + 1] == 0 and data[at + 2] < 0x80:
            size = data[at + 2]
            epochs, end = _numbers(data, at + 3)
            if end != at + 3 + size:
                raise _Unusual
            at = end
        elif data[at] == 0:
            at += 1
        else:
            raise _Unusual
        topics.append(AssignedTopicPartitions(topic_id, partitions, epochs))
    return tuple(topics), at


def _numbers(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _count(data, at)
    return unpack_from(f">{count}i", data, at), at + 4 * count


def _count(data: bytes, at: int) -> tuple[int, int]:
    """The elements of an array: one more than that stands there, in a single byte."""
    number = data[at]
    if not 1 <= number < 0x80:
        raise _Unusual
    return number - 1, at + 1


_READERS: Mapping[int, Callable[[bytes], Value]] = {
    RecordType.GROUP_METADATA: _group_metadata,
    RecordType.CONSUMER_GROUP_METADATA: lambda data: ConsumerGroupMetadataValue(*_epoch_and_number(data)),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: lambda data: ConsumerGroupTargetAssignmentMetadataValue(
        *_epoch_and_number(data)
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_assignment,
}
