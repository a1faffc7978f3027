"""What must hold between two calls of the coordinator. If it does not: `InvariantViolation`, a bug, with the group's story."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from kgctl.coordinator.classic.group import DEAD, PREPARING_REBALANCE, STATE, ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import STATIC_LEAVE_EPOCH, ConsumerMember
from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.member import MemberState
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.group import ShareGroup
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import StreamsMemberState
from kgctl.coordinator.timers import TimerKind, member_timer
from kgctl.model.groups import GroupType


def check_shard(shard: Shard) -> None:
    """Check every group, and that committed offsets have one. Raises `InvariantViolation`."""
    for group_id in shard.offsets.group_ids():
        if group_id not in shard.groups and group_id not in shard.forgotten:
            raise shard.violation(group_id, "there are offsets but no group")
    for group_id in shard.share_partitions:
        if not isinstance(shard.groups.get(group_id), ShareGroup):
            raise shard.violation(group_id, "state of partitions is kept but for no share group")
    for group_id, group in shard.groups.items():
        if group_id != group.group_id:
            raise shard.violation(group_id, f"it is registered under another id than its own, {group.group_id!r}")
        check_group(shard, group)


def check_group(shard: Shard, group: Group) -> None:
    """Check one group by the rules of its type. Raises `InvariantViolation`."""
    check = CHECKS.get(group.type)
    if check is not None:
        check(shard, group)


def check_classic(shard: Shard, group: ClassicGroup) -> None:
    """Check a classic group: its counts, the facts of its state, its timers."""
    if group.state is DEAD:
        return
    for what in (*_broken_counts(group), *_broken_facts(group), *_broken_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_counts(group: ClassicGroup) -> Iterator[str]:
    """The numbers and maps kept beside the members agree with them."""
    members = group.members.values()
    if group.parked_joins != sum(member.parked_join is not None for member in members):
        yield "the number of parked joins is wrong"
    if group.static_members != {m.group_instance_id: m.member_id for m in members if m.group_instance_id is not None}:
        yield "the static members are not those among the members"
    supported = {name: count for name, count in group.supported_protocols.items() if count}
    if supported != _supported(group):
        yield "the counts of supported protocols are wrong"
    if any(member_id in group.members for member_id in group.pending_joins):
        yield "a member is pending as well"
    if (group.leader_id is None) == bool(members) or (group.leader_id is not None and group.leader_id not in group.members):
        yield f"the leader {group.leader_id!r} is no member, or there is none"


def _supported(group: ClassicGroup) -> dict[str, int]:
    counts: dict[str, int] = {}
    for member in group.members.values():
        for name in member.protocol_names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _broken_facts(group: ClassicGroup) -> Iterator[str]:
    """Yield what contradicts the state's entry in STATE."""
    facts = STATE[group.state]
    members = group.members.values()
    if members and not facts.may_have_members:
        yield f"it has members in {group.state}"
    if any(member.parked_join is not None for member in members) and not facts.may_park_joins:
        yield f"a JoinGroup is parked in {group.state}"
    if any(member.parked_sync is not None for member in members) and not facts.may_park_syncs:
        yield f"a SyncGroup is parked in {group.state}"
    if facts.has_protocol != (group.protocol_name is not None) and group.state is not PREPARING_REBALANCE:
        yield f"its protocol is {group.protocol_name!r} in {group.state}"
    if facts.has_protocol and not members:
        yield f"it has no members in {group.state}"


def _broken_timers(shard: Shard, group: ClassicGroup) -> Iterator[str]:
    """Timers exist for exactly those that need one: a member that is spared while its request is parked may have none."""
    timers, odd = shard.timers, group.group_id in shard.upgraded
    needed = ((group.join_timer, STATE[group.state].has_join_timer), (group.sync_timer, bool(group.pending_syncs)))
    for key, is_needed in needed:
        if (key in timers) != is_needed and (is_needed or not odd):
            yield f"the {key.kind} timer is wrong in {group.state}"
    for member in group.members.values():
        if member.session_timer not in timers and (member.is_new or not member.is_waiting) and not odd:
            yield f"member {member.member_id!r} has no session timer"
    for member_id in group.pending_joins:
        if group.session_timer(member_id) not in timers:
            yield f"pending id {member_id!r} has no timer"


