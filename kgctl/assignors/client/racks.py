"""Racks of partitions as the client assignors see them (KIP-881)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgctl.assignors.spec import TopicSpec

Racks = frozenset[str]


def partition_racks(topic: TopicSpec) -> list[Racks]:
    """The racks of each partition's replicas; none where the topic has no racks."""
    if not topic.racks:
        return [frozenset()] * topic.partition_count
    known: dict[tuple[str, ...], Racks] = {}
    return [known.setdefault(racks, frozenset(racks)) for racks in topic.racks]


def use_racks(consumer_racks: Iterable[str], racks: Sequence[Racks]) -> bool:
    """Whether racks can make a difference.

    Some consumer sits in a rack that has a replica, and not every partition is in all of the racks. Kafka:
    ``AbstractPartitionAssignor#useRackAwareAssignment``.
    """
    wanted = frozenset(consumer_racks)
    distinct = set(racks)
    union = frozenset().union(*distinct)
    return not wanted.isdisjoint(union) and distinct != {union}
