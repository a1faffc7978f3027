"""The cycle that removes offsets whose retention is over, and groups of which nothing is left.

Kafka: OffsetMetadataManager#cleanupExpiredOffsets and GroupMetadataManager#maybeDeleteGroup.
"""

from __future__ import annotations

from kgctl.coordinator.group import Group
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer, TimerKey, TimerKind
from kgctl.model.groups import GroupType
from kgctl.model.partitions import TopicPartition
from kgctl.model.records import OffsetCommitKey, OffsetCommitValue

_TIMER = TimerKey(TimerKind.EXPIRE_OFFSETS)


def start_expiry_cycle(shard: Shard) -> None:
    """Run the cycle one period from now, and then each period."""
    shard.arm(_TIMER, shard.config.offsets_retention_check_interval_ms)


def on_expiry_timer(shard: Shard, _timer: Timer) -> None:
    """Visit every group but the share groups, whose state is no offsets of this kind."""
    for group in shard.groups.java_values():
        if group.type is not GroupType.SHARE:
            _expire(shard, group)
    start_expiry_cycle(shard)


def _expire(shard: Shard, group: Group) -> None:
    """Topics that somebody subscribes to cost nothing, however many offsets they have."""
    topics = shard.offsets.topics(group.group_id)
    unused = [topic for topic in topics if not group.is_subscribed_to(topic)]
    offsets = [offset for topic in unused for offset in shard.offsets.of_topic(group.group_id, topic)]
    expired = [partition for partition, value in offsets if _is_expired(shard, group, partition, value)]
    for topic, number in expired:
        shard.append(OffsetCommitKey(group.group_id, topic, number), None)
    is_all = len(unused) == len(topics) and len(expired) == len(offsets)
    if is_all and group.is_empty and not shard.offsets.has_open_transactions(group.group_id):
        shard.delete_group(group)


def _is_expired(shard: Shard, group: Group, partition: TopicPartition, value: OffsetCommitValue) -> bool:
    """Of a topic that nobody in the group subscribes to."""
    base_ms = group.expiry_base_ms(value)
    if base_ms is None:
        return False
    if shard.offsets.is_pending(group.group_id, *partition):
        return False
    if value.expire_timestamp_ms != -1:
        return shard.now_ms >= value.expire_timestamp_ms
    return shard.now_ms - base_ms >= shard.config.offsets_retention_ms
