"""DescribeGroups, ListGroups, DeleteGroups, and the statistics: reading groups of every type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kgctl.coordinator.classic.group import STABLE, ClassicGroup
from kgctl.coordinator.offset_handlers import append_offset_tombstones
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.requests import (
    CoordinatorStatistics,
    DeleteGroups,
    DeleteGroupsResult,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    DescribeGroupsResult,
    ListedGroup,
    ListGroups,
    ListGroupsResult,
)
from kgctl.model.values import copied_set_order

_NOT_FOUND_VERSION = 6
"""From this version on DescribeGroups tells a missing group from a dead one (KIP-1043)."""


def handle_describe_groups(shard: Shard, request: DescribeGroups) -> None:
    """DescribeGroups: classic groups; every other one is Dead for it."""
    groups = tuple(_describe(shard, group_id, request.api_version) for group_id in request.group_ids)
    shard.reply(request.request_id, DescribeGroupsResult(groups=groups))


def _describe(shard: Shard, group_id: str | None, version: int) -> DescribedGroup:
    if group_id is None:
        return DescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID)
    group = shard.settled_group(group_id)
    if isinstance(group, ClassicGroup):
        return _describe_classic(group)
    error, message = ErrorCode.NONE, None
    if version >= _NOT_FOUND_VERSION:
        error = ErrorCode.GROUP_ID_NOT_FOUND
        message = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return DescribedGroup(group_id=group_id, error=error, error_message=message, state=GroupState.DEAD.value)


def _describe_classic(group: ClassicGroup) -> DescribedGroup:
    """Only in Stable it is sure which protocol the members' metadata belongs to."""
    protocol = group.protocol_name if group.state is STABLE else None
    members = tuple(
        DescribedMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=b"" if protocol is None else member.metadata(protocol),
            assignment=member.assignment,
        )
        for member in group.members.java_values()
    )
    return DescribedGroup(
        group_id=group.group_id,
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=members,
    )


def handle_list_groups(shard: Shard, request: ListGroups) -> None:
    """Answer ListGroups: the groups of the wanted states and types, in the order of Kafka's map."""
    shard.reply(request.request_id, ListGroupsResult(groups=tuple(listed_groups(shard, request))))


def listed_groups(shard: Shard, request: ListGroups) -> Iterator[ListedGroup]:
    """Return the groups that match, in Kafka's order. Both filters have to match, in any case of letters; an empty one does."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    for group in shard.settled_groups():
        if (not states or group.group_state.value.lower() in states) and (not types or group.type.value in types):
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                state=group.group_state.value,
                type=group.type.value,
            )


def handle_delete_groups(shard: Shard, request: DeleteGroups) -> None:
    """DeleteGroups: each group by itself, offsets first. Kafka goes through a HashSet of them, which orders the tombstones."""
    group_ids = dict.fromkeys(group_id for group_id in request.group_ids if group_id is not None)
    errors: dict[str | None, ErrorCode] = {group_id: _delete(shard, group_id) for group_id in copied_set_order(group_ids)}
    results = tuple((group_id, errors.get(group_id, ErrorCode.INVALID_GROUP_ID)) for group_id in request.group_ids)
    shard.reply(request.request_id, DeleteGroupsResult(groups=results))


def _delete(shard: Shard, group_id: str) -> ErrorCode:
    group = shard.groups.get(group_id)
    if group is None or group.group_state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    append_offset_tombstones(shard, group_id)
    shard.delete_group(group)
    return ErrorCode.NONE


def statistics(shard: Shard) -> CoordinatorStatistics:
    """Groups by type and state, members by the type of their group, and how many offsets are committed."""
    members: Counter[str] = Counter()
    for group in shard.groups.values():
        members[group.type.value] += group.member_count
    return CoordinatorStatistics(
        groups=dict(Counter((group.type.value, group.group_state.value) for group in shard.groups.values())),
        members=dict(members),
        offsets=len(shard.offsets),
    )
