"""The phases of a rebalance: starting it, ending its join phase, ending its sync phase.

A rebalance starts in PreparingRebalance, where JoinGroups are parked until everybody has joined or the join timer fires. The
first one of an empty group waits for `group.initial.rebalance.delay.ms` instead, again and again as long as members arrive, so
that a deployment of many members makes one generation and not many (KIP-134). Then the leader, told of all members, has to sync
before the followers' SyncGroups are answered. Members that do not come back in time are taken out, static ones excepted
(KIP-345): only the end of their session removes those.
"""

from __future__ import annotations

from kgctl.coordinator.classic.group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    RESPONSES,
    STABLE,
    ClassicGroup,
    ClassicMember,
    compute_subscribed_topics,
    count_generation,
    elect_leader_that_joined,
    record_value,
    start_next_generation,
)
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer
from kgctl.model.coordinator_records import GroupMetadataKey, MemberMetadata
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    AwaitedMember,
    Done,
    ForceCompleteRebalance,
    JoinGroupMember,
    JoinGroupResult,
    JoinProtocol,
    RebalanceStatus,
    SyncGroupResult,
)

_INITIAL_PHASE = 1
"""Argument of a join timer that ends the wait for an empty group's first members."""


def rebalance_or_complete_join(shard: Shard, group: ClassicGroup) -> None:
    """Start a rebalance after a change of the group, or see whether the one under way can go on.

    Kafka: GroupMetadataManager#maybePrepareRebalanceOrCompleteJoin.
    """
    if RESPONSES[group.state].may_rebalance:
        start_rebalance(shard, group)
    else:
        complete_join_if_ready(shard, group)


