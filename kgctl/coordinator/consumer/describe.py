"""ConsumerGroupDescribe, where a group's reconciliation stands, and what must hold.

Kafka: ConsumerGroup#asDescribedGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from kgctl.coordinator.consumer.group import FREE, ConsumerGroup
from kgctl.coordinator.consumer.member import STATIC_LEAVE_EPOCH, ConsumerMember, MemberState
from kgctl.coordinator.consumer.target_assignment import described_assignor
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    AwaitedMember,
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
    RebalanceStatus,
    TopicPartitions,
)
from kgctl.model.values import hash_map_order, uuid_hash


def handle_consumer_group_describe(shard: Shard, request: ConsumerGroupDescribe) -> None:
    """ConsumerGroupDescribe: groups of this protocol; of every other id there is none."""
    existing = {topic.topic_id for topic in shard.image.topics.values()}
    groups = tuple(_describe(shard, group_id, existing) for group_id in request.group_ids)
    shard.reply(request.request_id, ConsumerGroupDescribeResult(groups=groups))


def _describe(shard: Shard, group_id: str | None, existing: set[UUID]) -> ConsumerGroupDescribedGroup:
    if not group_id:
        return ConsumerGroupDescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID)
    group = shard.settled_group(group_id)
    if not isinstance(group, ConsumerGroup):
        message = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a consumer group."
        return ConsumerGroupDescribedGroup(group_id=group_id, error=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    return ConsumerGroupDescribedGroup(
        group_id=group_id,
        state=group.group_state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=described_assignor(shard, group),
        members=tuple(_describe_member(group, member, existing) for member in group.members.java_values()),
    )


def _describe_member(group: ConsumerGroup, member: ConsumerMember, existing: set[UUID]) -> ConsumerGroupDescribedMember:
    return ConsumerGroupDescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topics,
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_held(member, existing),
        target_assignment=_topics(group.target_of(member.member_id).items(), existing),
        member_type=0 if member.uses_classic_protocol else 1,
    )


def _held(member: ConsumerMember, existing: set[UUID]) -> TopicPartitions:
    """What it owns and what it still has to revoke: it answers for both."""
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, []).extend(epochs)
    return _topics(((topic_id, held[topic_id]) for topic_id in hash_map_order(held, hash_of=uuid_hash)), existing)


def _topics(topics: Iterable[tuple[UUID, Sequence[int]]], existing: set[UUID]) -> TopicPartitions:
    return tuple((topic_id, tuple(numbers)) for topic_id, numbers in topics if topic_id in existing)


def rebalance_status(shard: Shard, group: ConsumerGroup) -> RebalanceStatus:
    """Who keeps the group from being Stable: members that are not at their target yet."""
    awaited = [
        AwaitedMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            waiting_for=member.state.name,
            session_deadline_ms=shard.timers.deadline_ms(TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id)),
        )
        for member_id, member in sorted(group.members.items())
        if not member.is_reconciled_to(group.assignment_epoch)
    ]
    is_assigning = group.group_epoch > group.assignment_epoch and bool(group.members)
    deadlines = [shard.timers.deadline_ms(TimerKey(TimerKind.CONSUMER_REBALANCE, group.group_id, a.member_id)) for a in awaited]
    return RebalanceStatus(
        group_id=group.group_id,
        state=group.group_state.value,
        generation_id=group.group_epoch,
        waiting_for="assignment" if is_assigning else "reconciliation" if awaited else None,
        deadline_ms=min((deadline for deadline in deadlines if deadline is not None), default=None),
        awaited=tuple(awaited),
    )


def check_group(shard: Shard, group: ConsumerGroup) -> None:
    """Raises `InvariantViolation`, with the group's story, for the first thing that does not hold."""
    epochs = () if group.group_id in shard.forgotten else _broken_epochs(group)
    for what in (*_broken_owners(group), *epochs, *_broken_counts(group), *_broken_timers(shard, group)):
        raise shard.violation(group.group_id, what)


def _broken_owners(group: ConsumerGroup) -> Iterator[str]:
    """A partition belongs to one member at most, until that one has given it up; and to one target."""
    owners: dict[UUID, dict[int, str]] = {}
    for member in group.members.values():
        for partitions in (member.assigned, member.pending_revocation):
            for topic_id, epochs in partitions.items():
                known, holders = group.partition_epochs.get(topic_id, {}), owners.setdefault(topic_id, {})
                for number in epochs:
                    other = holders.setdefault(number, member.member_id)
                    if other != member.member_id:
                        yield f"partition {number} of {topic_id} belongs to {other!r} and to {member.member_id!r}"
                    if known.get(number, FREE) != member.member_epoch:
                        yield f"partition {number} of {topic_id} is not at the epoch of {member.member_id!r}"
    if sum(map(len, owners.values())) != sum(map(len, group.partition_epochs.values())):
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
        if any(epoch > max(member.member_epoch, 0) for epochs in member.assigned.values() for epoch in epochs.values()):
            yield f"member {member.member_id!r} got a partition at an epoch it has not reached"


def _broken_counts(group: ConsumerGroup) -> Iterator[str]:
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


def _broken_timers(shard: Shard, group: ConsumerGroup) -> Iterator[str]:
    """Every member has a session; who has to revoke has a limit for it."""
    for member_id, member in group.members.items():
        if TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id) not in shard.timers:
            yield f"member {member_id!r} has no session timer"
        revokes = member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch != STATIC_LEAVE_EPOCH
        has_timer = TimerKey(TimerKind.CONSUMER_REBALANCE, group.group_id, member_id) in shard.timers
        if revokes and not has_timer and not group.has_had_classic_members:
            yield f"member {member_id!r} has partitions to revoke and no limit for it"
