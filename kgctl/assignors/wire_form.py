"""Subscriptions and assignments as bytes, for a leader of large groups: read and written without an object for each partition.

The formats are ConsumerProtocolSubscription and ConsumerProtocolAssignment, an int16 version and then plain encoding. Members of
a large group mostly have the same topics, and one partition of each: both are looked for, as they can be read and written in
bulk.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import StickyClaim
from kgctl.model.groups import NO_GENERATION

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE = _INT32.pack(1)


@dataclass(frozen=True, slots=True)
class EncodedPartitions:
    """Owned partitions as they came over the wire: names in UTF-8, and for each a partition (or a tuple of them).

    ``is_single``: every topic has one partition, and ``partitions`` are numbers.
    """

    names: Sequence[bytes]
    partitions: Sequence[int | tuple[int, ...]]
    is_single: bool

    def by_topic(self) -> dict[str, list[int]]:
        """The same by name; a topic that stands twice has all its partitions."""
        found: dict[str, list[int]] = {}
        for name, partitions in zip(self.names, self.partitions, strict=True):
            numbers: tuple[int, ...] = (partitions,) if isinstance(partitions, int) else partitions
            found.setdefault(name.decode("utf-8", "replace"), []).extend(numbers)
        return found

    def numbers(self, space: PartitionSpace) -> Sequence[int] | None:
        """As numbers of the space; None where some partition is not in it, which needs a closer look."""
        offsets = space.offsets_by_bytes
        if not self.names:
            return ()
        if any(name not in offsets for name in self.names):
            return None
        if self.is_single:
            partitions: Sequence[int] = self.partitions  # type: ignore[assignment]
            if min(partitions) < 0 or max(partitions) >= space.smallest_count:
                return None
            return [offsets[name] + partition for name, partition in zip(self.names, partitions, strict=True)]
        found: list[int] = []
        for name, several in zip(self.names, self.partitions, strict=True):
            assert isinstance(several, tuple)
            if several and (min(several) < 0 or max(several) >= space.smallest_count):
                return None
            offset = offsets[name]
            found.extend([offset + partition for partition in several])
        return found


@dataclass(frozen=True, slots=True)
class WireSubscription:
    """What a member said. What its version cannot carry has the default."""

    topics: tuple[str, ...]
    user_data: bytes | None
    owned: EncodedPartitions
    generation: int
    rack: str | None


NOTHING_OWNED = EncodedPartitions((), (), is_single=True)


class SubscriptionReader:
    """Reads the subscriptions of a group; topics that stand in the same bytes as those of the member before are read once."""

    def __init__(self) -> None:
        self._topics_bytes = b""
        self._topics: tuple[str, ...] = ()

    def read(self, data: bytes) -> WireSubscription:
        """A subscription.

        Raises:
            ValueError: the bytes are none.
        """
        try:
            return self._read(data)
        except struct.error as error:
            raise ValueError(f"a subscription of {len(data)} bytes is too short: {error}") from None

    def _read(self, data: bytes) -> WireSubscription:
        (version,) = _INT16.unpack_from(data)
        if version < 0:
            raise ValueError(f"a subscription has the version {version}")
        position = self._read_topics(data)
        (length,) = _INT32.unpack_from(data, position)
        position += 4
        user_data = None if length < 0 else data[position : position + length]
        position += max(length, 0)
        if position > len(data):
            raise ValueError("the user data of a subscription are too short")
        owned, generation, rack = NOTHING_OWNED, -1, None
        if version >= 1:
            owned, position = read_partitions(data, position)
        if version >= 2:
            (generation,) = _INT32.unpack_from(data, position)
            position += 4
        if version >= 3:
            (length,) = _INT16.unpack_from(data, position)
            rack = data[position + 2 : position + 2 + length].decode("utf-8", "replace") if length > 0 else None
        return WireSubscription(self._topics, user_data, owned, generation, rack)

    def _read_topics(self, data: bytes) -> int:
        end = 2 + len(self._topics_bytes)
        if self._topics_bytes and data[2:end] == self._topics_bytes:
            return end
        (count,) = _INT32.unpack_from(data, 2)
        position = 6
        names = []
        for _ in range(max(count, 0)):
            (length,) = _INT16.unpack_from(data, position)
            start = position + 2
            position = start + length
            if length < 0 or position > len(data):
                raise ValueError("a topic's name in a subscription is too short")
            names.append(data[start:position].decode("utf-8", "replace"))
        self._topics_bytes, self._topics = data[2:position], tuple(names)
        return position


def read_partitions(data: bytes, position: int) -> tuple[EncodedPartitions, int]:
    """An array of (topic, partitions) and where it ends.

    Raises:
        ValueError, struct.error: the bytes are none.
    """
    (count,) = _INT32.unpack_from(data, position)
    position += 4
    if count <= 0:
        if count < 0:
            raise ValueError("an array is null")
        return NOTHING_OWNED, position
    (length,) = _INT16.unpack_from(data, position)
    size = length + 10
    if length >= 0 and position + count * size <= len(data):
        chunk = memoryview(data)[position : position + count * size]
        lengths, names, sizes, partitions = zip(*struct.iter_unpack(f">h{length}sii", chunk), strict=True)
        if lengths.count(length) == count and sizes.count(1) == count:
            return EncodedPartitions(names, partitions, is_single=True), position + count * size
    return _read_one_by_one(data, position, count)


def _read_one_by_one(data: bytes, position: int, count: int) -> tuple[EncodedPartitions, int]:
    if count > len(data) - position:
        raise ValueError(f"an array of {count} in {len(data)} bytes")
    names: list[bytes] = []
    partitions: list[tuple[int, ...]] = []
    for _ in range(count):
        length = int.from_bytes(data[position : position + 2], "big", signed=True)
        start = position + 2
        position = start + length
        if length < 0 or position + 4 > len(data):
            raise ValueError("a topic's name is too short")
        names.append(data[start:position])
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or size * 4 > len(data) - position:
            raise ValueError(f"{size} partitions in {len(data)} bytes")
        partitions.append(struct.unpack_from(f">{size}i", data, position))
        position += 4 * size
    return EncodedPartitions(names, partitions, is_single=False), position


class AssignmentWriter:
    """Writes the assignments of a group, version 3: topics as they first appear in a list, partitions in its order."""

    def __init__(self, space: PartitionSpace) -> None:
        self._space = space
        encoded = [name.encode("utf-8", "surrogatepass") for name in space.names]
        self._heads = [_INT16.pack(len(name)) + name for name in encoded]
        self._single_heads = [head + _ONE for head in self._heads]
        self._packed = [_INT32.pack(partition) for partition in range(max(space.counts, default=0))]

    def write(self, numbers: Sequence[int]) -> bytes:
        """Return the assignment's bytes for one member, without user data."""
        space = self._space
        if numbers and max(numbers) >= space.total:
            return self._write_named(numbers)
        topics = list(map(space.topic_of.__getitem__, numbers))
        distinct = len(set(topics))
        if distinct == len(topics):
            heads, packed, offsets = self._single_heads, self._packed, space.offsets
            parts = [heads[topic] + packed[number - offsets[topic]] for topic, number in zip(topics, numbers, strict=True)]
        else:
            groups: dict[int, list[int]] = {topic: [] for topic in topics}
            for topic, number in zip(topics, numbers, strict=True):
                groups[topic].append(number - space.offsets[topic])
            parts = [self._heads[topic] + _array(partitions) for topic, partitions in groups.items()]
        return _assignment(distinct, parts)

    def _write_named(self, numbers: Sequence[int]) -> bytes:
        groups: dict[int, list[int]] = {}
        for number in numbers:
            groups.setdefault(self._space.topic(number), []).append(self._space.partition(number).partition)
        return _assignment(len(groups), [self._heads[topic] + _array(partitions) for topic, partitions in groups.items()])


