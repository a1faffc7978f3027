"""LeaveGroup to a classic group. Kafka: GroupMetadataManager#classicGroupLeaveToClassicGroup."""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import rebalance_or_complete_join, refuse_join
from kgctl.coordinator.classic.states import DEAD, EMPTY
from kgctl.coordinator.requests import LeaveGroup, MemberIdentity
from kgctl.coordinator.results import LeaveGroupResult, MemberLeaveResult
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode


def leave_group(shard: Shard, group: ClassicGroup, request: LeaveGroup) -> None:
    """Take the named members out, each judged by itself; one rebalance for all of them."""
    if group.state is DEAD:
        shard.reply(request.request_id, LeaveGroupResult(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    results = tuple(
        MemberLeaveResult(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error=_leave(shard, group, identity),
        )
        for identity in request.members
    )
    if group.state is not EMPTY and any(result.error is ErrorCode.NONE for result in results):
        rebalance_or_complete_join(shard, group)
    shard.reply(request.request_id, LeaveGroupResult(members=results))


def _leave(shard: Shard, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    """Take one out. An administrator names a static member by its instance id alone."""
    member_id = identity.member_id
    if not member_id:
        holder = group.static_members.get(identity.group_instance_id or "")
        if identity.group_instance_id is None or holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = holder
    elif member_id in group.pending_joins:
        group.remove(member_id)
        shard.disarm(group.session_timer(member_id))
        return ErrorCode.NONE
    else:
        error = group.identity_error(member_id, identity.group_instance_id)
        if error:
            return error
    member = group.members[member_id]
    shard.disarm(member.session_timer)
    # A parked SyncGroup of the leaver is not answered, as in Kafka: who leaves does not wait for it.
    refuse_join(shard, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member_id)
    return ErrorCode.NONE
