"""Groups that nobody coordinates: those on partitions of ``__consumer_offsets`` that have no leader. No broker lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kgctl.admin.results import ItemError
from kgctl.model.error_codes import ErrorCode
from kgctl.wire.cluster import ClusterLayout

OFFSETS_TOPIC = "__consumer_offsets"


def orphaned_groups(layout: ClusterLayout) -> Mapping[str, ItemError]:
    """Who is missing ("broker 2", or the topic where its replicas are all up) and what is not listed for want of it.

    Nothing where the topic is not there yet, or this user may not see it: then nobody can tell.
    """
    topic = layout.topics.get(OFFSETS_TOPIC)
    if topic is None:
        return {}
    missing: Counter[str] = Counter()
    for partition, leader in topic.leaders.items():
        if leader < 0:
            missing[_culprit(layout, topic.replicas.get(partition, ()))] += 1
    return {who: _error(who, count, len(topic.leaders)) for who, count in sorted(missing.items())}


def _culprit(layout: ClusterLayout, replicas: tuple[int, ...]) -> str:
    """The brokers that have the partition and are not in the cluster."""
    gone = [str(node_id) for node_id in sorted(replicas) if node_id not in layout.nodes]
    return f"broker{'s' if len(gone) > 1 else ''} {', '.join(gone)}" if gone else OFFSETS_TOPIC


def _error(who: str, count: int, total: int) -> ItemError:
    what = f"groups on {count} of {total} partitions of {OFFSETS_TOPIC} have no coordinator and are not listed"
    return ItemError(ErrorCode.COORDINATOR_NOT_AVAILABLE, what if who == OFFSETS_TOPIC else f"{who} down: {what}")
