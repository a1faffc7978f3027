"""Topics and partitions, and the image of them that the coordinator works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kgctl.model.values import frozen_in_order

ZERO_UUID = UUID(int=0)


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as the coordinator sees it.

    ``partition_racks`` has one entry a partition, the racks of its replicas, or is empty where no racks are known.
    """

    name: str
    topic_id: UUID
    partition_count: int
    partition_racks: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All topics at one moment. ``version`` grows with every change."""

    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    version: int = 0


NO_OFFSET = -1
NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset, as a client commits or fetches it. ``leader_epoch`` is -1 where unknown."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The bounds of a partition's log in records; None where unknown."""

    log_start_offset: int | None = None
    log_end_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One row of ``describe group``. Unknown is None, never a guess.

    ``lag`` is ``log_end_offset - current_offset`` in records, not clamped: a commit past the end of the log shows as a negative
    lag, as Kafka's own tool has it.
    """

    partition: TopicPartition
    current_offset: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    lag: int | None
    leader_epoch: int | None = None
    metadata: str | None = None


NO_GENERATION = -1


@frozen_in_order
class ConsumerSubscription:
    """ConsumerProtocolSubscription, version 0-3. What a version cannot carry has its default.

    ``generation_id`` is -1 for none, ``rack_id`` None for none. Topics and owned partitions stand in the order of the wire.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    version: int = 3


@frozen_in_order
class ConsumerAssignment:
    """ConsumerProtocolAssignment: one member's partitions, in the order of the wire."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
    version: int = 3
