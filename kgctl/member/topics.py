"""What a member knows of the topics: as old as its last metadata refresh (``metadata.max.age.ms``)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgctl.member.api import NetworkError, RefreshMetadata
from kgctl.member.connection import Connection
from kgctl.member.runtime import Runtime
from kgctl.model.partitions import MetadataImage, TopicPartition

METADATA = "metadata"
Snapshot = tuple[tuple[str, int, tuple[tuple[str, ...], ...]], ...]
"""(topic, partitions, racks) of the topics that were looked at."""


class Topics:
    """The member's copy of the metadata, and which topics it subscribes to."""

    def __init__(self, runtime: Runtime, connection: Connection) -> None:
        self.image: MetadataImage | None = None
        self.subscription: tuple[str, ...] = tuple(dict.fromkeys(runtime.identity.topics))
        self._runtime = runtime
        self._connection = connection
        self._request: int | None = None
        pattern = runtime.identity.pattern
        self._pattern = None if pattern is None else re.compile(pattern)

    @property
    def is_ready(self) -> bool:
        """Whether the subscription is known: with a pattern, only once the topics are."""
        return self._pattern is None or self.image is not None

    def refresh(self) -> None:
        """Ask for the topics now, unless that is under way."""
        self._runtime.deadlines.cancel(METADATA)
        if self._request is None:
            self._request = self._connection.ask(RefreshMetadata, self._on_failure)

    def take(self, image: MetadataImage) -> None:
        """The topics as they are now; patterns are matched against their names."""
        if self._request is not None and self._connection.expects(self._request):
            self._connection.finish(self._request)
        self._request = None
        self.image = image
        if self._pattern is not None:
            self.subscription = tuple(sorted(name for name in image.topics if self._pattern.fullmatch(name)))
        self._runtime.arm_in(METADATA, self._runtime.config.metadata_max_age_ms * 1000)

    def snapshot(self, names: Iterable[str]) -> Snapshot:
        """What is known of these topics, to compare with what was known before."""
        topics = {} if self.image is None else self.image.topics
        found = ((name, topics[name]) for name in sorted(set(names)) if name in topics)
        return tuple((name, topic.partition_count, topic.partition_racks) for name, topic in found)

    def has_all(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the metadata has all of these partitions."""
        topics = {} if self.image is None else self.image.topics
        counts = {name: topic.partition_count for name, topic in topics.items()}
        return all(partition.partition < counts.get(partition.topic, 0) for partition in partitions)

    def skip_refreshes(self, until_us: int) -> int:
        """Take the refreshes that are due before this as done, with nothing new: how many."""
        due_us = self._runtime.deadlines.at(METADATA)
        age_us = max(self._runtime.config.metadata_max_age_ms * 1000, 1)
        if due_us is None or due_us >= until_us:
            return 0
        count = (until_us - due_us + age_us - 1) // age_us
        self._runtime.deadlines.arm(METADATA, due_us + count * age_us)
        return count

    def _on_failure(self, _: NetworkError) -> None:
        self._request = None
        self._runtime.arm_in(METADATA, self._runtime.config.retry_backoff_ms * 1000)
