"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup to a classic group, and the end of a session.

A dynamic member first gets an id (KIP-394) and comes back with it; a static one is taken in, or takes over from the holder of its
instance id, at once (KIP-345). What may change the assignment starts a rebalance and parks the request; what cannot is answered
with the current generation. Kafka: GroupMetadataManager#classicGroupJoin, #classicGroupSync, #classicGroupHeartbeat,
#classicGroupLeave.
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
    elect_protocol,
    record_value,
)
from kgctl.coordinator.classic.rebalance import (
    answer_join,
    assignment_result,
    complete_join,
    complete_join_if_ready,
    complete_sync,
    described_members,
    extend_session,
    note_progress,
    rebalance_or_complete_join,
    refuse_join,
    remove_pending_sync,
    start_rebalance,
)
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer
from kgctl.model.coordinator_records import GroupMetadataKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    LeaveGroupResult,
    MemberIdentity,
    MemberLeaveResult,
    SyncGroup,
    SyncGroupResult,
)

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A member that does not know its id yet cannot send heartbeats; it gets this long. Kafka: a constant too."""
MEMBER_ID_REQUIRED_VERSION = 4
"""JoinGroup from this version on knows MEMBER_ID_REQUIRED (KIP-394); older clients are taken in at once."""
SKIP_ASSIGNMENT_VERSION = 9
"""JoinGroup from this version on can tell a leader to keep the assignment (KIP-814)."""


def join_group(shard: Shard, group: ClassicGroup | None, request: JoinGroup) -> None:
    """Take a member in or back in; ``group`` None: there is none yet.

    Kafka: GroupMetadataManager#classicGroupJoinToClassicGroup.
    """
    if group is None:
        # Nobody knows this id: it is of a group that is gone. Its client forgets it and joins as new; no group is made before.
        if request.member_id:
            _refuse(shard, request, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return
        group = _create_group(shard, request)
    # The size is looked at before anything else; who is refused loses the id, or the place, that it had. Nobody asks then whether
    # the join phase could end without it.
    if not accepts_member(shard, group, request.member_id):
        group.remove(request.member_id)
        _refuse(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED)
    # Deleted or moved while the request was on its way: the client looks for its coordinator, and finds a new group there.
    elif group.state is DEAD:
        _refuse(shard, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
    elif not group.supports_protocols(request.protocol_type, request.protocols):
        _refuse(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif request.member_id:
        _join_known(shard, group, request)
    else:
        _join_new(shard, group, request)


def _create_group(shard: Shard, request: JoinGroup) -> ClassicGroup:
    """Even a join that is refused next creates the group; its record is that of an empty one, generation 0."""
    group_id = request.group_id or ""
    key = GroupMetadataKey(group_id)
    shard.append(key, record_value(ClassicGroup(group_id, shard.now_ms)))
    group = shard.groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


def _refuse(shard: Shard, request: JoinGroup, error: ErrorCode, member_id: str = "") -> None:
    shard.reply(request.request_id, JoinGroupResult(error=error, member_id=member_id))


def accepts_member(shard: Shard, group: ClassicGroup, member_id: str) -> bool:
    """Whether ``group.max.size`` leaves room for this id. Kafka: GroupMetadataManager#acceptJoiningMember."""
    # In PreparingRebalance only those count that have joined: members of the generation before may not come back. The id of a
    # static member that returns is not known yet, so a full group refuses it.
    limit = shard.config.group_max_size
    member = group.members.get(member_id)
    if group.state in (EMPTY, DEAD):
        return True
    if group.state is PREPARING_REBALANCE:
        return (member is not None and member.parked_join is not None) or group.parked_joins < limit
    return member is not None or len(group.members) < limit


def _join_new(shard: Shard, group: ClassicGroup, request: JoinGroup) -> None:
    """Answer a JoinGroup without member id. Kafka: GroupMetadataManager#classicGroupJoinNewMember."""
    instance_id = request.group_instance_id
    member_id = shard.new_member_id(request.client_id if instance_id is None else instance_id)
    if instance_id is not None and instance_id in group.static_members:
        _replace_static_member(shard, group, request, group.static_members[instance_id], member_id)
    elif instance_id is None and request.api_version >= MEMBER_ID_REQUIRED_VERSION:
        # KIP-394: the client has to come back with its id, so that one that never saw the answer leaves no member behind.
        group.pending_joins[member_id] = None
        shard.arm(group.session_timer(member_id), request.session_timeout_ms)
        _refuse(shard, request, ErrorCode.MEMBER_ID_REQUIRED, member_id)
    else:
        _add_member(shard, group, request, member_id)


