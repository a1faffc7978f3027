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
    offsets = list(shard.offsets.of_group(group.group_id))
    expired = [partition for partition, value in offsets if _is_expired(shard, group, partition, value)]
    for topic, number in expired:
        shard.append(OffsetCommitKey(group.group_id, topic, number), None)
    if len(expired) == len(offsets) and group.is_empty and not shard.offsets.has_open_transactions(group.group_id):
        shard.delete_group(group)


def _is_expired(shard: Shard, group: Group, partition: TopicPartition, value: OffsetCommitValue) -> bool:
    base_ms = group.expiry_base_ms(value)
    if base_ms is None or group.is_subscribed_to(partition.topic):
        return False
    if shard.offsets.is_pending(group.group_id, *partition):
        return False
    if value.expire_timestamp_ms != -1:
        return shard.now_ms >= value.expire_timestamp_ms
    return shard.now_ms - base_ms >= shard.config.offsets_retention_ms
