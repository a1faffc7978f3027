"""Appended records as the cases write them: one function for each key class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
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
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OpaqueKey,
    TransactionMarker,
)
from tests.conformance.notation import START_MS, assigned, from_topic_ids, short, subscribed

Record = dict[str, Any]
Names = Mapping[UUID, str]

MEMBER_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}


def virtual(time_ms: int) -> int:
    """A time as the cases write it; -1 stays: none."""
    return time_ms if time_ms == -1 else time_ms - START_MS


def _group_metadata(value: GroupMetadataValue, _: Names) -> Record:
    consumer = value.protocol_type == "consumer"
    return {
        "protocol_type": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "state_timestamp": virtual(value.current_state_timestamp_ms),
        "members": [_group_member(member, consumer=consumer) for member in value.members],
    }


def _group_member(member: MemberMetadata, *, consumer: bool) -> Record:
    entry: Record = {
        "id": member.member_id,
        "instance": member.group_instance_id,
        "rebalance": member.rebalance_timeout_ms,
        "session": member.session_timeout_ms,
    }
    if consumer:
        entry["topics"] = subscribed(member.subscription)
        entry["assignment"] = assigned(member.assignment) if member.assignment else None
    return entry


def _offset(value: OffsetCommitValue, _: Names) -> Record:
    return {
        "offset": value.offset,
        "leader_epoch": value.leader_epoch,
        "metadata": short(value.metadata),
        "commit_timestamp": virtual(value.commit_timestamp_ms),
        "expire_timestamp": virtual(value.expire_timestamp_ms),
    }


def _epoch(value: ConsumerGroupMetadataValue, _: Names) -> Record:
    return {"epoch": value.epoch, "metadata_hash": str(value.metadata_hash)}


def classic_view(classic: ClassicMemberMetadata | None) -> Record | None:
    """What a classic member in a consumer group has besides."""
    if classic is None:
        return None
    return {"session": classic.session_timeout_ms, "protocols": [protocol.name for protocol in classic.supported_protocols]}


def _member(value: ConsumerGroupMemberMetadataValue, _: Names) -> Record:
    return {
        "instance": value.instance_id,
        "rack": value.rack_id,
        "rebalance": value.rebalance_timeout_ms,
        "assignor": value.server_assignor,
        "regex": value.subscribed_topic_regex,
        "topics": list(value.subscribed_topic_names),
        "classic": classic_view(value.classic_member_metadata),
    }


def _target_metadata(value: ConsumerGroupTargetAssignmentMetadataValue, _: Names) -> Record:
    timestamp = value.assignment_timestamp_ms
    return {"assignment_epoch": value.assignment_epoch, "assignment_timestamp": virtual(timestamp) if timestamp else 0}


def _target(value: ConsumerGroupTargetAssignmentMemberValue, names: Names) -> Record:
    return {"partitions": from_topic_ids(value.topic_partitions, names)}


def with_epochs(owned: Iterable[AssignedTopicPartitions], names: Names) -> dict[str, int]:
    """Partition -> the epoch at which it was assigned; 0 where no epochs are kept."""
    return {
        f"{names[entry.topic_id]}-{number}": epoch
        for entry in owned
        for number, epoch in zip(entry.partitions, entry.assignment_epochs or [0] * len(entry.partitions), strict=True)
    }


def _current(value: ConsumerGroupCurrentMemberAssignmentValue, names: Names) -> Record:
    return {
        "epoch": value.member_epoch,
        "previous_epoch": value.previous_member_epoch,
        "state": MEMBER_STATES[value.state],
        "assigned": with_epochs(value.assigned_partitions, names),
        "revoking": with_epochs(value.partitions_pending_revocation, names),
    }


def _regex(value: ConsumerGroupRegularExpressionValue, _: Names) -> Record:
    """Without the version, which counts images and is not compared."""
    return {"topics": list(value.topics), "timestamp": virtual(value.timestamp_ms)}


# Of share and streams groups the bytes are compared.
_RECORDS: dict[type, tuple[str, Callable[[Any, Names], Record]]] = {
    GroupMetadataKey: ("GroupMetadata", _group_metadata),
    OffsetCommitKey: ("OffsetCommit", _offset),
    ConsumerGroupMetadataKey: ("ConsumerGroupMetadata", _epoch),
    ConsumerGroupPartitionMetadataKey: ("ConsumerGroupPartitionMetadata", lambda _, __: {}),
    ConsumerGroupMemberMetadataKey: ("ConsumerGroupMemberMetadata", _member),
    ConsumerGroupTargetAssignmentMetadataKey: ("ConsumerGroupTargetAssignmentMetadata", _target_metadata),
    ConsumerGroupTargetAssignmentMemberKey: ("ConsumerGroupTargetAssignmentMember", _target),
    ConsumerGroupCurrentMemberAssignmentKey: ("ConsumerGroupCurrentMemberAssignment", _current),
    ConsumerGroupRegularExpressionKey: ("ConsumerGroupRegularExpression", _regex),
}


def record_of(appended: AppendRecord, names: Names) -> Record:
    """One record; ``names`` knows every topic id that there ever was."""
    if isinstance(appended.record, TransactionMarker):
        result = "commit" if appended.record.committed else "abort"
        return {"type": "marker", "result": result, "producer_id": appended.record.producer_id}
    key, value = appended.record.key, appended.record.value
    assert not isinstance(key, OpaqueKey)
    name, view = _RECORDS.get(type(key)) or (type(key).__name__.removesuffix("Key"), lambda _, __: {})
    entry: Record = {"type": name, "group": key.group}
    if isinstance(key, OffsetCommitKey):
        entry["partition"] = f"{key.topic}-{key.partition}"
    if hasattr(key, "member_id"):
        entry["member"] = key.member_id
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        entry["regex"] = key.regular_expression
    if appended.producer_id is not None:
        entry["producer_id"] = appended.producer_id
    entry["value"] = None if value is None else view(value, names)
    return entry