def check_consumer(shard: Shard, group: ConsumerGroup) -> None:
    """Raises `InvariantViolation`, with the group's story, for the first thing that does not hold."""
    epochs = () if group.group_id in shard.forgotten else _broken_epochs(group)
    for what in (*_broken_owners(group), *epochs, *_broken_consumer_counts(group), *_broken_consumer_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_owners(group: ConsumerGroup) -> Iterator[str]:
    """A partition belongs to one member at most, until that one has given it up, and that one counts as its owner."""
    owners: dict[UUID, dict[int, str]] = {}
    count = 0
    for member in group.members.values():
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                owners.setdefault(topic_id, {}).update(dict.fromkeys(epochs, member.member_id))
                count += len(epochs)
    # All partitions at once, which is cheap; one by one only to say which one it is.
    if owners != group.partition_owners or sum(map(len, owners.values())) != count:
        yield from _wrong_owners(group)


def _wrong_owners(group: ConsumerGroup) -> Iterator[str]:
    owners: dict[UUID, dict[int, str]] = {}
    for member in group.members.values():
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                known, holders = group.partition_owners.get(topic_id, {}), owners.setdefault(topic_id, {})
                for number in epochs:
                    other = holders.setdefault(number, member.member_id)
                    if other != member.member_id:
                        yield f"partition {number} of {topic_id} belongs to {other!r} and to {member.member_id!r}"
                    if known.get(number) != member.member_id:
                        yield f"partition {number} of {topic_id} does not count as owned by {member.member_id!r}"
    if sum(map(len, owners.values())) != sum(map(len, group.partition_owners.values())):
        yield "partitions count as owned that nobody owns"


def _broken_epochs(group: ConsumerGroup) -> Iterator[str]:
    if group.assignment_epoch > group.group_epoch:
        yield f"the assignment epoch {group.assignment_epoch} is above the group epoch {group.group_epoch}"
    for member in group.members.values():
        if member.member_epoch > group.assignment_epoch:
            yield f"member {member.member_id!r} at epoch {member.member_epoch} is ahead of the target"
        if member.member_epoch < 0 and member.member_epoch != STATIC_LEAVE_EPOCH:
            yield f"member {member.member_id!r} is at epoch {member.member_epoch}"
        if member.pending_revocation and member.state is not MemberState.UNREVOKED_PARTITIONS:
            yield f"member {member.member_id!r} has partitions to revoke in {member.state.name}"
        if any(max(epochs.values(), default=0) > max(member.member_epoch, 0) for epochs in member.assigned.values()):
            yield f"member {member.member_id!r} got a partition at an epoch it has not reached"


def _broken_consumer_counts(group: ConsumerGroup) -> Iterator[str]:
    """Yield where the maps that are kept beside the members do not agree with them."""
    members = list(group.members.values())
    if not {(m.instance_id, m.member_id) for m in members if m.instance_id is not None} <= set(group.static_members.items()):
        yield "a static member is not known by its instance id"
    if group.regex_subscribers != Counter(m.regex for m in members if m.regex is not None):
        yield "the counts of regular expressions are wrong"
    if group.assignor_counts != Counter(m.server_assignor for m in members if m.server_assignor is not None):
        yield "the counts of assignors are wrong"
    if group.classic_member_count != sum(m.uses_classic_protocol for m in members):
        yield "the number of classic members is wrong"
    if {topic: count.by_name for topic, count in group.topic_counts.items() if count.by_name} != _by_name(members):
        yield "the counts of subscribed topics are wrong"
    if any(member_id not in group.members for member_id in group.targets):
        yield "there is a target for somebody who is no member"


def _by_name(members: list[ConsumerMember]) -> dict[str, int]:
    return dict(Counter(topic for member in members for topic in member.topic_set))


def _broken_consumer_timers(shard: Shard, group: ConsumerGroup) -> Iterator[str]:
    """Every member has a session; who has to revoke has a limit for it."""
    for member_id, member in group.members.items():
        if member_timer(TimerKind.CONSUMER_SESSION, group.group_id, member_id) not in shard.timers:
            yield f"member {member_id!r} has no session timer"
        revokes = member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch != STATIC_LEAVE_EPOCH
        needs_limit = revokes and not group.has_had_classic_members
        if needs_limit and member_timer(TimerKind.CONSUMER_REBALANCE, group.group_id, member_id) not in shard.timers:
            yield f"member {member_id!r} has partitions to revoke and no limit for it"


def check_share(shard: Shard, group: ShareGroup) -> None:
    """Raises `InvariantViolation`, with the group's story, for the first thing that does not hold."""
    for what in (*_broken_share_epochs(group), *_broken_share_counts(group), *_broken_share_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_share_epochs(group: ShareGroup) -> Iterator[str]:
    if group.assignment_epoch > group.group_epoch:
        yield f"the assignment epoch {group.assignment_epoch} is above the group epoch {group.group_epoch}"
    for member in group.members.values():
        if not 0 <= member.member_epoch <= group.assignment_epoch:
            yield f"member {member.member_id!r} at epoch {member.member_epoch} is ahead of the target, or nowhere"


def _broken_share_counts(group: ShareGroup) -> Iterator[str]:
    counts = Counter(topic for member in group.members.values() for topic in member.topic_set)
    if group.topic_counts != counts:
        yield "the counts of subscribed topics are wrong"
    if group.is_homogeneous != all(count == len(group.members) for count in counts.values()):
        yield "it is not known whether all members subscribe to the same"
    if any(member_id not in group.members for member_id in group.targets):
        yield "there is a target for somebody who is no member"


def _broken_share_timers(shard: Shard, group: ShareGroup) -> Iterator[str]:
    for member_id in group.members:
        if group.session_timer(member_id) not in shard.timers:
            yield f"member {member_id!r} has no session timer"


def check_streams(shard: Shard, group: StreamsGroup) -> None:
    """Raises `InvariantViolation`, with the group's story, for the first thing that does not hold."""
    epochs = () if group.group_id in shard.forgotten else _broken_streams_epochs(group)
    for what in (*epochs, *_broken_tasks(group), *_broken_streams_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_streams_epochs(group: StreamsGroup) -> Iterator[str]:
    if group.assignment_epoch > group.group_epoch:
        yield f"the assignment epoch {group.assignment_epoch} is above the group epoch {group.group_epoch}"
    for member in group.members.values():
        # Who waits for a first target is at epoch 1.
        if not 0 <= member.member_epoch <= max(group.assignment_epoch, 1):
            yield f"member {member.member_id!r} at epoch {member.member_epoch} is ahead of the target, or nowhere"
        if any(member.pending_revocation) and member.state is not StreamsMemberState.UNREVOKED_TASKS:
            yield f"member {member.member_id!r} has tasks to give up in {member.state.name}"
    if any(member_id not in group.members for member_id in group.targets):
        yield "there is a target for somebody who is no member"


def _broken_tasks(group: StreamsGroup) -> Iterator[str]:
    """One member at most processes a task, until it has given it up; and it is known which processes have which tasks."""
    processed = Counter(
        (key, number)
        for member in group.members.values()
        for tasks in (member.assigned, member.pending_revocation)
        for key, numbers in tasks.active.items()
        for number in numbers
    )
    if any(count > 1 for count in processed.values()):
        yield f"tasks are processed twice: {sorted(task for task, count in processed.items() if count > 1)}"
    if not group.processes.agrees_with(group.members.values()):
        yield "the processes of tasks are wrong"


def _broken_streams_timers(shard: Shard, group: StreamsGroup) -> Iterator[str]:
    """Every member has a session; who has to give tasks up has a limit for it."""
    for member_id, member in group.members.items():
        session, rebalance = group.member_timers(member_id)
        if session not in shard.timers:
            yield f"member {member_id!r} has no session timer"
        revokes = member.state is StreamsMemberState.UNREVOKED_TASKS
        if (rebalance in shard.timers) != revokes and not group.has_loose_timers:
            yield f"the limit for the tasks that member {member_id!r} has to give up is wrong"


CHECKS: dict[GroupType, Callable[[Shard, Any], None]] = {
    GroupType.CLASSIC: check_classic,
    GroupType.CONSUMER: check_consumer,
    GroupType.SHARE: check_share,
    GroupType.STREAMS: check_streams,
}
"""Group type -> its checks."""
