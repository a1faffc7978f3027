"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the checks before a group is looked at, then the group's own protocol.

Members of the classic protocol may be in consumer-protocol groups too (online upgrade), so each of the four goes to
`kgctl.coordinator.classic` or to `kgctl.coordinator.consumer` by the type of the group. Share and streams groups have no such
members.
"""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.handlers import heartbeat, join_group, leave_group, sync_group
from kgctl.coordinator.consumer import classic_member
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.effects import refuse
from kgctl.coordinator.group import Group
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupType
from kgctl.model.requests import Heartbeat, JoinGroup, JoinGroupResult, LeaveGroup, LeaveGroupResult, MemberLeaveResult, SyncGroup


def handle_join_group(shard: Shard, request: JoinGroup) -> None:
    """JoinGroup. An empty group of another protocol gives way to a classic one."""
    config = shard.config
    if not request.group_id:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
    elif not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_SESSION_TIMEOUT))
    else:
        _join(shard, request.group_id, request)


def _join(shard: Shard, group_id: str, request: JoinGroup) -> None:
    group = shard.groups.get(group_id)
    if group is None or isinstance(group, ClassicGroup):
        join_group(shard, group, request)
    elif not _may_join(shard, group):
        shard.reply(request.request_id, JoinGroupResult(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif isinstance(group, ConsumerGroup) and not group.is_empty:
        classic_member.join_group(shard, group, request)
    else:
        if request.member_id:
            # Refused next, and then Kafka writes no tombstones: the group is gone until the log is loaded again.
            shard.forget_group(group)
        else:
            shard.delete_group(group)
        join_group(shard, None, request)


def _may_join(shard: Shard, group: Group) -> bool:
    if group.type is GroupType.CONSUMER:
        return True
    return group.type is GroupType.STREAMS and group.is_empty and shard.config.profile.replaces_streams_groups


def handle_sync_group(shard: Shard, request: SyncGroup) -> None:
    """Answer a SyncGroup, by the rules of the group's protocol."""
    group = shard.groups.get(request.group_id or "")
    if not request.group_id:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
    elif isinstance(group, ClassicGroup):
        sync_group(shard, group, request)
    elif isinstance(group, ConsumerGroup):
        classic_member.sync_group(shard, group, request)
    else:
        shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_MEMBER_ID))


def handle_heartbeat(shard: Shard, request: Heartbeat) -> None:
    """Answer a Heartbeat, by the rules of the group's protocol."""
    group = shard.groups.get(request.group_id or "")
    if isinstance(group, ClassicGroup) and request.group_id:
        heartbeat(shard, group, request)
    elif not request.group_id:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
    elif isinstance(group, ConsumerGroup):
        classic_member.heartbeat(shard, group, request)
    else:
        shard.reply(request.request_id, refuse(request, ErrorCode.UNKNOWN_MEMBER_ID))


def handle_leave_group(shard: Shard, request: LeaveGroup) -> None:
    """Answer a LeaveGroup, by the rules of the group's protocol."""
    group = shard.groups.get(request.group_id or "")
    if not request.group_id:
        shard.reply(request.request_id, refuse(request, ErrorCode.INVALID_GROUP_ID))
    elif isinstance(group, ClassicGroup):
        leave_group(shard, group, request)
    elif isinstance(group, ConsumerGroup):
        classic_member.leave_group(shard, group, request)
    else:
        unknown = tuple(
            MemberLeaveResult(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error=ErrorCode.UNKNOWN_MEMBER_ID
            )
            for member in request.members
        )
        shard.reply(request.request_id, LeaveGroupResult(members=unknown))
