"""The cluster's topics have changed: which groups have to look at their subscriptions again.

Kafka: GroupMetadataManager#onMetadataUpdate.
"""

from __future__ import annotations

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.shard import Shard
from kgctl.model.partitions import MetadataImage


def on_topics_changed(shard: Shard, old: MetadataImage) -> None:
    """`Shard.image` is new; ``old`` is what it was. Nothing is written: a group's next heartbeat finds its hash to be due."""
    before, after = old.topics, shard.image.topics
    if any(name not in before or before[name].topic_id != topic.topic_id for name, topic in after.items()):
        shard.last_version_with_new_topics = shard.image.version
    changed = {name for name in (*before, *after) if before.get(name) != after.get(name)}
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup) and not changed.isdisjoint(group.topic_counts):
            group.metadata_deadline_ms = group.metadata_deadline_epoch = 0
