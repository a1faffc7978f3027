"""SyncGroup to a classic group. Kafka: GroupMetadataManager#classicGroupSyncToClassicGroup."""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import assignment_result, complete_sync, note_progress, remove_pending_sync
from kgctl.coordinator.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, RESPONSES
from kgctl.coordinator.requests import SyncGroup
from kgctl.coordinator.results import SyncGroupResult
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode


def sync_group(shard: Shard, group: ClassicGroup, request: SyncGroup) -> None:
    """Take the leader's assignment, or give a member its own: when Stable at once, else when the leader has synced."""
    error = _error(group, request)
    if error:
        shard.reply(request.request_id, SyncGroupResult(error=error))
        return
    member = group.members[request.member_id]
    remove_pending_sync(shard, group, request.member_id)
    if group.state is not COMPLETING_REBALANCE:
        shard.reply(request.request_id, assignment_result(group, member))
        return
    member.parked_sync = request.request_id
    note_progress(shard, group)
    if group.leader_id == request.member_id:
        complete_sync(shard, group, dict(request.assignments))


def _error(group: ClassicGroup, request: SyncGroup) -> ErrorCode:
    if group.state in (EMPTY, DEAD):
        return RESPONSES[group.state].sync or ErrorCode.NONE
    error = group.identity_error(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return RESPONSES[group.state].sync or ErrorCode.NONE


def _differs(given: str | None, known: str | None) -> bool:
    """Whether a client says something else than is known; saying nothing is always fine."""
    return given is not None and known is not None and given != known