def start_rebalance(shard: Shard, group: ClassicGroup) -> None:
    """Go to PreparingRebalance. Kafka: GroupMetadataManager#prepareRebalance."""
    # What the leader was about to hand out is void; who waits for it has to join again.
    if group.state is COMPLETING_REBALANCE:
        reset_assignments(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    shard.disarm(group.sync_timer)
    is_initial = group.state is EMPTY
    if is_initial:
        # The first member's rebalance timeout bounds the whole wait, however many come after it.
        delay_ms = shard.config.group_initial_rebalance_delay_ms
        _wait_for_first_members(shard, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
    group.transition_to(PREPARING_REBALANCE, shard.now_ms)
    shard.story.note(group.group_id, shard.now_ms, "rebalance starts", group.generation_id)
    group.rebalance_started_ms = shard.now_ms
    note_progress(shard, group)
    if is_initial:
        return
    if group.has_all_members_joined:
        complete_join(shard, group)
    else:
        # The largest timeout of the members there are now; who joins later does not move it.
        shard.arm(group.join_timer, group.rebalance_timeout_ms)


def _wait_for_first_members(shard: Shard, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    group.initial_delay_ms, group.initial_remaining_ms = delay_ms, remaining_ms
    shard.arm(group.join_timer, delay_ms, _INITIAL_PHASE)


def on_join_timer(shard: Shard, timer: Timer) -> None:
    """End the join phase, which has lasted long enough; extend the initial one as long as members arrive.

    Kafka: GroupMetadataManager#tryCompleteInitialRebalanceElseSchedule and #completeClassicGroupJoin.
    """
    group = shard.groups.get(timer.key.group_id)
    if not isinstance(group, ClassicGroup):
        return
    if timer.argument == _INITIAL_PHASE and group.new_member_added and group.initial_remaining_ms != 0:
        group.new_member_added = False
        delay_ms, remaining_ms = group.initial_delay_ms, group.initial_remaining_ms
        next_delay_ms = min(shard.config.group_initial_rebalance_delay_ms, remaining_ms)
        _wait_for_first_members(shard, group, next_delay_ms, max(remaining_ms - delay_ms, 0))
    else:
        # Also when no join phase is under way: an upgrade cancels no timer, and after a downgrade the group may be in any state.
        complete_join(shard, group)


def complete_join_if_ready(shard: Shard, group: ClassicGroup) -> None:
    """End the join phase when everybody has joined, unless it is the initial one, which only its timer ends."""
    if group.state is PREPARING_REBALANCE and group.has_all_members_joined and not group.is_initial_rebalance:
        complete_join(shard, group)


def complete_join(shard: Shard, group: ClassicGroup) -> None:
    """End the join phase with those that have joined. Kafka: GroupMetadataManager#completeClassicGroupJoin."""
    shard.disarm(group.join_timer)
    # A static member may be restarting: only the end of its session takes it out (KIP-345).
    for member in [member for member in group.members.values() if member.parked_join is None and not member.is_static]:
        shard.disarm(member.session_timer)
        group.remove(member.member_id)
    if not elect_leader_that_joined(group) and group.members:
        # Only static members are left and none of them has joined: wait on, until their sessions end.
        shard.arm(group.join_timer, group.rebalance_timeout_ms)
        return
    if group.state is not PREPARING_REBALANCE:
        # A timer from before an upgrade, see `on_join_timer`. Kafka counts a generation, and only then fails in
        # ClassicGroup#transitionTo; the members that it has taken out stay out.
        count_generation(group)
        return
    start_next_generation(group, shard.now_ms)
    shard.story.note(group.group_id, shard.now_ms, "join phase ends, generation", group.generation_id)
    if group.state is EMPTY:
        end_rebalance(shard, group)
        # Recorded too: a coordinator that loads the log would bring the last generation's members back, and wait for them.
        shard.append(GroupMetadataKey(group.group_id), record_value(group))
        return
    note_progress(shard, group)
    _answer_joins(shard, group)
    # A member that joins, beats and never syncs would keep the group here for ever (GroupMetadataManager#schedulePendingSync).
    shard.arm(group.sync_timer, group.rebalance_timeout_ms, group.generation_id)


def _answer_joins(shard: Shard, group: ClassicGroup) -> None:
    # Every member owes a SyncGroup now, also a static one that has not joined: its session starts anew with the others'.
    for member in group.members.java_values():
        if member.parked_join is not None:
            answer_join(shard, group, member, members=described_members(group) if member.member_id == group.leader_id else ())
        extend_session(shard, member)
        member.is_new = False
        group.pending_syncs[member.member_id] = None


def answer_join(
    shard: Shard,
    group: ClassicGroup,
    member: ClassicMember,
    *,
    members: tuple[JoinGroupMember, ...] = (),
    leader_id: str | None = None,
    skip_assignment: bool = False,
) -> None:
    """Answer the member's JoinGroup, which is parked, with the group's generation; ``leader_id`` None: the leader there is."""
    assert member.parked_join is not None
    request_id = member.parked_join
    group.park_join(member, None)
    shard.reply(
        request_id,
        JoinGroupResult(
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=(group.leader_id if leader_id is None else leader_id) or "",
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=members,
        ),
    )


def refuse_join(shard: Shard, group: ClassicGroup, member: ClassicMember, error: ErrorCode, member_id: str = "") -> None:
    """Answer the member's parked JoinGroup, if there is one, with an error."""
    if member.parked_join is not None:
        request_id = member.parked_join
        group.park_join(member, None)
        shard.reply(request_id, JoinGroupResult(error=error, member_id=member_id))


def described_members(group: ClassicGroup) -> tuple[JoinGroupMember, ...]:
    """Return the members as the leader is told of them, in the order of Java's map."""
    protocol = group.protocol_name or ""
    return tuple(
        JoinGroupMember(member_id=m.member_id, group_instance_id=m.group_instance_id, metadata=m.metadata(protocol))
        for m in group.members.java_values()
    )


def extend_session(shard: Shard, member: ClassicMember) -> None:
    """Start the member's session anew, after a sign of life."""
    shard.timers.arm(member.session_timer, shard.now_ms + member.session_timeout_ms)


def reset_assignments(shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
    """Forget all assignments and answer the parked SyncGroups with this error.

    Kafka: GroupMetadataManager#resetAndPropagateAssignmentWithError.
    """
    for member in group.members.java_values():
        member.assignment = b""
        if member.parked_sync is not None:
            shard.reply(member.parked_sync, SyncGroupResult(error=error))
            member.parked_sync = None
            extend_session(shard, member)


def complete_sync(shard: Shard, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """Record the leader's assignments, answer everybody that waits, go to Stable. Members that it forgot get nothing.

    The record comes first: an assignment that a reload would not know must not be handed out.
    Kafka: GroupMetadataManager#setAndPropagateAssignment.
    """
    shard.append(GroupMetadataKey(group.group_id), record_value(group, assignments))
    for member in group.members.java_values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.parked_sync is not None:
            shard.reply(member.parked_sync, assignment_result(group, member))
            member.parked_sync = None
            extend_session(shard, member)
    group.transition_to(STABLE, shard.now_ms)
    end_rebalance(shard, group)
    shard.story.note(group.group_id, shard.now_ms, "stable, generation", group.generation_id)


def assignment_result(group: ClassicGroup, member: ClassicMember) -> SyncGroupResult:
    """Return the answer that gives the member its assignment."""
    return SyncGroupResult(protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment)


def on_sync_timer(shard: Shard, timer: Timer) -> None:
    """Take out the members that did not sync in time. Kafka: GroupMetadataManager#expirePendingSync."""
    group = shard.groups.get(timer.key.group_id)
    # A timer outlives an upgrade, which cancels none. When the group has come back by a downgrade at the same number of its
    # generation, nobody owes a SyncGroup; what it waits for then is another rebalance's business.
    if isinstance(group, ClassicGroup) and timer.argument == group.generation_id and group.pending_syncs:
        remove_members_that_did_not_sync(shard, group)


def remove_members_that_did_not_sync(shard: Shard, group: ClassicGroup) -> None:
    """Take out the members that still owe a SyncGroup, and start a rebalance."""
    for member_id in list(group.pending_syncs):
        shard.disarm(group.session_timer(member_id))
        group.remove(member_id)
    start_rebalance(shard, group)


def remove_pending_sync(shard: Shard, group: ClassicGroup, member_id: str) -> None:
    """Note that the member has synced; the sync timer goes with the last. Kafka: GroupMetadataManager#removePendingSyncMember."""
    group.pending_syncs.pop(member_id, None)
    if not group.pending_syncs:
        shard.disarm(group.sync_timer)


def note_progress(shard: Shard, group: ClassicGroup) -> None:
    """Count the limit for stuck rebalances from now: this one moves on."""
    group.rebalance_progress_ms = shard.now_ms
    if shard.config.kgctl_rebalance_stuck_timeout_ms:
        shard.arm(group.stuck_timer, shard.config.kgctl_rebalance_stuck_timeout_ms)


def end_rebalance(shard: Shard, group: ClassicGroup) -> None:
    """Note that no rebalance is under way any more."""
    group.rebalance_started_ms = group.rebalance_progress_ms = None
    shard.disarm(group.stuck_timer)


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
    """Complete by force a rebalance that made no progress for longer than the limit allows."""
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


def restore(group: ClassicGroup) -> None:
    """Take members, generation and leader from the record, so that the last complete generation counts again.

    A member supports only the protocol that was elected; a rebalance timeout that the record lacks is the session timeout.
    """
    value = group.recorded
    if value is None:
        return
    group.protocol_type = value.protocol_type or None
    for recorded in value.members:
        group.add_member(_restored_member(group, recorded, value.protocol or ""), value.protocol_type)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    group.state = group.previous_state = STABLE if value.members else EMPTY
    group.state_timestamp_ms = None if value.current_state_timestamp_ms == -1 else value.current_state_timestamp_ms
    group.subscribed_topics = compute_subscribed_topics(group)


def _restored_member(group: ClassicGroup, recorded: MemberMetadata, protocol: str) -> ClassicMember:
    timeout_ms = recorded.session_timeout_ms if recorded.rebalance_timeout_ms == -1 else recorded.rebalance_timeout_ms
    return ClassicMember(
        member_id=recorded.member_id,
        group_instance_id=recorded.group_instance_id,
        client_id=recorded.client_id,
        client_host=recorded.client_host,
        rebalance_timeout_ms=timeout_ms,
        session_timeout_ms=recorded.session_timeout_ms,
        protocols=(JoinProtocol(name=protocol, metadata=recorded.subscription),),
        session_timer=group.session_timer(recorded.member_id),
        assignment=recorded.assignment,
    )


def wake(shard: Shard, group: ClassicGroup) -> None:
    """The log is loaded: every session starts anew; a group above the limit has to shrink."""
    restore(group)
    for member in group.members.java_values():
        extend_session(shard, member)
    if len(group.members) > shard.config.group_max_size:
        start_rebalance(shard, group)


def retire(shard: Shard, group: ClassicGroup) -> None:
    """Give the group up: whoever waits is told to look for another coordinator. Kafka: GroupMetadataManager#onUnloaded."""
    group.transition_to(DEAD, shard.now_ms)
    refuse_waiting(shard, group, ErrorCode.NOT_COORDINATOR)


def refuse_waiting(shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer every parked JoinGroup and SyncGroup with ``error``."""
    for member in group.members.java_values():
        refuse_join(shard, group, member, error, member.member_id)
        if member.parked_sync is not None:
            shard.reply(member.parked_sync, SyncGroupResult(error=error))
            member.parked_sync = None
