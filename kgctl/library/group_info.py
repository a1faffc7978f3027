"""A group of an embedded coordinator, for reading: who is in it, since when, and what was heard of them last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kgctl.coordinator.classic.group import ClassicGroup, ClassicMember
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.group import Group
from kgctl.model.groups import ConsumerAssignment, GroupState, GroupType
from kgctl.model.values import frozen_in_order
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_assignment, decode_assignment_by_topic, decode_topics


class MemberPhase(StrEnum):
    """Where a member stands in its group."""

    JOINING = "Joining"
    AWAITING_SYNC = "AwaitingSync"
    STABLE = "Stable"


@dataclass(slots=True)
class Activity:
    """What only the driver sees: when things happened, in the coordinator's milliseconds."""

    created_ms: int
    last_activity_ms: int
    joined_ms: dict[str, int] = field(default_factory=dict)
    last_heartbeat_ms: dict[str, int] = field(default_factory=dict)


@frozen_in_order
class MemberInfo:
    """One member. Times are milliseconds of the coordinator's clock, None where nothing was heard yet.

    ``subscription`` and ``assignment`` are empty for members of another protocol type than "consumer", whose bytes kgctl does
    not read. ``assignment_version`` and ``user_data`` are what the leader wrote into the assignment's bytes: None where it wrote
    none yet, and in the consumer protocol, where the coordinator assigns.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    state: MemberPhase
    session_timeout_ms: int | None
    rebalance_timeout_ms: int
    subscription: tuple[str, ...]
    assignment: Mapping[str, tuple[int, ...]]
    joined_ms: int | None
    last_heartbeat_ms: int | None
    assignment_version: int | None = None
    user_data: bytes | None = None


@frozen_in_order
class GroupInfo:
    """One group. ``generation_id`` is the group epoch in the consumer protocol, which has no leader.

    ``session_timeout_ms`` and ``rebalance_timeout_ms`` are the longest of its members', which is how long a rebalance waits; None
    for a group without members, and for sessions of the consumer protocol, which are the coordinator's.
    """

    group_id: str
    type: GroupType
    state: GroupState
    state_timestamp_ms: int | None
    protocol_type: str
    protocol_name: str | None
    leader: str | None
    generation_id: int
    members: tuple[MemberInfo, ...]
    created_ms: int | None
    last_activity_ms: int | None

    @property
    def session_timeout_ms(self) -> int | None:
        """The longest session of a member."""
        return max((each.session_timeout_ms for each in self.members if each.session_timeout_ms is not None), default=None)

    @property
    def rebalance_timeout_ms(self) -> int | None:
        """The longest time that a member may take to join again."""
        return max((each.rebalance_timeout_ms for each in self.members), default=None)

    @property
    def subscribed_topics(self) -> tuple[str, ...]:
        """All topics that a member subscribes to, by name."""
        return tuple(sorted({topic for member in self.members for topic in member.subscription}))


def group_info(group: Group, activity: Activity | None, topic_names: Mapping[object, str]) -> GroupInfo:
    """Return the group as it is now; ``topic_names`` by topic id."""
    if isinstance(group, ClassicGroup):
        members = tuple(_classic_member(group, member, activity) for member in group.members.values())
        since_ms, name, leader, number = group.state_timestamp_ms, group.protocol_name, group.leader_id, group.generation_id
    elif isinstance(group, ConsumerGroup):
        members = _consumer_members(group, activity, topic_names)
        since_ms, name, leader, number = None, None, None, group.group_epoch
    else:
        members, since_ms, name, leader, number = (), None, None, None, -1
    return GroupInfo(
        group_id=group.group_id,
        type=group.type,
        state=group.group_state,
        state_timestamp_ms=since_ms,
        protocol_type=group.listed_protocol_type,
        protocol_name=name,
        leader=leader,
        generation_id=number,
        members=members,
        created_ms=activity.created_ms if activity else None,
        last_activity_ms=activity.last_activity_ms if activity else None,
    )


def _classic_member(group: ClassicGroup, member: ClassicMember, activity: Activity | None) -> MemberInfo:
    if member.parked_join is not None or group.state is GroupState.PREPARING_REBALANCE:
        state = MemberPhase.JOINING
    else:
        state = MemberPhase.AWAITING_SYNC if member.member_id in group.pending_syncs else MemberPhase.STABLE
    is_consumer = group.protocol_type == "consumer"
    assigned = _assigned(member) if is_consumer else None
    return MemberInfo(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        state=state,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscription=_topics(member) if is_consumer else (),
        assignment=decode_assignment_by_topic(member.assignment) if assigned is not None else {},
        joined_ms=activity.joined_ms.get(member.member_id) if activity else None,
        last_heartbeat_ms=activity.last_heartbeat_ms.get(member.member_id) if activity else None,
        assignment_version=None if assigned is None else assigned.version,
        user_data=None if assigned is None else assigned.user_data,
    )


def _topics(member: ClassicMember) -> tuple[str, ...]:
    try:
        return decode_topics(member.protocols[0].metadata) if member.protocols else ()
    except MalformedConsumerProtocol:
        return ()


def _assigned(member: ClassicMember) -> ConsumerAssignment | None:
    try:
        return decode_assignment(member.assignment) if member.assignment else None
    except MalformedConsumerProtocol:
        return None


def _consumer_members(
    group: ConsumerGroup, activity: Activity | None, topic_names: Mapping[object, str]
) -> tuple[MemberInfo, ...]:
    return tuple(
        MemberInfo(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            state=MemberPhase.STABLE if member.is_reconciled_to(group.assignment_epoch) else MemberPhase.JOINING,
            session_timeout_ms=None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            subscription=member.subscribed_topics or tuple(sorted(member.topic_set)),
            assignment={
                topic_names[topic_id]: tuple(sorted(partitions))
                for topic_id, partitions in member.assigned.items()
                if topic_id in topic_names
            },
            joined_ms=activity.joined_ms.get(member.member_id) if activity else None,
            last_heartbeat_ms=activity.last_heartbeat_ms.get(member.member_id) if activity else None,
        )
        for member in group.members.values()
    )
