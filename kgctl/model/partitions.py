"""Topics and partitions, and the image of them that the coordinator works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

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
