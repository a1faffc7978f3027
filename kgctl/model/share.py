"""What is kept of a share group's progress, a topic's partition at a time (KIP-932)."""

from __future__ import annotations

from enum import IntEnum
from uuid import UUID

from kgctl.model.values import frozen_in_order, integer_hash, objects_hash, quick_enum, string_hash, uuid_hash

NO_START_OFFSET = -1
"""The group has not begun to read the partition (Kafka: UNINITIALIZED_START_OFFSET); in a write, that it stays where it is."""
NO_DELIVERY_COMPLETE_COUNT = -1
"""Unknown how many records past the start offset are done (Kafka: UNINITIALIZED_DELIVERY_COMPLETE_COUNT)."""
ANY_EPOCH = -1
"""In a request: compare no epoch."""


@frozen_in_order
class SharePartitionKey:
    """A partition as one share group reads it. Kafka: SharePartitionKey."""

    group_id: str
    topic_id: UUID
    partition: int


def share_partition_hash(key: SharePartitionKey) -> int:
    """``SharePartitionKey.hashCode``, whose topic has an id and no name."""
    topic_partition = objects_hash(integer_hash(key.partition), 0)
    return objects_hash(string_hash(key.group_id), objects_hash(uuid_hash(key.topic_id), topic_partition))


@quick_enum
class DeliveryState(IntEnum):
    """What became of records in flight. Kafka: RecordState."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


@frozen_in_order
class StateBatch:
    """Offsets, first to last, that stand alike: in one `DeliveryState`, delivered so many times. Kafka: PersisterStateBatch."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@frozen_in_order
class PartitionState:
    """What is kept of one share partition, or asked to be: a read of it leaves out what it does not tell.

    ``batches`` are sorted, do not overlap and begin at ``start_offset`` at the earliest.
    """

    state_epoch: int = 0
    start_offset: int = NO_START_OFFSET
    delivery_complete_count: int = NO_DELIVERY_COMPLETE_COUNT
    batches: tuple[StateBatch, ...] = ()
    leader_epoch: int = 0
