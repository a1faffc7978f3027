"""The records of a consumer-protocol group: how each is made from the state. Kafka: GroupCoordinatorRecordHelpers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgctl.assignors.spec import Target
from kgctl.coordinator.consumer.member import ConsumerMember, PartitionForm
from kgctl.coordinator.modern.member import java_string_order
from kgctl.model.coordinator_records import (
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
    RecordKey,
)
from kgctl.serde.partition_metadata import SubscribedTopic, encode_partition_metadata


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Return the record of type 5, the member's subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topic_set, key=java_string_order)),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(group_id: str, group_epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Type 3: the group epoch and the hash of the topics it was made for."""
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(group_epoch, metadata_hash))


def partition_metadata_record(group_id: str, topics: Sequence[SubscribedTopic]) -> CoordinatorRecord:
    """Type 4, before 4.1: the topics that the group epoch was made for."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id), encode_partition_metadata(topics))


def target_record(group_id: str, member_id: str, target: Target) -> CoordinatorRecord:
    """Return the record of type 7, the partitions that the member should own."""
    topics = tuple((topic_id, tuple(partitions)) for topic_id, partitions in target.items())
    key = ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    return CoordinatorRecord(key, ConsumerGroupTargetAssignmentMemberValue(topics))


def target_metadata_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Type 6: the epoch and the time of the target assignment."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch, timestamp_ms)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def current_assignment_record(group_id: str, member: ConsumerMember, form: PartitionForm) -> CoordinatorRecord:
    """Type 8: what a member owns and has to revoke, and its epochs."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=int(member.state),
        assigned_partitions=form.record_of(member.assigned),
        partitions_pending_revocation=form.record_of(member.pending_revocation),
    )
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def regex_record(group_id: str, regex: str, topics: Sequence[str], version: int, timestamp_ms: int) -> CoordinatorRecord:
    """Type 16: the topics that a regular expression stands for."""
    value = ConsumerGroupRegularExpressionValue(tuple(sorted(topics, key=java_string_order)), version, timestamp_ms)
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def tombstone(key: RecordKey) -> CoordinatorRecord:
    """Return the record that deletes what this key stands for."""
    return CoordinatorRecord(key, None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """A member is gone: what it owns, its target, its subscription, in the order in which replay wants them."""
    return [
        tombstone(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        tombstone(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        tombstone(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstone_keys(group_id: str, member_ids: Sequence[str], regexes: Iterable[str]) -> list[RecordKey]:
    """The keys of all records of a group with these members and resolved expressions, in Kafka's order."""
    keys: list[RecordKey] = [ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id) for member_id in member_ids]
    keys += [ConsumerGroupTargetAssignmentMemberKey(group_id, member_id) for member_id in member_ids]
    keys.append(ConsumerGroupTargetAssignmentMetadataKey(group_id))
    keys += [ConsumerGroupMemberMetadataKey(group_id, member_id) for member_id in member_ids]
    keys += [ConsumerGroupRegularExpressionKey(group_id, regex) for regex in regexes]
    keys += [ConsumerGroupPartitionMetadataKey(group_id), ConsumerGroupMetadataKey(group_id)]
    return keys
