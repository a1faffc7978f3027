"""The embedded consumer protocol: what consumers put into JoinGroup as metadata and their leader into SyncGroup as assignments.

An int16 version, then plain fields (Kafka: ConsumerProtocol, ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json).
Versions above 3 are read as 3 and bytes after the end are ignored, since newer versions may only append. Written by hand on
struct: a leader of a large group reads thousands of these in one go.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import TypeVar

from kgctl.model.groups import NO_GENERATION, Assignment, ConsumerAssignment, ConsumerSubscription, TopicPartition, new_partition

LATEST_VERSION = 3

T = TypeVar("T")
TopicPartitionLists = Iterable[tuple[str, Sequence[int]]]

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_SMALL = 1024
"""Bytes of no more than this many are remembered with what they say: the members of a group often send the same."""


class MalformedConsumerProtocol(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes are neither a subscription nor an assignment of the consumer protocol."""


def _named(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """What cannot be read is MalformedConsumerProtocol."""

    def read_or_raise(data: bytes) -> T:
        try:
            return read(data)
        except struct.error:
            raise MalformedConsumerProtocol(f"cut off after {len(data)} bytes") from None
        except UnicodeDecodeError:
            raise MalformedConsumerProtocol("a string that is not UTF-8") from None

    return read_or_raise


def decode_subscription(data: bytes) -> ConsumerSubscription:
    """What a member says when it joins.

    ``version`` of the result is the one that was written, at most 3; a rack of "" is None and a negative generation is -1, as
    Kafka reads them. Raises MalformedConsumerProtocol.
    """
    return _remembered_subscription(data) if len(data) <= _SMALL else _subscription(data)


@_named
def _subscription(data: bytes) -> ConsumerSubscription:
    version, topics, user_data, at = _head(data)
    owned: tuple[TopicPartition, ...] = ()
    generation_id, rack_id = NO_GENERATION, None
    if version >= 1:
        lists, at = _lists(data, at)
        owned = _flattened(lists)
    if version >= 2:
        generation_id = max(_INT32.unpack_from(data, at)[0], NO_GENERATION)
    if version >= 3 and _INT16.unpack_from(data, at + 4)[0] > 0:
        rack_id = _string_at(data, at + 4)[0]
    return ConsumerSubscription(topics, user_data, owned, generation_id, rack_id, version)


def decode_topics(data: bytes) -> tuple[str, ...]:
    """Only the subscribed topics: all that the coordinator itself looks at. Raises MalformedConsumerProtocol."""
    return decode_topics_and_user_data(data)[0]


@_named
def decode_topics_and_user_data(data: bytes) -> tuple[tuple[str, ...], bytes | None]:
    """What every version has. Raises MalformedConsumerProtocol."""
    return _head(data)[1:3]


def encode_subscription(subscription: ConsumerSubscription) -> bytes:
    """The bytes in ``subscription.version``; what that version cannot carry is left out.

    Owned partitions are grouped by topic, in the order of first appearance.
    """
    return _encoded(subscription) if subscription.owned_partitions else _remembered_encoding(subscription)


def _encoded(subscription: ConsumerSubscription) -> bytes:
    version = min(subscription.version, LATEST_VERSION)
    parts = [_INT16.pack(version), _INT32.pack(len(subscription.topics))]
    parts += map(_string, subscription.topics)
    parts.append(_nullable_bytes(subscription.user_data))
    if version >= 1:
        parts += _encoded_lists(group_by_topic(subscription.owned_partitions))
    if version >= 2:
        parts.append(_INT32.pack(subscription.generation_id))
    if version >= 3:
        parts.append(b"\xff\xff" if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(parts)


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """A member's partitions as its leader chose them. Raises MalformedConsumerProtocol."""
    return _remembered_assignment(data) if len(data) <= _SMALL else _assignment(data)


@_named
def _assignment(data: bytes) -> ConsumerAssignment:
    lists, at = _lists(data, 2)
    return ConsumerAssignment(_flattened(lists), _bytes_at(data, at)[0], _version(data))


@_named
def decode_assignment_by_topic(data: bytes) -> dict[str, tuple[int, ...]]:
    """Topic to partitions as they were written, without building one object a partition. Raises MalformedConsumerProtocol.

    Java: ConsumerProtocol#deserializeAssignment. A topic that stands there twice has the partitions of both.
    """
    _version(data)
    lists, at = _lists(data, 2)
    _bytes_at(data, at)
    by_topic: dict[str, tuple[int, ...]] = {}
    for topic, partitions in lists:
        by_topic[topic] = by_topic.get(topic, ()) + partitions
    return by_topic


def told_assignment(data: bytes) -> Assignment | None:
    """Topic to partitions, both in order; None between two generations (no bytes), or where the bytes are not a consumer's."""
    try:
        by_topic = decode_assignment_by_topic(bytes(data)) if data else None
    except ValueError:
        return None
    return None if by_topic is None else {topic: tuple(sorted(by_topic[topic])) for topic in sorted(by_topic)}


def told_subscription(data: bytes) -> tuple[tuple[str, ...] | None, str | None]:
    """The topics in order, and the rack; None for both where the bytes are not a consumer's."""
    try:
        subscription = decode_subscription(bytes(data)) if data else None
    except ValueError:
        return None, None
    return (tuple(sorted(subscription.topics)), subscription.rack_id) if subscription else (None, None)


def encode_assignment(assignment: ConsumerAssignment) -> bytes:
    """The bytes: topics in order of first appearance, partitions in the order given."""
    version = min(assignment.version, LATEST_VERSION)
    return encode_assignment_by_topic(group_by_topic(assignment.partitions), assignment.user_data, version)


def encode_assignment_by_topic(
    topics: TopicPartitionLists, user_data: bytes | None = None, version: int = LATEST_VERSION
) -> bytes:
    """The bytes of an assignment given topic by topic; the fast way for large ones."""
    return b"".join((_INT16.pack(version), *_encoded_lists(topics), _nullable_bytes(user_data)))


def group_by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions grouped by topic; topics in order of first appearance, numbers in the order given."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers = by_topic.get(topic)
        if numbers is None:
            by_topic[topic] = [partition]
        else:
            numbers.append(partition)
    return list(by_topic.items())


def _flattened(topics: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[TopicPartition, ...]:
    flat: list[TopicPartition] = []
    for topic, partitions in topics:
        flat.extend(map(new_partition, zip(repeat(topic), partitions)))
    return tuple(flat)


def _encoded_lists(topics: TopicPartitionLists) -> list[bytes]:
    parts: list[bytes] = [b""]
    for topic, partitions in topics:
        parts.append(_string(topic))
        parts.append(struct.pack(f">{len(partitions) + 1}i", len(partitions), *partitions))
    parts[0] = _INT32.pack((len(parts) - 1) // 2)
    return parts


def _string(value: str) -> bytes:
    data = value.encode()
    return _INT16.pack(len(data)) + data


def _nullable_bytes(value: bytes | None) -> bytes:
    return _INT32.pack(-1) if value is None else _INT32.pack(len(value)) + value


def _head(data: bytes) -> tuple[int, tuple[str, ...], bytes | None, int]:
    """The version, the topics, the user data, and where the rest begins."""
    version = _version(data)
    count, at = _count(data, 2, min_element_size=2)
    topics = []
    for _ in range(count):
        topic, at = _string_at(data, at)
        topics.append(topic)
    user_data, at = _bytes_at(data, at)
    return version, tuple(topics), user_data, at


def _version(data: bytes) -> int:
    version: int = _INT16.unpack_from(data)[0]
    if version < 0:
        raise MalformedConsumerProtocol(f"version {version}")
    return min(version, LATEST_VERSION)


def _lists(data: bytes, at: int) -> tuple[list[tuple[str, tuple[int, ...]]], int]:
    """Topics with their partitions as they stand there, and where the rest begins."""
    count, at = _count(data, at, min_element_size=6)
    lists = []
    for _ in range(count):
        topic, at = _string_at(data, at)
        size, at = _count(data, at, min_element_size=4)
        lists.append((topic, struct.unpack_from(f">{size}i", data, at)))
        at += 4 * size
    return lists, at


def _count(data: bytes, at: int, *, min_element_size: int) -> tuple[int, int]:
    count: int = _INT32.unpack_from(data, at)[0]
    at += 4
    if count < 0 or count * min_element_size > len(data) - at:
        raise MalformedConsumerProtocol(f"an array of {count} elements in {len(data) - at} bytes")
    return count, at


def _string_at(data: bytes, at: int) -> tuple[str, int]:
    length = _INT16.unpack_from(data, at)[0]
    if length < 0:
        raise MalformedConsumerProtocol("a topic that is null")
    at += 2
    return _slice(data, at, length).decode(), at + length


def _bytes_at(data: bytes, at: int) -> tuple[bytes | None, int]:
    length = _INT32.unpack_from(data, at)[0]
    at += 4
    return (None, at) if length < 0 else (_slice(data, at, length), at + length)


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise MalformedConsumerProtocol(f"{length} bytes wanted at {at} of {len(data)}")
    return data[at : at + length]


_remembered_subscription = lru_cache(maxsize=4096)(_subscription)
_remembered_encoding = lru_cache(maxsize=1024)(_encoded)
_remembered_assignment = lru_cache(maxsize=4096)(_assignment)
