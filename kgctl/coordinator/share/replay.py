"""What a record of a share group changes. Kafka: GroupMetadataManager#replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.modern.member import LEAVE_EPOCH, NO_TARGET, MemberState, topic_order
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.share.partitions import of_record
from kgctl.errors import InvariantViolation
from kgctl.model.share_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from kgctl.model.values import copied_set_order, hash_map_order, integer_hash, uuid_hash

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard

_NO_ASSIGNMENT_EPOCH = -1


def share_group(shard: Shard, group_id: str) -> ShareGroup:
    """Return the group; the first record of it makes it. Raises `InvariantViolation` where the name is another group's.

    One without members gives way: it was dropped from memory only (`Shard.forget_group`). Kafka cannot load such a log.
    """
    group = shard.groups.get(group_id)
    if group is None or not (isinstance(group, ShareGroup) or group.member_count):
        group = shard.groups[group_id] = ShareGroup(group_id, shard.config.profile)
    if not isinstance(group, ShareGroup):
        raise InvariantViolation(f"a share-group record for {group_id!r}, which is a {group.type} group", group=group_id)
    return group


def _in_java_order(topics: TopicPartitions) -> dict[Any, tuple[int, ...]]:
    target = dict(topics)
    order = hash_map_order(target, hash_of=uuid_hash)
    return {topic_id: tuple(copied_set_order(target[topic_id], hash_of=integer_hash)) for topic_id in order}


def _replay_group(shard: Shard, key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> None:
    if value is not None:
        group = share_group(shard, key.group)
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(shard.groups.get(key.group), ShareGroup):
        del shard.groups[key.group]
        shard.story.forget(key.group)


def _replay_member(shard: Shard, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None) -> None:
    if value is None:
        group = shard.groups.get(key.group)
        if isinstance(group, ShareGroup):
            group.remove_member(key.member_id)
        return
    group = share_group(shard, key.group)
    names = value.subscribed_topic_names
    group.update_member(
        replace(
            group.get_or_create(key.member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_set=frozenset(names),
            subscribed_topics=topic_order(names),
        )
    )


def _replay_target_metadata(
    shard: Shard, key: ShareGroupTargetAssignmentMetadataKey, value: ShareGroupTargetAssignmentMetadataValue | None
) -> None:
    group = shard.groups.get(key.group) if value is None else share_group(shard, key.group)
    if isinstance(group, ShareGroup):
        group.assignment_epoch = _NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp_ms


def _replay_target(
    shard: Shard, key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> None:
    if value is not None:
        share_group(shard, key.group).targets[key.member_id] = _in_java_order(value.topic_partitions)
        return
    group = shard.groups.get(key.group)
    if isinstance(group, ShareGroup):
        group.targets.pop(key.member_id, None)


def _replay_assignment(
    shard: Shard, key: ShareGroupCurrentMemberAssignmentKey, value: ShareGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is not None:
        group = share_group(shard, key.group)
        member = replace(
            group.get_or_create(key.member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of_record(value.state),
            assigned=_in_java_order(value.assigned_partitions),
        )
        group.update_member(member)
        return
    known = shard.groups.get(key.group)
    if isinstance(known, ShareGroup) and key.member_id in known.members:
        # It goes in a moment, with its other records.
        left = {"member_epoch": LEAVE_EPOCH, "previous_member_epoch": LEAVE_EPOCH, "assigned": NO_TARGET}
        known.update_member(replace(known.members[key.member_id], **left))  # type: ignore[arg-type]


def _replay_partitions(
    shard: Shard, key: ShareGroupStatePartitionMetadataKey, value: ShareGroupStatePartitionMetadataValue | None
) -> None:
    if value is None:
        shard.share_partitions.pop(key.group, None)
    else:
        share_group(shard, key.group)
        shard.share_partitions[key.group] = of_record(value, shard.now_ms)


SHARE_REPLAYERS: dict[type, Callable[[Shard, Any, Any], None]] = {
    ShareGroupMetadataKey: _replay_group,
    ShareGroupMemberMetadataKey: _replay_member,
    ShareGroupTargetAssignmentMetadataKey: _replay_target_metadata,
    ShareGroupTargetAssignmentMemberKey: _replay_target,
    ShareGroupCurrentMemberAssignmentKey: _replay_assignment,
    ShareGroupStatePartitionMetadataKey: _replay_partitions,
}
"""Key class -> what a record with such a key does. Tombstones of what does not exist change nothing."""
