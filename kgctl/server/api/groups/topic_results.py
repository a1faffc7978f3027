"""Partition results put back under their topics, in the order in which Kafka's response builders have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition


class TopicErrors:
    """Collects (topic, partition, error); a topic stands where it first appeared."""

    def __init__(self) -> None:
        self._topics: dict[tuple[str, UUID | None], list[dict[str, Any]]] = {}

    def add(self, topic: str, topic_id: UUID | None, partition: int, error: ErrorCode) -> None:
        """One partition's outcome."""
        entry = {"partition_index": partition, "error_code": error}
        self._topics.setdefault((topic, topic_id), []).append(entry)

    def merge(self, results: Iterable[tuple[TopicPartition, ErrorCode]], ids: dict[str, UUID | None]) -> None:
        """The coordinator's outcomes, after those that never reached it (Kafka: OffsetCommitResponse.Builder#merge)."""
        for partition, error in results:
            self.add(partition.topic, ids.get(partition.topic), partition.partition, error)

    def topics(self) -> list[dict[str, Any]]:
        """For the response."""
        return [
            {"name": name, "topic_id": topic_id, "partitions": partitions}
            for (name, topic_id), partitions in self._topics.items()
        ]
