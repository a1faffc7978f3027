"""The embedded consumer protocol as values: what a member says when it joins, and what the leader answers for it."""

from __future__ import annotations

from kgctl.model.frozen import frozen_in_order
from kgctl.model.partitions import TopicPartition

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
