"""What a group's leader does between JoinGroup and SyncGroup: the members' bytes in, the assignments' bytes out.

Read and written in bulk, so that a measurement of a large group is one of the assignor. Kafka:
``ConsumerCoordinator#onLeaderElected``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.assignors.partition_space import PartitionSpace
from kgctl.assignors.spec import Assignor, GroupAssignment, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.wire_form import NOTHING_OWNED, EncodedPartitions, read_partitions
from kgctl.model.groups import NO_GENERATION

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ONE = _INT32.pack(1)


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member of the JoinGroup response; ``metadata`` is its ConsumerProtocolSubscription."""

    member_id: str
    metadata: bytes
    instance_id: str | None = None


def lead(
    assignor: Assignor,
    topics: Mapping[str, TopicSpec],
    members: Sequence[JoinedMember],
    max_generation: int = NO_GENERATION,
) -> tuple[dict[str, bytes], int]:
    """Each member's ConsumerProtocolAssignment, and the highest generation seen, which the leader gives to the next call.

    ``assignor`` must be one of kgctl's client assignors, whose answers are lists of numbers.

    Raises:
        ValueError: a member's metadata are no subscription. AssignorError: Kafka's assignor throws for this group.
    """
    reader = SubscriptionReader()
    specs = []
    for member in members:
        said = reader.read(member.metadata)
        specs.append(
            MemberSpec(
                member.member_id,
                said.topics,
                said.owned,
                generation=max(said.generation, NO_GENERATION),
                rack=said.rack or None,
                instance_id=member.instance_id,
                user_data=said.user_data,
            )
        )
    assignment = assignor.assign(GroupSpec(topics, specs, max_generation))
    assert isinstance(assignment, GroupAssignment)
    writer = AssignmentWriter(assignment.space)
    highest = getattr(assignment, "max_generation", max_generation)
    return {member_id: writer.write(assignment.ordered_ids(member_id)) for member_id in assignment}, highest


@dataclass(frozen=True, slots=True)
class WireSubscription:
    """What a member said. What its version cannot carry has the default."""

    topics: tuple[str, ...]
    user_data: bytes | None
    owned: EncodedPartitions
    generation: int
    rack: str | None


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