def _assignment(topics: int, parts: Sequence[bytes]) -> bytes:
    return b"".join((_INT16.pack(3), _INT32.pack(topics), *parts, _INT32.pack(-1)))


def _array(partitions: Sequence[int]) -> bytes:
    return struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)


def encode_subscription(
    topics: Sequence[str],
    *,
    user_data: bytes | None = None,
    owned: Mapping[str, Sequence[int]] | None = None,
    generation: int = -1,
    rack: str | None = None,
) -> bytes:
    """A subscription of version 3, as the Java client writes it: names sorted by the caller."""
    parts = [_INT16.pack(3), _INT32.pack(len(topics))]
    parts += [_INT16.pack(len(name.encode())) + name.encode() for name in topics]
    parts += [_INT32.pack(-1)] if user_data is None else [_INT32.pack(len(user_data)), user_data]
    parts.append(_INT32.pack(len(owned or ())))
    for name, partitions in (owned or {}).items():
        parts += [
            _INT16.pack(len(name.encode())),
            name.encode(),
            struct.pack(f">i{len(partitions)}i", len(partitions), *partitions),
        ]
    parts.append(_INT32.pack(generation))
    parts.append(_INT16.pack(-1) if not rack else _INT16.pack(len(rack.encode())) + rack.encode())
    return b"".join(parts)


_GENERATION = struct.Struct(">i")


def decode_sticky(data: bytes | None) -> StickyClaim:
    """What the sticky assignor reads: partitions and generation, or partitions alone (v0); unreadable: nothing, generation -1.

    Kafka: ``StickyAssignor#memberData``.
    """
    if not data:
        return StickyClaim()
    try:
        owned, end = read_partitions(data, 0)
    except (struct.error, ValueError):
        return StickyClaim(generation=NO_GENERATION)
    if end + 4 > len(data):
        return StickyClaim(owned)
    return StickyClaim(owned, _GENERATION.unpack_from(data, end)[0])


def encode_sticky(owned: Mapping[str, Sequence[int]], generation: int | None) -> bytes:
    """The user data of a member of the sticky assignor; without ``generation`` the old form (v0)."""
    parts = [_GENERATION.pack(len(owned))]
    for topic, partitions in owned.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions))
    if generation is not None:
        parts.append(_GENERATION.pack(generation))
    return b"".join(parts)


def decode_cooperative(data: bytes | StickyClaim | None) -> int | None:
    """The generation in a cooperative-sticky member's user data: None without any, -1 if it cannot be read."""
    if data is None:
        return None
    if isinstance(data, StickyClaim):
        return data.generation
    return int(_GENERATION.unpack_from(data)[0]) if len(data) >= 4 else NO_GENERATION


def encode_cooperative(generation: int) -> bytes:
    """Return the user data of a cooperative-sticky member: its generation."""
    return _GENERATION.pack(generation)
