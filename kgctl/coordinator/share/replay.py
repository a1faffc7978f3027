"""What a record of a share group changes. Kafka: GroupMetadataManager#replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kgctl.assignors.spec import Target
from kgctl.coordinator.modern.member import LEAVE_EPOCH, NO_TARGET, MemberState, topic_order
from kgctl.coordinator.modern.replay import GroupRecords, apply_target_metadata, target_applier
from kgctl.coordinator.share.group import ShareGroup
from kgctl.model.share_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    TopicPartitions,
)
from kgctl.model.values import copied_set_order, hash_map_order, integer_hash, uuid_hash


def _in_java_order(topics: TopicPartitions) -> dict[Any, tuple[int, ...]]:
    target = dict(topics)
    order = hash_map_order(target, hash_of=uuid_hash)
    return {topic_id: tuple(copied_set_order(target[topic_id], hash_of=integer_hash)) for topic_id in order}


def _recorded_target(value: ShareGroupTargetAssignmentMemberValue) -> Target:
    return _in_java_order(value.topic_partitions)


def _apply_group(group: ShareGroup, _: ShareGroupMetadataKey, value: ShareGroupMetadataValue) -> None:
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _apply_member(group: ShareGroup, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
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


def _apply_assignment(
    group: ShareGroup, key: ShareGroupCurrentMemberAssignmentKey, value: ShareGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is not None:
        member = replace(
            group.get_or_create(key.member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of_record(value.state),
            assigned=_in_java_order(value.assigned_partitions),
        )
        group.update_member(member)
    elif key.member_id in group.members:
        # It goes in a moment, with its other records.
        left = {"member_epoch": LEAVE_EPOCH, "previous_member_epoch": LEAVE_EPOCH, "assigned": NO_TARGET}
        group.update_member(replace(group.members[key.member_id], **left))  # type: ignore[arg-type]


SHARE_RECORDS = GroupRecords(
    ShareGroup,
    ShareGroupMetadataKey,
    {
        ShareGroupMetadataKey: _apply_group,
        ShareGroupMemberMetadataKey: _apply_member,
        ShareGroupTargetAssignmentMetadataKey: apply_target_metadata,
        ShareGroupTargetAssignmentMemberKey: target_applier(_recorded_target),
        ShareGroupCurrentMemberAssignmentKey: _apply_assignment,
    },
)
"""All but what is kept of a group's partitions, which is not the group's own (`Shard.share_partitions`)."""
