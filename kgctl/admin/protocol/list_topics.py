"""Metadata: which topics there are, and how many partitions each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.wire.cluster import Cluster
from kgctl.wire.deadline import Deadline


def list_topics(cluster: Cluster, topics: Sequence[str] | None, deadline: Deadline) -> Mapping[str, int]:
    """Topic -> number of partitions, sorted; None asks for all. Topics that do not exist, or may not be seen, are left out."""
    if topics is not None and not topics:
        return {}
    found = cluster.layout(None if topics is None else sorted(set(topics)), deadline).topics
    return {name: len(found[name].leaders) for name in sorted(found) if not found[name].error_code}
