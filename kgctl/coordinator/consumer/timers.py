"""The timers of members: a session for each, and a limit on how long it may hold on to partitions or keep others waiting.

Names of timers are Kafka's; one that finds its member or group gone does nothing. Kafka: GroupMetadataManager#schedule*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kgctl.coordinator.consumer.downgrade import can_downgrade, downgrade
from kgctl.coordinator.consumer.group import MEMBER_TIMERS, ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.records import member_tombstones, tombstone
from kgctl.coordinator.consumer.subscription import epoch_records, topic_counts_without
from kgctl.coordinator.modern.member import MemberState
from kgctl.coordinator.modern.timers import fencing
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import Timer, TimerKey, TimerKind, member_timer
from kgctl.model.coordinator_records import ConsumerGroupRegularExpressionKey, CoordinatorRecord
from kgctl.model.values import hash_map_order


def fence_members(shard: Shard, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> None:
    """Take members out and bump the group epoch once. The next heartbeat of somebody else computes the new target.

    When only members of the classic protocol are left, the group becomes a classic one, if the migration policy allows it.
    """
    if not members:
        return
    if can_downgrade(shard, group, members):
        downgrade(shard, group, members)
        return
    records: list[CoordinatorRecord] = []
    for member in members:
        records += member_tombstones(group.group_id, member.member_id)
    regexes = _regexes_of_nobody(group, members)
    records += [tombstone(ConsumerGroupRegularExpressionKey(group.group_id, regex)) for regex in regexes]
    # Nobody's heartbeat is under way here, so no target is computed: who beats next finds the group epoch ahead, and pays for
    # it (GroupMetadataManager#consumerGroupFenceMember).
    records += epoch_records(group, topic_counts_without(group, members, regexes), shard.image, bump=True)
    # All at once: one new epoch, and so one new target, however many go.
    for member in members:
        for key in group.member_timers(member.member_id):
            shard.disarm(key)
    for record in records:
        shard.append_record(record)


def _regexes_of_nobody(group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> list[str]:
    """Return the expressions that only these members use."""
    counts = Counter(member.regex for member in leaving if member.regex is not None)
    return [regex for regex in hash_map_order(counts) if counts[regex] == group.regex_subscribers.get(regex, 0)]


def arm_session(shard: Shard, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
    """Start the member's session anew. ``timeout_ms`` None: the group's session timeout.

    Kafka: GroupMetadataManager#scheduleConsumerGroupSessionTimeout.
    """
    if timeout_ms is None:
        timeout_ms = shard.group_config(group_id).consumer_session_timeout_ms
    shard.timers.arm(member_timer(TimerKind.CONSUMER_SESSION, group_id, member_id), shard.now_ms + timeout_ms)


def arm_rebalance(shard: Shard, group_id: str, member: ConsumerMember) -> None:
    """Give the member its rebalance timeout to revoke partitions, for which other members wait.

    Kafka: GroupMetadataManager#scheduleConsumerGroupRebalanceTimeout.
    """
    key = TimerKey(TimerKind.CONSUMER_REBALANCE, group_id, member.member_id)
    shard.arm(key, member.rebalance_timeout_ms, member.member_epoch)


def disarm_rebalance(shard: Shard, group_id: str, member_id: str) -> None:
    """Stop the revocation's time: the member has given up what it had to."""
    shard.timers.cancel(member_timer(TimerKind.CONSUMER_REBALANCE, group_id, member_id))


def arm_join_if_absent(shard: Shard, group_id: str, member: ConsumerMember) -> None:
    """Give a classic member that was told to join again its rebalance timeout for it, unless it has that already.

    Kafka: GroupMetadataManager#scheduleConsumerGroupJoinTimeoutIfAbsent.
    """
    key = TimerKey(TimerKind.CONSUMER_JOIN, group_id, member.member_id)
    shard.timers.arm_if_absent(key, shard.now_ms + member.rebalance_timeout_ms)


def disarm_join(shard: Shard, group_id: str, member_id: str) -> None:
    """Stop the wait for the classic member's JoinGroup."""
    shard.disarm(TimerKey(TimerKind.CONSUMER_JOIN, group_id, member_id))


def arm_sync(shard: Shard, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Give a classic member whose JoinGroup is answered this long for its SyncGroup.

    Kafka: GroupMetadataManager#scheduleConsumerGroupSyncTimeout.
    """
    shard.arm(TimerKey(TimerKind.CONSUMER_SYNC, group_id, member_id), timeout_ms)


def disarm_sync(shard: Shard, group_id: str, member_id: str) -> None:
    """Stop the wait for the classic member's SyncGroup."""
    shard.disarm(TimerKey(TimerKind.CONSUMER_SYNC, group_id, member_id))


def wake_group(shard: Shard, group: ConsumerGroup) -> None:
    """The log is loaded: all sessions start anew, with the group's timeout also for members of the classic protocol."""
    if group.assignment_epoch > group.group_epoch:
        # The group was dropped from memory only, and made anew: the log has records of both.
        shard.forgotten[group.group_id] = None
    for member in group.members.java_values():
        # Heartbeats went elsewhere while the log was read: none of that silence is held against a member
        # (GroupMetadataManager#onLoaded).
        arm_session(shard, group.group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            arm_rebalance(shard, group.group_id, member)


def _fence(shard: Shard, group: ConsumerGroup, member: ConsumerMember) -> None:
    fence_members(shard, group, [member])


CONSUMER_TIMERS: dict[TimerKind, Callable[[Shard, Timer], None]] = {
    **dict.fromkeys(MEMBER_TIMERS, fencing(ConsumerGroup, _fence)),
    TimerKind.CONSUMER_REBALANCE: fencing(ConsumerGroup, _fence, at_epoch=True),
}
