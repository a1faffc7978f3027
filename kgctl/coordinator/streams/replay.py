"""What a record of a streams group changes. Kafka: GroupMetadataManager#replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMember, recorded_target, with_assignment, with_metadata
from kgctl.coordinator.streams.topology.known import known_topology
from kgctl.errors import InvariantViolation
from kgctl.model.streams_records import (
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
)
from kgctl.model.streams_topology import StreamsTopology

if TYPE_CHECKING:
    from kgctl.coordinator.shard import Shard

_NO_ASSIGNMENT_EPOCH = -1


def streams_group(shard: Shard, group_id: str) -> StreamsGroup:
    """Return the group; the first record of it makes it. Raises `InvariantViolation` where the name is another group's.

    One without members gives way: it was dropped from memory only (`Shard.forget_group`). Kafka cannot load such a log.
    """
    group = shard.groups.get(group_id)
    if group is None or not (isinstance(group, StreamsGroup) or group.member_count):
        group = shard.groups[group_id] = StreamsGroup(group_id, shard.config.profile)
    if not isinstance(group, StreamsGroup):
        raise InvariantViolation(f"a streams-group record for {group_id!r}, which is a {group.type} group", group=group_id)
    return group


def _known(shard: Shard, group_id: str) -> StreamsGroup | None:
    group = shard.groups.get(group_id)
    return group if isinstance(group, StreamsGroup) else None


def _replay_group(shard: Shard, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None) -> None:
    if value is not None:
        group = streams_group(shard, key.group)
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
        group.validated_topology_epoch = value.validated_topology_epoch
        group.last_assignment_configs = dict(value.last_assignment_configs)
    elif _known(shard, key.group) is not None:
        del shard.groups[key.group]
        shard.story.forget(key.group)


def _replay_topology(shard: Shard, key: StreamsGroupTopologyKey, value: StreamsTopology | None) -> None:
    group = _known(shard, key.group) if value is None else streams_group(shard, key.group)
    if group is not None:
        group.topology = None if value is None else known_topology(value)


def _replay_member(shard: Shard, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None) -> None:
    if value is not None:
        group = streams_group(shard, key.group)
        group.update_member(with_metadata(_member(group, key.member_id), value))
    elif (known := _known(shard, key.group)) is not None:
        known.remove_member(key.member_id)


def _member(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id, has_metadata=False, has_assignment=False)


def _replay_target_metadata(
    shard: Shard, key: StreamsGroupTargetAssignmentMetadataKey, value: StreamsGroupTargetAssignmentMetadataValue | None
) -> None:
    group = _known(shard, key.group) if value is None else streams_group(shard, key.group)
    if group is not None:
        group.assignment_epoch = _NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp_ms


def _replay_target(
    shard: Shard, key: StreamsGroupTargetAssignmentMemberKey, value: StreamsGroupTargetAssignmentMemberValue | None
) -> None:
    if value is not None:
        streams_group(shard, key.group).targets[key.member_id] = recorded_target(value)
    elif (known := _known(shard, key.group)) is not None:
        known.targets.pop(key.member_id, None)


def _replay_assignment(
    shard: Shard, key: StreamsGroupCurrentMemberAssignmentKey, value: StreamsGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is not None:
        group = streams_group(shard, key.group)
        group.update_member(with_assignment(_member(group, key.member_id), value))
    elif (known := _known(shard, key.group)) is not None:
        known.empty_member(key.member_id)


STREAMS_REPLAYERS: dict[type, Callable[[Shard, Any, Any], None]] = {
    StreamsGroupMetadataKey: _replay_group,
    StreamsGroupTopologyKey: _replay_topology,
    StreamsGroupMemberMetadataKey: _replay_member,
    StreamsGroupTargetAssignmentMetadataKey: _replay_target_metadata,
    StreamsGroupTargetAssignmentMemberKey: _replay_target,
    StreamsGroupCurrentMemberAssignmentKey: _replay_assignment,
}
"""Key class -> what a record with such a key does. Tombstones of what does not exist change nothing."""
