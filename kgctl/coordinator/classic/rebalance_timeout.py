"""Which members a rebalance waits for, since when and until when; and the end of one that is stuck.

Kafka's own timers end every rebalance but one: when all members are static and none comes back, it waits until their sessions
end. A rebalance counts as stuck when it has made no progress (no member joined or synced, no phase ended) for longer than a
limit, and ``kgctl.rebalance.stuck.timeout.ms``, kgctl's own setting, has it completed then without the members it waits for.
"""

from __future__ import annotations

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.classic.rebalance import complete_join, remove_members_that_did_not_sync
from kgctl.coordinator.classic.states import COMPLETING_REBALANCE, PREPARING_REBALANCE
from kgctl.coordinator.requests import ForceCompleteRebalance
from kgctl.coordinator.results import AwaitedMember, Done, RebalanceStatus
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer
from kgctl.model.error_codes import ErrorCode

STUCK_AFTER_MS = 600_000
"""What `rebalance_status` calls stuck where no limit is set."""


def phase(group: ClassicGroup) -> str | None:
    """What the rebalance waits for; None when none is under way."""
    if group.state is PREPARING_REBALANCE:
        return "initial-delay" if group.is_initial_rebalance else "join"
    return "sync" if group.state is COMPLETING_REBALANCE else None


def awaited_members(group: ClassicGroup) -> list[ClassicMember]:
    """The members that keep the phase under way from ending, by id."""
    if group.state is COMPLETING_REBALANCE:
        awaited = [group.members[member_id] for member_id in group.pending_syncs if member_id in group.members]
    else:
        awaited = [member for member in group.members.values() if member.parked_join is None]
    return sorted(awaited, key=lambda member: member.member_id)


def rebalance_status(shard: Shard, group: ClassicGroup, now_ms: int) -> RebalanceStatus:
    """Where the group's rebalance stands at this time. Ids handed out but not back yet are awaited too, after the members."""
    waiting_for = phase(group)
    limit_ms = shard.config.kgctl_rebalance_stuck_timeout_ms or STUCK_AFTER_MS
    progress_ms = group.rebalance_progress_ms
    timer = group.sync_timer if waiting_for == "sync" else group.join_timer
    return RebalanceStatus(
        group_id=group.group_id,
        state=group.state.value,
        generation_id=group.generation_id,
        waiting_for=waiting_for,
        started_ms=group.rebalance_started_ms if waiting_for else None,
        deadline_ms=shard.timers.deadline_ms(timer) if waiting_for else None,
        awaited=_awaited(shard, group) if waiting_for else (),
        is_stuck=waiting_for is not None and progress_ms is not None and now_ms - progress_ms > limit_ms,
    )


def _awaited(shard: Shard, group: ClassicGroup) -> tuple[AwaitedMember, ...]:
    waiting_for = "sync" if group.state is COMPLETING_REBALANCE else "join"
    members = [(member.member_id, member.group_instance_id) for member in awaited_members(group)]
    pending: list[tuple[str, str | None]] = [(member_id, None) for member_id in sorted(group.pending_joins)]
    return tuple(
        AwaitedMember(
            member_id=member_id,
            group_instance_id=instance_id,
            waiting_for=waiting_for,
            session_deadline_ms=shard.timers.deadline_ms(group.session_timer(member_id)),
        )
        for member_id, instance_id in members + (pending if waiting_for == "join" else [])
    )


def handle_force_complete_rebalance(shard: Shard, request: ForceCompleteRebalance) -> None:
    """End the rebalance that is under way, now, without the members it waits for."""
    group = shard.groups.get(request.group_id)
    if group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    elif not isinstance(group, ClassicGroup) or phase(group) is None:
        error = ErrorCode.INVALID_REQUEST
    else:
        error = ErrorCode.NONE
        force_complete(shard, group)
    shard.reply(request.request_id, Done(error=error))


def on_stuck_timer(shard: Shard, timer: Timer) -> None:
    """No progress for longer than the limit."""
    group = shard.groups.get(timer.key.group_id)
    if isinstance(group, ClassicGroup) and phase(group) is not None:
        force_complete(shard, group)


def force_complete(shard: Shard, group: ClassicGroup) -> None:
    """Take the awaited members out, static ones too, and go on: from joining to syncing, from syncing to a new rebalance."""
    shard.story.note(group.group_id, shard.now_ms, "rebalance is completed by force")
    if group.state is COMPLETING_REBALANCE:
        remove_members_that_did_not_sync(shard, group)
        return
    for member in awaited_members(group):
        shard.disarm(member.session_timer)
        group.remove(member.member_id)
    for member_id in list(group.pending_joins):
        shard.disarm(group.session_timer(member_id))
        group.remove(member_id)
    complete_join(shard, group)
