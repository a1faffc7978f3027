"""The embedded consumer protocol: what consumers put into JoinGroup as metadata and their leader into SyncGroup as assignments.

An int16 version, then plain fields (Kafka: ConsumerProtocol, ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json).
Versions above 3 are read as 3 and bytes after the end are ignored, since newer versions may only append. Written by hand on
struct: a leader of a large group reads thousands of these in one go.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import repeat

from kgctl.model.groups import NO_GENERATION, ConsumerAssignment, ConsumerSubscription, TopicPartition

LATEST_VERSION = 3

TopicPartitionLists = Iterable[tuple[str, Sequence[int]]]

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_new_partition = partial(tuple.__new__, TopicPartition)
_SMALL = 1024
"""Bytes of no more than this many are remembered with what they say: the members of a group often send the same."""


class MalformedConsumerProtocol(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes are neither a subscription nor an assignment of the consumer protocol."""


def decode_subscription(data: bytes) -> ConsumerSubscription:
    """What a member says when it joins.

    ``version`` of the result is the one that was written, at most 3; a rack of "" is None and a negative generation is -1, as
    Kafka reads them. Raises MalformedConsumerProtocol.
    """
    return _remembered_subscription(data) if len(data) <= _SMALL else _subscription(data)


def _subscription(data: bytes) -> ConsumerSubscription:
    reader = _Reader(data)
    version = reader.version()
    topics = tuple(reader.strings())
    user_data = reader.nullable_bytes()
    owned = _flattened(reader.partitions()) if version >= 1 else ()
    generation_id = max(reader.int32(), NO_GENERATION) if version >= 2 else NO_GENERATION
    rack_id = reader.nullable_string() if version >= 3 else None
    return ConsumerSubscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation_id=generation_id,
        rack_id=rack_id or None,
        version=version,
    )


def decode_topics(data: bytes) -> tuple[str, ...]:
    """Only the subscribed topics: all that the coordinator itself looks at. Raises MalformedConsumerProtocol."""
    return decode_topics_and_user_data(data)[0]


def decode_topics_and_user_data(data: bytes) -> tuple[tuple[str, ...], bytes | None]:
    """What every version has. Raises MalformedConsumerProtocol."""
    reader = _Reader(data)
    reader.version()
    topics = tuple(reader.strings())
    return topics, reader.nullable_bytes()


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
        parts += _partition_lists(group_by_topic(subscription.owned_partitions))
    if version >= 2:
        parts.append(_INT32.pack(subscription.generation_id))
    if version >= 3:
        parts.append(b"\xff\xff" if subscription.rack_id is None else _string(subscription.rack_id))
    return b"".join(parts)


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """A member's partitions as its leader chose them. Raises MalformedConsumerProtocol."""
    return _remembered_assignment(data) if len(data) <= _SMALL else _assignment(data)


def _assignment(data: bytes) -> ConsumerAssignment:
    reader = _Reader(data)
    version = reader.version()
    partitions = _flattened(reader.partitions())
    return ConsumerAssignment(partitions=partitions, user_data=reader.nullable_bytes(), version=version)


def decode_assignment_by_topic(data: bytes) -> dict[str, tuple[int, ...]]:
    """Topic to partitions as they were written, without building one object a partition. Raises MalformedConsumerProtocol.

    Java: ConsumerProtocol#deserializeAssignment. A topic that stands there twice has the partitions of both.
    """
    reader = _Reader(data)
    reader.version()
    by_topic: dict[str, tuple[int, ...]] = {}
    for topic, partitions in reader.partitions():
        by_topic[topic] = by_topic.get(topic, ()) + partitions
    reader.nullable_bytes()
    return by_topic


def encode_assignment(assignment: ConsumerAssignment) -> bytes:
    """The bytes: topics in order of first appearance, partitions in the order given."""
    version = min(assignment.version, LATEST_VERSION)
    return encode_assignment_by_topic(group_by_topic(assignment.partitions), assignment.user_data, version)


def encode_assignment_by_topic(
    topics: TopicPartitionLists, user_data: bytes | None = None, version: int = LATEST_VERSION
) -> bytes:
    """The bytes of an assignment given topic by topic; the fast way for large ones."""
    return b"".join((_INT16.pack(version), *_partition_lists(topics), _nullable_bytes(user_data)))


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
        flat.extend(map(_new_partition, zip(repeat(topic), partitions)))
    return tuple(flat)


def _partition_lists(topics: TopicPartitionLists) -> list[bytes]:
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


class _Reader:
    """A position in the bytes; each method reads one thing and moves on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def version(self) -> int:
        version = self._length(_INT16)
        if version < 0:
            raise MalformedConsumerProtocol(f"version {version}")
        return min(version, LATEST_VERSION)

    def int32(self) -> int:
        return self._length(_INT32)

    def strings(self) -> Iterator[str]:
        for _ in range(self._array_length(min_element_size=2)):
            yield self._string()

    def nullable_string(self) -> str | None:
        length = self._length(_INT16)
        return None if length < 0 else self._text(length)

    def nullable_bytes(self) -> bytes | None:
        length = self._length(_INT32)
        return None if length < 0 else self._take(length)

    def partitions(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for _ in range(self._array_length(min_element_size=6)):
            topic = self._string()
            count = self._array_length(min_element_size=4)
            yield topic, struct.unpack(f">{count}i", self._take(4 * count))

    def _string(self) -> str:
        length = self._length(_INT16)
        if length < 0:
            raise MalformedConsumerProtocol("a topic that is null")
        return self._text(length)

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise MalformedConsumerProtocol("a string that is not UTF-8") from None

    def _array_length(self, *, min_element_size: int) -> int:
        length = self._length(_INT32)
        left = len(self._data) - self._position
        if length < 0 or length * min_element_size > left:
            raise MalformedConsumerProtocol(f"an array of {length} elements in {left} bytes")
        return length

    def _length(self, form: struct.Struct) -> int:
        try:
            number: int = form.unpack_from(self._data, self._position)[0]
        except struct.error:
            self._take(form.size)
            raise
        self._position += form.size
        return number

    def _take(self, size: int) -> bytes:
        start = self._position
        self._position = end = start + size
        if end > len(self._data):
            raise MalformedConsumerProtocol(f"{size} bytes wanted at {start} of {len(self._data)}")
        return self._data[start:end]


_remembered_subscription = lru_cache(maxsize=4096)(_subscription)
_remembered_encoding = lru_cache(maxsize=1024)(_encoded)
_remembered_assignment = lru_cache(maxsize=4096)(_assignment)
