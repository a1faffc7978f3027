"""What a record of a streams group changes. Kafka: GroupMetadataManager#replay."""

from __future__ import annotations

from kgctl.coordinator.modern.replay import GroupRecords, apply_target_metadata, target_applier
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMember, recorded_target, with_assignment, with_metadata
from kgctl.coordinator.streams.topology.known import known_topology
from kgctl.model.streams_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from kgctl.model.streams_topology import StreamsTopology


def _apply_group(group: StreamsGroup, _: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue) -> None:
    group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.last_assignment_configs = dict(value.last_assignment_configs)


def _apply_topology(group: StreamsGroup, _: StreamsGroupTopologyKey, value: StreamsTopology | None) -> None:
    group.topology = None if value is None else known_topology(value)


def _apply_member(group: StreamsGroup, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None) -> None:
    if value is None:
        group.remove_member(key.member_id)
    else:
        group.update_member(with_metadata(_member(group, key.member_id), value))


def _member(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id, has_metadata=False, has_assignment=False)


def _apply_assignment(
    group: StreamsGroup, key: StreamsGroupCurrentMemberAssignmentKey, value: StreamsGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is None:
        group.empty_member(key.member_id)
    else:
        group.update_member(with_assignment(_member(group, key.member_id), value))


STREAMS_RECORDS = GroupRecords(
    StreamsGroup,
    StreamsGroupMetadataKey,
    {
        StreamsGroupMetadataKey: _apply_group,
        StreamsGroupTopologyKey: _apply_topology,
        StreamsGroupMemberMetadataKey: _apply_member,
        StreamsGroupTargetAssignmentMetadataKey: apply_target_metadata,
        StreamsGroupTargetAssignmentMemberKey: target_applier(recorded_target),
        StreamsGroupCurrentMemberAssignmentKey: _apply_assignment,
    },
)
