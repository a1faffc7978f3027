"""What the coordinator says of groups, as an administrator sees it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kgctl.coordinator.results import (
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    DescribedGroup,
    DescribedMember,
    ListedGroup,
    TopicPartitions,
)
from kgctl.model.groups import Assignment, GroupDescription, GroupListing, GroupState, GroupType, MemberDescription
from kgctl.serde.consumer_protocol import decode_assignment_by_topic, decode_subscription

_CONSUMER = "consumer"
_CLASSIC_MEMBER = 0


def listing(group: ListedGroup) -> GroupListing:
    """One group of a listing."""
    return GroupListing(group.group_id, group.protocol_type, GroupState(group.state), GroupType(group.type))


def classic_group(group: DescribedGroup) -> GroupDescription:
    """A group of the classic protocol."""
    is_of_consumers = group.protocol_type == _CONSUMER
    members = (_classic_member(member, is_of_consumers=is_of_consumers) for member in group.members)
    return GroupDescription(
        group_id=group.group_id or "",
        state=GroupState(group.state),
        type=GroupType.CLASSIC,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data or None,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


def consumer_group(group: ConsumerGroupDescribedGroup, names: Mapping[UUID, str]) -> GroupDescription:
    """A group of the consumer protocol; ``names`` are those of the topics, of which one may have been deleted."""
    return GroupDescription(
        group_id=group.group_id,
        state=GroupState(group.state),
        type=GroupType.CONSUMER,
        protocol_type=_CONSUMER,
        assignor=group.assignor_name or None,
        members=tuple(sorted((_consumer_member(member, names) for member in group.members), key=lambda m: m.member_id)),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
    )


def _classic_member(member: DescribedMember, *, is_of_consumers: bool) -> MemberDescription:
    topics, rack = _subscription_of(member.metadata) if is_of_consumers else (None, None)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.group_instance_id,
        rack_id=rack,
        assignment=_assignment_of(member.assignment) if is_of_consumers else None,
        subscribed_topics=topics,
    )


def _assignment_of(data: bytes) -> Assignment | None:
    """None between two generations (no bytes), or where the bytes are not those of a consumer."""
    try:
        by_topic = decode_assignment_by_topic(data) if data else None
    except ValueError:
        return None
    return None if by_topic is None else {topic: tuple(sorted(by_topic[topic])) for topic in sorted(by_topic)}


def _subscription_of(data: bytes) -> tuple[tuple[str, ...] | None, str | None]:
    try:
        subscription = decode_subscription(data) if data else None
    except ValueError:
        return None, None
    return (tuple(sorted(subscription.topics)), subscription.rack_id) if subscription else (None, None)


def _consumer_member(member: ConsumerGroupDescribedMember, names: Mapping[UUID, str]) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        assignment=_by_topic(member.assignment, names),
        target_assignment=_by_topic(member.target_assignment, names),
        subscribed_topics=tuple(sorted(member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        member_epoch=member.member_epoch,
        is_classic_in_consumer_group=member.member_type == _CLASSIC_MEMBER,
    )


def _by_topic(assignment: TopicPartitions, names: Mapping[UUID, str]) -> Assignment:
    named = {names[topic_id]: tuple(sorted(partitions)) for topic_id, partitions in assignment if topic_id in names}
    return dict(sorted(named.items()))
