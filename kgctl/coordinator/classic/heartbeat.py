"""Heartbeat to a classic group, and what happens when none comes.

Kafka: GroupMetadataManager#classicGroupHeartbeatToClassicGroup and #expireClassicGroupMemberHeartbeat.
"""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.rebalance import complete_join, extend_session, refuse_join, start_rebalance
from kgctl.coordinator.classic.states import DEAD, EMPTY, PREPARING_REBALANCE, RESPONSES
from kgctl.coordinator.requests import Heartbeat
from kgctl.coordinator.results import HeartbeatResult
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer
from kgctl.model.error_codes import ErrorCode

_RESULTS = {response.heartbeat: HeartbeatResult(error=response.heartbeat) for response in RESPONSES.values()}


def heartbeat(shard: Shard, group: ClassicGroup, request: Heartbeat) -> None:
    """Extend the member's session, and tell it to rejoin while a rebalance collects members."""
    state = group.state
    if state is EMPTY or state is DEAD:
        error = RESPONSES[state].heartbeat
    else:
        error = group.identity_error(request.member_id, request.group_instance_id)
        if not error and request.generation_id != group.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if not error:
            extend_session(shard, group.members[request.member_id])
            shard.reply(request.request_id, _RESULTS[RESPONSES[state].heartbeat])
            return
    shard.reply(request.request_id, HeartbeatResult(error=error))


def on_session_timer(shard: Shard, timer: Timer) -> None:
    """An id that was handed out has not joined, or a member has been silent for its session timeout: it is taken out.

    A member whose request is parked is alive: it is left alone, and its timer is armed again when it is answered. A new one is
    not spared: its JoinGroup may be parked for a client that is long gone.
    """
    group = shard.groups.get(timer.key.group_id)
    if not isinstance(group, ClassicGroup):
        return
    member_id = timer.key.member_id
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        del group.pending_joins[member_id]
        _complete_join_without(shard, group)
    elif member is not None and (member.is_new or not member.is_waiting):
        shard.story.note(group.group_id, shard.now_ms, "session ends of", member_id)
        refuse_join(shard, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        group.remove(member_id)
        if RESPONSES[group.state].may_rebalance:
            start_rebalance(shard, group)
        else:
            _complete_join_without(shard, group)


def _complete_join_without(shard: Shard, group: ClassicGroup) -> None:
    """Kafka does not ask here whether the phase is the initial one, so an expiry may end that one early."""
    if group.state is PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(shard, group)
