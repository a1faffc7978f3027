"""A record of a topic, as clients see it."""

from __future__ import annotations

from typing import NamedTuple


class TopicRecord(NamedTuple):
    """One record of a topic. ``timestamp_ms``: milliseconds since 1970; ``value`` None: a tombstone; headers in their order."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    @property
    def text(self) -> str:
        """The value as UTF-8; "" for a tombstone."""
        return (self.value or b"").decode()