def _join_known(shard: Shard, group: ClassicGroup, request: JoinGroup) -> None:
    """Answer a request with a member id: one that was handed out, or a member's.

    Kafka: GroupMetadataManager#classicGroupJoinExistingMember.
    """
    member_id = request.member_id
    if member_id in group.pending_joins:
        if request.group_instance_id is None:
            _add_member(shard, group, request, member_id)
        else:
            # Static members are never given an id to come back with: Kafka takes it for a fault of its own.
            _refuse(shard, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    error = group.identity_error(member_id, request.group_instance_id)
    if error:
        _refuse(shard, request, error, member_id)
        return
    member = group.members[member_id]
    if _changes_nothing(group, member, request):
        group.park_join(member, request.request_id)
        is_leader = group.leader_id == member_id
        answer_join(shard, group, member, members=described_members(group) if is_leader else ())
    else:
        _update_member(shard, group, member, request)
        rebalance_or_complete_join(shard, group)


def _changes_nothing(group: ClassicGroup, member: ClassicMember, request: JoinGroup) -> bool:
    """Return whether the current generation is the answer: to a repeated join while syncs are awaited, or a follower's in Stable.

    A leader that joins again in Stable wants a rebalance: it has seen the topics change.
    """
    if group.state is COMPLETING_REBALANCE:
        return member.protocols == request.protocols
    return group.state is STABLE and member.member_id != group.leader_id and member.protocols == request.protocols


def _add_member(shard: Shard, group: ClassicGroup, request: JoinGroup, member_id: str) -> None:
    member = ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=request.protocols,
        session_timer=group.session_timer(member_id),
        parked_join=request.request_id,
        is_new=True,
    )
    # Who arrives during the initial delay prolongs it (KIP-134): many members that start together make one generation.
    if group.is_initial_rebalance:
        group.new_member_added = True
    group.add_member(member, request.protocol_type)
    note_progress(shard, group)
    shard.arm(member.session_timer, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance_or_complete_join(shard, group)


def _update_member(shard: Shard, group: ClassicGroup, member: ClassicMember, request: JoinGroup) -> None:
    # An earlier JoinGroup that is still parked is never answered: its client has sent this one since. The session goes on as it
    # was; only the answer starts it anew. Kafka: GroupMetadataManager#updateMemberThenRebalanceOrCompleteJoin.
    group.set_protocols(member, request.protocols)
    member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    member.session_timeout_ms = request.session_timeout_ms
    group.park_join(member, request.request_id)
    note_progress(shard, group)


def _rebalance_timeout_ms(request: JoinGroup) -> int:
    # JoinGroup 0 has no rebalance timeout (KIP-62).
    return request.session_timeout_ms if request.rebalance_timeout_ms is None else request.rebalance_timeout_ms


def _replace_static_member(shard: Shard, group: ClassicGroup, request: JoinGroup, old_id: str, new_id: str) -> None:
    """A restarted client takes over its instance id, with assignment, under a new member id.

    Kafka: GroupMetadataManager#updateStaticMemberThenRebalanceOrCompleteJoin.
    """
    old_leader_id = group.leader_id
    member = _take_over(shard, group, old_id, new_id)
    # The old id's session timer is left to fire without effect, as in Kafka; the new one starts with the old timeout.
    extend_session(shard, member)
    _update_member(shard, group, member, request)
    # In Stable the others need not notice, unless the protocol that is elected now is another one. While syncs are awaited nobody
    # knows whether the leader has counted on the old id: a new rebalance settles it.
    if group.state is not STABLE:
        if group.state is PREPARING_REBALANCE:
            complete_join_if_ready(shard, group)
        else:
            start_rebalance(shard, group)
    elif elect_protocol(group) != group.protocol_name:
        start_rebalance(shard, group)
    else:
        shard.append(GroupMetadataKey(group.group_id), record_value(group))
        _answer_replacement(shard, group, member, request, old_leader_id)


def _take_over(shard: Shard, group: ClassicGroup, old_id: str, new_id: str) -> ClassicMember:
    old = group.members[old_id]
    refuse_join(shard, group, old, ErrorCode.FENCED_INSTANCE_ID, old_id)
    if old.parked_sync is not None:
        shard.reply(old.parked_sync, SyncGroupResult(error=ErrorCode.FENCED_INSTANCE_ID))
    return group.replace_static_member(old, new_id)


def _answer_replacement(
    shard: Shard, group: ClassicGroup, member: ClassicMember, request: JoinGroup, old_leader_id: str | None
) -> None:
    """Answer with the current generation.

    From version 9 on a returning leader is told to keep the assignment (KIP-814). An older client is given the leader's old id,
    so that it does not think that it has to assign.
    """
    if request.api_version >= SKIP_ASSIGNMENT_VERSION:
        is_leader = group.leader_id == member.member_id
        answer_join(shard, group, member, members=described_members(group) if is_leader else (), skip_assignment=is_leader)
    else:
        answer_join(shard, group, member, leader_id=old_leader_id)


def sync_group(shard: Shard, group: ClassicGroup, request: SyncGroup) -> None:
    """Take the leader's assignment, or give a member its own: when Stable at once, else when the leader has synced.

    Kafka: GroupMetadataManager#classicGroupSyncToClassicGroup.
    """
    error = _error(group, request)
    if error:
        shard.reply(request.request_id, SyncGroupResult(error=error))
        return
    member = group.members[request.member_id]
    remove_pending_sync(shard, group, request.member_id)
    if group.state is not COMPLETING_REBALANCE:
        # A late follower. What a leader sends again in Stable is ignored; the session is not prolonged by this.
        shard.reply(request.request_id, assignment_result(group, member))
        return
    member.parked_sync = request.request_id
    note_progress(shard, group)
    if group.leader_id == request.member_id:
        complete_sync(shard, group, dict(request.assignments))


def _error(group: ClassicGroup, request: SyncGroup) -> ErrorCode:
    # In this order (GroupMetadataManager#validateSyncGroup), so that a fenced member learns that before its generation counts.
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


_RESULTS = {response.heartbeat: HeartbeatResult(error=response.heartbeat) for response in RESPONSES.values()}


def heartbeat(shard: Shard, group: ClassicGroup, request: Heartbeat) -> None:
    """Extend the member's session, and tell it to rejoin while a rebalance collects members.

    Kafka: GroupMetadataManager#classicGroupHeartbeatToClassicGroup, #validateClassicGroupHeartbeat.
    """
    state = group.state
    if state is EMPTY or state is DEAD:
        error = RESPONSES[state].heartbeat
    else:
        error = group.identity_error(request.member_id, request.group_instance_id)
        if not error and request.generation_id != group.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if not error:
            # Also while members are collected: who still works through the last records before joining again stays alive
            # meanwhile, for as long as the join phase lasts.
            extend_session(shard, group.members[request.member_id])
            shard.reply(request.request_id, _RESULTS[RESPONSES[state].heartbeat])
            return
    shard.reply(request.request_id, HeartbeatResult(error=error))


def on_session_timer(shard: Shard, timer: Timer) -> None:
    """Take out an id that was handed out and has not joined, or a member that was silent for its session timeout.

    A member whose request is parked is alive: it is left alone, and its timer is armed again when it is answered. A new one is
    not spared: its JoinGroup may be parked for a client that is long gone.
    Kafka: GroupMetadataManager#expireClassicGroupMemberHeartbeat.
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
    # Kafka does not ask here whether the phase is the initial one (GroupMetadataManager#maybeCompleteJoinPhase does), so an
    # expiry may end that one early.
    if group.state is PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(shard, group)


def leave_group(shard: Shard, group: ClassicGroup, request: LeaveGroup) -> None:
    """Take the named members out, each judged by itself; one rebalance for all of them (KIP-345).

    Kafka: GroupMetadataManager#classicGroupLeaveToClassicGroup.
    """
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
