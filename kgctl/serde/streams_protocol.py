"""What Kafka Streams puts into the user data of a classic group's subscriptions and assignments: version 11, since Kafka 3.3.

Kafka: SubscriptionInfoData.json, AssignmentInfo, ConsumerProtocolUtils; without named topologies, endpoints and client tags.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from uuid import UUID

from kgctl.model.values import frozen_in_order

VERSION = 11
NO_REBALANCE_MS = 2**63 - 1
Task = tuple[int, int]
"""(subtopology, partition)"""


@frozen_in_order
class AssignmentInfo:
    """What a member is told beside its partitions: the task of each of them, in their order; the copies that it keeps, with their
    partitions; when it is to join again (0: at once, `NO_REBALANCE_MS`: not).
    """

    active: tuple[Task, ...] = ()
    standby: tuple[tuple[Task, Sequence[tuple[str, int]]], ...] = ()
    next_rebalance_ms: int = NO_REBALANCE_MS


def encode_subscription_info(process_id: UUID, offset_sums: Iterable[tuple[Task, int]], unique: int) -> bytes:
    """Return the user data of a subscription.

    ``offset_sums``: (task, how far its state is here); ``unique``: a number that makes the bytes different from the last.
    """
    sums = [struct.pack(">iiqh", *task, offset, -1) for task, offset in sorted(offset_sums)]
    head = struct.pack(">ii", VERSION, VERSION) + process_id.bytes + struct.pack(">ii", 0, len(sums))
    return head + b"".join(sums) + struct.pack(">bii", (unique + 128) % 256 - 128, 0, 0)


def decode_subscription_info(data: bytes) -> tuple[UUID, dict[Task, int]]:
    """Return the instance's id and its offset sums. Raises ValueError for anything but what `encode_subscription_info` writes."""
    try:
        version, _ = struct.unpack_from(">ii", data)
        length, count = struct.unpack_from(">ii", data, 24)
        rows = [struct.unpack_from(">iiqh", data, 32 + 18 * number) for number in range(count)]
    except struct.error as error:
        raise ValueError(f"the subscription of a Kafka Streams member cannot be read: {error}") from None
    if version != VERSION or length:
        raise ValueError(f"the subscription of a Kafka Streams member has version {version}; {VERSION} is known")
    return UUID(bytes=data[8:24]), {(subtopology, partition): offset for subtopology, partition, offset, _ in rows}


def encode_assignment_info(info: AssignmentInfo) -> bytes:
    """Return the user data of an assignment."""
    standby = b"".join(_task(task) + _partitions(partitions) for task, partitions in info.standby)
    active = struct.pack(">i", len(info.active)) + b"".join(map(_task, info.active))
    hosts = struct.pack(">iii", 0, 0, 0)
    tail = struct.pack(">iq", 0, info.next_rebalance_ms)
    return struct.pack(">ii", VERSION, VERSION) + active + struct.pack(">i", len(info.standby)) + standby + hosts + tail


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """Return what `encode_assignment_info` has written."""
    at, standby = 12, []
    active = [struct.unpack_from(">iii", data, at + 12 * number) for number in range(struct.unpack_from(">i", data, 8)[0])]
    at += 12 * len(active)
    count = struct.unpack_from(">i", data, at)[0]
    at += 4
    for _ in range(count):
        subtopology, partition, _, size = struct.unpack_from(">iiii", data, at)
        at += 16
        partitions = []
        for _ in range(size):
            length = struct.unpack_from(">H", data, at)[0]
            topic = data[at + 2 : at + 2 + length].decode()
            partitions.append((topic, struct.unpack_from(">i", data, at + 2 + length)[0]))
            at += 6 + length
        standby.append(((subtopology, partition), tuple(partitions)))
    tasks = tuple((subtopology, partition) for subtopology, partition, _ in active)
    return AssignmentInfo(tasks, tuple(standby), struct.unpack_from(">q", data, at + 16)[0])


def _task(task: Task) -> bytes:
    return struct.pack(">iii", *task, 0)


def _partitions(partitions: Iterable[tuple[str, int]]) -> bytes:
    found = [(topic.encode(), number) for topic, number in partitions]
    packed = (struct.pack(">H", len(topic)) + topic + struct.pack(">i", number) for topic, number in found)
    return struct.pack(">i", len(found)) + b"".join(packed)
