"""Compaction and retention of topics: what their settings say now. Kafka: LogCleaner, UnifiedLog#deleteOldSegments.

Each batch counts as a segment of its own that has been closed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kgctl.model.groups import TopicPartition
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import Services
from kgctl.storage.cleaning import Cleaning

COMPACT, DELETE = "compact", "delete"

log = logging.getLogger(__name__)


def policies(services: Services, topic: str) -> list[str]:
    """What a topic's ``cleanup.policy`` names."""
    return [*setting(services, topic, "cleanup.policy")]


def setting(services: Services, topic: str, name: str) -> Any:
    """One of a topic's settings as the controller sees it."""
    return services.settings.of_topic(topic, name, services.cluster.controller.node_id)


def compact(services: Services, topic: str, now_ms: int) -> int:
    """Compact each partition of a topic; how many records went. Raises `UnsupportedCompressionError`, `StorageError`."""
    lag_ms, delete_retention_ms = (setting(services, topic, f"{name}.ms") for name in ("min.compaction.lag", "delete.retention"))
    rest_ms = now_ms - lag_ms if lag_ms else None
    written = services.data.written_partitions(topic)
    bounds = {partition: services.data.uncleanable_offset(partition, rest_ms) for partition in written}
    return sum(
        services.data.clean(partition, Cleaning(now_ms, delete_retention_ms, bound)) for partition, bound in bounds.items()
    )


def expire(services: Services, topic: str, now_ms: int, retention: Mapping[str, int] | None = None) -> int:
    """Move the log starts of a topic behind what is too old or too much; by how many offsets. Raises `StorageError`.

    ``retention`` stands in for the topic's ``retention.ms`` and ``retention.bytes``; -1 is no bound.
    """
    most = {name: setting(services, topic, name) for name in ("retention.ms", "retention.bytes")} | dict(retention or {})
    oldest_ms = now_ms - most["retention.ms"] if most["retention.ms"] >= 0 else None
    most_bytes = most["retention.bytes"] if most["retention.bytes"] >= 0 else None
    written = services.data.written_partitions(topic)
    return sum(_expire(services, partition, oldest_ms, most_bytes) for partition in written)


def _expire(services: Services, partition: TopicPartition, oldest_ms: int | None, most_bytes: int | None) -> int:
    start, end = services.data.bounds(partition)
    wanted = services.data.expired_until(partition, oldest_ms, most_bytes)
    if wanted > start:
        services.data.delete_records(partition, min(wanted, end))
    return max(wanted - start, 0)


def expire_all(services: Services, now_ms: int, told: set[str]) -> None:
    """Expire every topic that has the policy for it; that a topic loses something is a warning, once it is ``told`` a note.

    ``__consumer_offsets`` is not among them: commits go by ``offsets.retention.minutes``.
    """
    for topic in list(services.catalog.topics):
        if topic != OFFSETS_TOPIC and DELETE in policies(services, topic) and (gone := expire(services, topic, now_ms)):
            bounds = [f"{name}={setting(services, topic, name)}" for name in ("retention.ms", "retention.bytes")]
            level = logging.INFO if topic in told else logging.WARNING
            told.add(topic)
            log.log(level, "topic %s: %d offsets are gone, as %s; -1 is no bound", topic, gone, " and ".join(bounds))
