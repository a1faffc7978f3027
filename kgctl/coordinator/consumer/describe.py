"""ConsumerGroupDescribe, and where a group's reconciliation stands. Kafka: ConsumerGroup#asDescribedGroup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from kgctl.coordinator.consumer.assignment.target_assignment import described_assignor
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.requests import ConsumerGroupDescribe
from kgctl.coordinator.results import (
    AwaitedMember,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
    RebalanceStatus,
    TopicPartitions,
)
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.model.error_codes import ErrorCode
from kgctl.model.java_order import hash_map_order, uuid_hash


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
