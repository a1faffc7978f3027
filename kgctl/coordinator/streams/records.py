"""The records of a streams group: how each is made from the state. Kafka: StreamsCoordinatorRecordHelpers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.coordinator.modern.member import java_string_order
from kgctl.model.coordinator_records import CoordinatorRecord, RecordKey
from kgctl.model.streams_records import (
    AssignedTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    TaskIds,
)
from kgctl.model.streams_topology import StreamsTopology

if TYPE_CHECKING:
    from kgctl.coordinator.streams.member import Epochs, StreamsMember, StreamsTarget


def _in_order(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=java_string_order)


def member_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Type 19: what the member has told of itself."""
    value = StreamsGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topology_epoch,
        member.process_id,
        member.user_endpoint,
        tuple((key, member.client_tags[key]) for key in _in_order(member.client_tags)),
    )
    return CoordinatorRecord(StreamsGroupMemberMetadataKey(group_id, member.member_id), value)


def group_record(
    group_id: str, group_epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> CoordinatorRecord:
    """Type 17: the group epoch, and what it was made for."""
    pairs = tuple((key, configs[key]) for key in _in_order(configs))
    value = StreamsGroupMetadataValue(group_epoch, metadata_hash, validated_topology_epoch, pairs)
    return CoordinatorRecord(StreamsGroupMetadataKey(group_id), value)


def topology_record(group_id: str, topology: StreamsTopology) -> CoordinatorRecord:
    """Type 23: the topology, as the member has declared it."""
    return CoordinatorRecord(StreamsGroupTopologyKey(group_id), topology)


def target_metadata_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Type 20: the epoch and the time of the target assignment."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch, timestamp_ms)
    return CoordinatorRecord(StreamsGroupTargetAssignmentMetadataKey(group_id), value)


def target_record(group_id: str, member_id: str, target: StreamsTarget) -> CoordinatorRecord:
    """Type 21: the tasks that the member should have."""
    kinds = (tuple(TaskIds(key, tuple(sorted(kind[key]))) for key in _in_order(kind)) for kind in target)
    key = StreamsGroupTargetAssignmentMemberKey(group_id, member_id)
    return CoordinatorRecord(key, StreamsGroupTargetAssignmentMemberValue(*kinds))


def current_assignment_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """Type 22: the tasks that a member has and those that it has to give up, and its epochs."""
    value = StreamsGroupCurrentMemberAssignmentValue(
        member.member_epoch,
        member.previous_member_epoch,
        int(member.state),
        *(
            _assigned(kind, with_epochs=not place)
            for tasks in (member.assigned, member.pending_revocation)
            for place, kind in enumerate(tasks)
        ),
    )
    return CoordinatorRecord(StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), value)


def _assigned(tasks: Epochs, *, with_epochs: bool) -> tuple[AssignedTaskIds, ...]:
    found = []
    for key in _in_order(tasks):
        numbers, since = sorted(tasks[key]), tasks[key]
        found.append(AssignedTaskIds(key, tuple(numbers), tuple(since[number] for number in numbers) if with_epochs else ()))
    return tuple(found)


def member_tombstone_keys(group_id: str, member_id: str) -> list[RecordKey]:
    """A member is gone: what it has, its target, what it is."""
    return [
        StreamsGroupCurrentMemberAssignmentKey(group_id, member_id),
        StreamsGroupTargetAssignmentMemberKey(group_id, member_id),
        StreamsGroupMemberMetadataKey(group_id, member_id),
    ]


def group_tombstone_keys(group_id: str, member_ids: Sequence[str]) -> list[RecordKey]:
    """The keys of all records of a group with these members, in Kafka's order."""
    keys: list[RecordKey] = [StreamsGroupCurrentMemberAssignmentKey(group_id, member_id) for member_id in member_ids]
    keys += [StreamsGroupTargetAssignmentMemberKey(group_id, member_id) for member_id in member_ids]
    keys.append(StreamsGroupTargetAssignmentMetadataKey(group_id))
    keys += [StreamsGroupMemberMetadataKey(group_id, member_id) for member_id in member_ids]
    return [*keys, StreamsGroupMetadataKey(group_id), StreamsGroupTopologyKey(group_id)]
