"""The phases of a rebalance: starting it, ending its join phase, ending its sync phase.

A rebalance starts in PreparingRebalance, where JoinGroups are parked until everybody has joined or the join timer fires. The
first one of an empty group waits for `group.initial.rebalance.delay.ms` instead, again and again as long as members arrive, so
that a deployment of many members makes one generation and not many (KIP-134). Then the leader, told of all members, has to sync
before the followers' SyncGroups are answered. Members that do not come back in time are taken out, static ones excepted
(KIP-345): only the end of their session removes those.
"""

from __future__ import annotations

from kgctl.coordinator.classic.generation import elect_leader_that_joined, record_value, start_next_generation
from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.classic.member import ClassicMember
from kgctl.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE, RESPONSES, STABLE
from kgctl.coordinator.results import JoinGroupMember, JoinGroupResult, SyncGroupResult
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer
from kgctl.model.error_codes import ErrorCode
from kgctl.model.records import GroupMetadataKey

_INITIAL_PHASE = 1
"""Argument of a join timer that ends the wait for an empty group's first members."""


def rebalance_or_complete_join(shard: Shard, group: ClassicGroup) -> None:
    """Something changed the group: start a rebalance, or see whether the one under way can go on."""
    if RESPONSES[group.state].may_rebalance:
        start_rebalance(shard, group)
    else:
        complete_join_if_ready(shard, group)


def start_rebalance(shard: Shard, group: ClassicGroup) -> None:
    """Go to PreparingRebalance. Kafka: GroupMetadataManager#prepareRebalance."""
    if group.state is COMPLETING_REBALANCE:
        reset_assignments(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    shard.disarm(group.sync_timer)
    is_initial = group.state is EMPTY
    if is_initial:
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
        shard.arm(group.join_timer, group.rebalance_timeout_ms)


def _wait_for_first_members(shard: Shard, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    group.initial_delay_ms, group.initial_remaining_ms = delay_ms, remaining_ms
    shard.arm(group.join_timer, delay_ms, _INITIAL_PHASE)


def on_join_timer(shard: Shard, timer: Timer) -> None:
    """The join phase has lasted long enough; the initial one is extended as long as members arrive.

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
    elif group.state is PREPARING_REBALANCE:
        complete_join(shard, group)
    elif group.state is EMPTY:
        # A timer from before the group changed to the consumer protocol; Kafka counts a generation, and then fails.
        group.generation_id += 1


def complete_join_if_ready(shard: Shard, group: ClassicGroup) -> None:
    """End the join phase when everybody has joined, unless it is the initial one, which only its timer ends."""
    if group.state is PREPARING_REBALANCE and group.has_all_members_joined and not group.is_initial_rebalance:
        complete_join(shard, group)


def complete_join(shard: Shard, group: ClassicGroup) -> None:
    """End the join phase with those that have joined. Kafka: GroupMetadataManager#completeClassicGroupJoin."""
    shard.disarm(group.join_timer)
    for member in [member for member in group.members.values() if member.parked_join is None and not member.is_static]:
        shard.disarm(member.session_timer)
        group.remove(member.member_id)
    if not elect_leader_that_joined(group) and group.members:
        # Only static members are left and none of them has joined: wait on, until their sessions end.
        shard.arm(group.join_timer, group.rebalance_timeout_ms)
        return
    start_next_generation(group, shard.now_ms)
    shard.story.note(group.group_id, shard.now_ms, "join phase ends, generation", group.generation_id)
    if group.state is EMPTY:
        end_rebalance(shard, group)
        shard.append(GroupMetadataKey(group.group_id), record_value(group))
        return
    note_progress(shard, group)
    _answer_joins(shard, group)
    shard.arm(group.sync_timer, group.rebalance_timeout_ms, group.generation_id)


def _answer_joins(shard: Shard, group: ClassicGroup) -> None:
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
    """What the leader is told, in Kafka's order."""
    protocol = group.protocol_name or ""
    return tuple(
        JoinGroupMember(member_id=m.member_id, group_instance_id=m.group_instance_id, metadata=m.metadata(protocol))
        for m in group.members.java_values()
    )


def extend_session(shard: Shard, member: ClassicMember) -> None:
    """A sign of life: the session starts anew."""
    shard.arm(member.session_timer, member.session_timeout_ms)


def reset_assignments(shard: Shard, group: ClassicGroup, error: ErrorCode) -> None:
    """Forget all assignments and answer the parked SyncGroups with this error."""
    for member in group.members.java_values():
        member.assignment = b""
        if member.parked_sync is not None:
            shard.reply(member.parked_sync, SyncGroupResult(error=error))
            member.parked_sync = None
            extend_session(shard, member)


def complete_sync(shard: Shard, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """The leader has spoken: record the assignments, answer everybody that waits, Stable. Members it forgot get nothing."""
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
    """The member's assignment."""
    return SyncGroupResult(protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment)


def on_sync_timer(shard: Shard, timer: Timer) -> None:
    """Members that did not sync in time are taken out. Kafka: GroupMetadataManager#expirePendingSync."""
    group = shard.groups.get(timer.key.group_id)
    if isinstance(group, ClassicGroup) and timer.argument == group.generation_id:
        remove_members_that_did_not_sync(shard, group)


def remove_members_that_did_not_sync(shard: Shard, group: ClassicGroup) -> None:
    """Take them out and start a rebalance."""
    for member_id in list(group.pending_syncs):
        shard.disarm(group.session_timer(member_id))
        group.remove(member_id)
    start_rebalance(shard, group)


def remove_pending_sync(shard: Shard, group: ClassicGroup, member_id: str) -> None:
    """The member has synced; the sync timer goes when it was the last."""
    group.pending_syncs.pop(member_id, None)
    if not group.pending_syncs:
        shard.disarm(group.sync_timer)


def note_progress(shard: Shard, group: ClassicGroup) -> None:
    """The rebalance moves on: the limit for stuck ones counts from now."""
    group.rebalance_progress_ms = shard.now_ms
    if shard.config.kgctl_rebalance_stuck_timeout_ms:
        shard.arm(group.stuck_timer, shard.config.kgctl_rebalance_stuck_timeout_ms)


def end_rebalance(shard: Shard, group: ClassicGroup) -> None:
    """The rebalance is over."""
    group.rebalance_started_ms = group.rebalance_progress_ms = None
    shard.disarm(group.stuck_timer)
