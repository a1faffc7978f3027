"""The timers of streams groups: a session for each member, a limit on how long it may hold on to tasks. Members that are fenced.

Kafka: GroupMetadataManager#scheduleStreamsGroup*, #streamsGroupFenceMember.
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.coordinator.modern.timers import fencing
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMember, StreamsMemberState
from kgctl.coordinator.streams.records import group_record, member_tombstone_keys
from kgctl.coordinator.timers import Timer, TimerKind


def fence(shard: Shard, group: StreamsGroup, member: StreamsMember) -> None:
    """Take a member out and bump the group epoch; the next heartbeat of somebody else computes the new target."""
    record = group_record(
        group.group_id,
        group.group_epoch + 1,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.last_assignment_configs,
    )
    for key in group.member_timers(member.member_id):
        shard.disarm(key)
    shard.append_tombstones(member_tombstone_keys(group.group_id, member.member_id))
    shard.append_record(record)


def arm_session(shard: Shard, group: StreamsGroup, member_id: str) -> None:
    """Start the member's session anew."""
    session, _ = group.member_timers(member_id)
    shard.arm(session, shard.group_config(group.group_id).streams_session_timeout_ms)


def watch_revocation(shard: Shard, group: StreamsGroup, member: StreamsMember) -> None:
    """Give the member its rebalance timeout to give tasks up, if it has to; else stop that time."""
    _, rebalance = group.member_timers(member.member_id)
    if member.has_assignment and member.state is StreamsMemberState.UNREVOKED_TASKS:
        shard.arm(rebalance, member.rebalance_timeout_ms, member.member_epoch)
    else:
        shard.disarm(rebalance)


def _on_initial_rebalance_timer(shard: Shard, timer: Timer) -> None:
    from kgctl.coordinator.streams.target_assignment import on_initial_rebalance_timer  # entered with the first group

    on_initial_rebalance_timer(shard, timer)


def wake_streams_group(shard: Shard, group: StreamsGroup) -> None:
    """The log is loaded: all sessions start anew, and so does the time of those that have to give tasks up."""
    for member in group.members.java_values():
        arm_session(shard, group, member.member_id)
        watch_revocation(shard, group, member)


STREAMS_TIMERS: dict[TimerKind, Callable[[Shard, Timer], None]] = {
    TimerKind.STREAMS_SESSION: fencing(StreamsGroup, fence),
    TimerKind.STREAMS_REBALANCE: fencing(StreamsGroup, fence, at_epoch=True),
    TimerKind.STREAMS_INITIAL_REBALANCE: _on_initial_rebalance_timer,
}
