"""What is kept of a share group's progress, a topic's partition at a time (KIP-932)."""

from __future__ import annotations

import re
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


@frozen_in_order
class ShareSnapshot:
    """All that is kept of a share partition, as a record and in memory. Kafka: ShareSnapshotValue, ShareGroupOffset.

    ``create_timestamp_ms`` is that of the state, ``write_timestamp_ms`` that of this record of it.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = NO_DELIVERY_COMPLETE_COUNT
    batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0


@frozen_in_order
class ShareUpdate:
    """What changed since the last snapshot or update; ``start_offset`` -1: not that. Kafka: ShareUpdateValue."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = NO_DELIVERY_COMPLETE_COUNT
    batches: tuple[StateBatch, ...] = ()


@frozen_in_order
class ShareStateRecord:
    """A record of ``__share_group_state``. Without value the tombstone of all that there is of the partition."""

    key: SharePartitionKey
    value: ShareSnapshot | ShareUpdate | None = None


READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
"""What ``share.isolation.level`` may say."""
FROM_EARLIEST, FROM_LATEST = "earliest", "latest"
"""What ``share.auto.offset.reset`` may say, beside ``by_duration:``. Kafka: ShareGroupAutoOffsetResetStrategy."""
_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<D>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<H>[-+]?\d+)H)?(?:(?P<M>[-+]?\d+)M)?(?:(?P<S>[-+]?\d+)(?:[.,](?P<fraction>\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
"""As Java's Duration.parse reads ISO 8601."""
_SECONDS = {"D": 86_400, "H": 3_600, "M": 60, "S": 1}


def is_reset(text: str) -> bool:
    """Whether the setting may say this."""
    try:
        return text in (FROM_EARLIEST, FROM_LATEST) or reset_age_ms(text) >= 0
    except ValueError:
        return False


def reset_age_ms(text: str) -> int:
    """How old the first records are to be, of ``by_duration:PnDTnHnMn.nS``. Raises `ValueError`."""
    found = _DURATION.fullmatch(text.removeprefix(_BY_DURATION)) if text.startswith(_BY_DURATION) else None
    if found is None or found["time"] in ("T", "t") or not any(found[unit] for unit in _SECONDS):
        raise ValueError(text)
    nanos = sum(int(found[unit] or 0) * seconds for unit, seconds in _SECONDS.items()) * 10**9
    fraction = int((found["fraction"] or "").ljust(9, "0"))
    nanos += -fraction if (found["S"] or "").startswith("-") else fraction
    nanos = -nanos if found["sign"] == "-" else nanos
    if nanos < 0:
        raise ValueError(text)
    return nanos // 10**6
