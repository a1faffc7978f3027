"""The records of a share group: how each is made from the state. Kafka: GroupCoordinatorRecordHelpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.assignors.spec import Target
from kgctl.coordinator.modern.member import java_string_order
from kgctl.model.coordinator_records import CoordinatorRecord, RecordKey
from kgctl.model.share_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)

if TYPE_CHECKING:
    from kgctl.coordinator.share.group import ShareMember


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Type 10: the member's subscription."""
    names = tuple(sorted(member.topic_set, key=java_string_order))
    value = ShareGroupMemberMetadataValue(member.rack_id, member.client_id, member.client_host, names)
    return CoordinatorRecord(ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(group_id: str, group_epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Type 11: the group epoch and the hash of the topics it was made for."""
    return CoordinatorRecord(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(group_epoch, metadata_hash))


def target_metadata_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Type 12: the epoch and the time of the target assignment."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch, timestamp_ms)
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    """Type 13: the partitions that the member should read."""
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions(target))
    return CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)


def current_assignment_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Type 14: what a member reads, and its epochs."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member.member_epoch, member.previous_member_epoch, int(member.state), topic_partitions(member.assigned)
    )
    return CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def topic_partitions(target: Target) -> TopicPartitions:
    """Partitions as a record or an answer has them."""
    return tuple((topic_id, tuple(numbers)) for topic_id, numbers in target.items())


def member_tombstone_keys(group_id: str, member_id: str) -> list[RecordKey]:
    """A member is gone: what it reads, its target, its subscription."""
    return [
        ShareGroupCurrentMemberAssignmentKey(group_id, member_id),
        ShareGroupTargetAssignmentMemberKey(group_id, member_id),
        ShareGroupMemberMetadataKey(group_id, member_id),
    ]


def group_tombstone_keys(group_id: str, member_ids: Sequence[str]) -> list[RecordKey]:
    """The keys of all records of a group with these members, in Kafka's order."""
    keys: list[RecordKey] = [ShareGroupCurrentMemberAssignmentKey(group_id, member_id) for member_id in member_ids]
    keys += [ShareGroupTargetAssignmentMemberKey(group_id, member_id) for member_id in member_ids]
    keys.append(ShareGroupTargetAssignmentMetadataKey(group_id))
    keys += [ShareGroupMemberMetadataKey(group_id, member_id) for member_id in member_ids]
    keys += [ShareGroupStatePartitionMetadataKey(group_id), ShareGroupMetadataKey(group_id)]
    return keys
