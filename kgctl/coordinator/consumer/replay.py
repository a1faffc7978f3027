"""Records of a consumer-protocol group become its state. Kafka: GroupMetadataManager#replay.

A group exists from its first record on; a record for a simple classic group's id (one that only ever had commits) turns it into
a consumer group. Tombstones of what does not exist change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.consumer.group import ConsumerGroup, ResolvedRegex
from kgctl.coordinator.consumer.member import LEAVE_EPOCH, NOTHING, ConsumerMember, with_current_assignment, with_metadata
from kgctl.errors import InvariantViolation
from kgctl.model.groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CoordinatorRecord,
)
from kgctl.model.values import hash_map_order, uuid_hash

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard

_NO_ASSIGNMENT_EPOCH = -1


def _group(shard: Shard, group_id: str, *, create: bool) -> ConsumerGroup | None:
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if not create:
        return None
    if group is not None and group.listed_protocol_type:
        raise InvariantViolation(f"a consumer-group record for {group_id!r}, which is a {group.type} group", group=group_id)
    created = shard.groups[group_id] = ConsumerGroup(group_id)
    return created


def apply_to_group(group: ConsumerGroup, record: CoordinatorRecord) -> None:
    """Apply a record that is not the group's own tombstone to a group that may not be registered (yet)."""
    APPLIERS[type(record.key)](group, record.key, record.value)


def _apply_member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
        group.update_member(with_metadata(member, value))


def _apply_group(group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None) -> None:
    if value is not None:
        group.group_epoch = value.epoch
        group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(group: ConsumerGroup, _: ConsumerGroupPartitionMetadataKey, value: object) -> None:
    group.has_partition_metadata_record = value is not None


def _apply_target(
    group: ConsumerGroup, key: ConsumerGroupTargetAssignmentMemberKey, value: ConsumerGroupTargetAssignmentMemberValue | None
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        target = dict(value.topic_partitions)
        group.targets[key.member_id] = {topic_id: target[topic_id] for topic_id in hash_map_order(target, hash_of=uuid_hash)}


def _apply_target_metadata(
    group: ConsumerGroup, _: ConsumerGroupTargetAssignmentMetadataKey, value: ConsumerGroupTargetAssignmentMetadataValue | None
) -> None:
    group.assignment_epoch = _NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
    group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp_ms


def _apply_current_assignment(
    group: ConsumerGroup, key: ConsumerGroupCurrentMemberAssignmentKey, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.update_member(with_current_assignment(member or ConsumerMember(key.member_id), value))
    elif member is not None:
        # It goes in a moment, with its other records; what it owned is free from here on.
        left = replace(
            member,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NOTHING,
            pending_revocation=NOTHING,
        )
        group.update_member(left)


def _apply_regex(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    resolved = None if value is None else ResolvedRegex(value.topics, value.version, value.timestamp_ms)
    group.set_resolved_regex(key.regular_expression, resolved)


APPLIERS: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _apply_group,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_metadata,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current_assignment,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
"""Key class -> how a record of it changes a group."""


def replay(shard: Shard, key: Any, value: Any) -> None:
    """Apply a record to the group that its key names; the first one creates it, its own tombstone removes it."""
    group = _group(shard, key.group, create=value is not None)
    if group is None:
        return
    if value is None and type(key) is ConsumerGroupMetadataKey:
        del shard.groups[key.group]
        shard.story.forget(key.group)
    else:
        APPLIERS[type(key)](group, key, value)


REPLAYERS: dict[type, Callable[[Shard, Any, Any], None]] = dict.fromkeys(APPLIERS, replay)
