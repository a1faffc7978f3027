"""Owned partitions as bytes: the user data of sticky members, read without an object for each partition.

The format is that of the arrays in Kafka's ConsumerProtocol messages. Members of a large group mostly have one partition of each
topic, which is looked for, as it can be read in bulk.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import StickyClaim
from kgctl.model.groups import NO_GENERATION
from kgctl.model.values import frozen_in_order

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")


@frozen_in_order
class EncodedPartitions:
    """Owned partitions as they came over the wire: names in UTF-8, and for each a partition (or a tuple of them).

    ``is_single``: every topic has one partition, and ``partitions`` are numbers.
    """

    names: Sequence[bytes]
    partitions: Sequence[int | tuple[int, ...]]
    is_single: bool

    def by_topic(self) -> dict[str, list[int]]:
        """Return the partitions by topic name; a topic that stands twice has all its partitions."""
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


NOTHING_OWNED = EncodedPartitions((), (), is_single=True)


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
    return StickyClaim(owned, _INT32.unpack_from(data, end)[0])


def encode_sticky(owned: Mapping[str, Sequence[int]], generation: int | None) -> bytes:
    """The user data of a member of the sticky assignor; without ``generation`` the old form (v0)."""
    parts = [_INT32.pack(len(owned))]
    for topic, partitions in owned.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions))
    if generation is not None:
        parts.append(_INT32.pack(generation))
    return b"".join(parts)


def decode_cooperative(data: bytes | StickyClaim | None) -> int | None:
    """The generation in a cooperative-sticky member's user data: None without any, -1 if it cannot be read."""
    if data is None:
        return None
    if isinstance(data, StickyClaim):
        return data.generation
    return int(_INT32.unpack_from(data)[0]) if len(data) >= 4 else NO_GENERATION


def encode_cooperative(generation: int) -> bytes:
    """Return the user data of a cooperative-sticky member: its generation."""
    return _INT32.pack(generation)
