"""From members to a generation: who leads, which protocol counts, which topics are used, and the record of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kgctl.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from kgctl.coordinator.classic.states import COMPLETING_REBALANCE, EMPTY
from kgctl.model.java_order import hash_map_order
from kgctl.model.records import GroupMetadataValue, MemberMetadata
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_topics


def elect_leader_that_joined(group: ClassicGroup) -> bool:
    """Keep the leader, or make the first member that joined lead. False: nobody has joined.

    Kafka: ClassicGroup#maybeElectNewJoinedLeader.
    """
    if group.leader_id is None:
        return False
    if group.members[group.leader_id].parked_join is not None:
        return True
    for member in group.members.java_values() if group.parked_joins else ():
        if member.parked_join is not None:
            group.leader_id = member.member_id
            return True
    return False


def elect_protocol(group: ClassicGroup) -> str:
    """The protocol with most votes among those that all members support; a tie goes to the first in the order of a Java HashMap.

    Kafka: ClassicGroup#selectProtocol. There must be members.
    """
    size = len(group.members)
    candidates = frozenset(name for name, count in group.supported_protocols.items() if count == size)
    votes = Counter(member.vote(candidates) for member in group.members.java_values())
    return max(hash_map_order(votes), key=votes.__getitem__)


def start_next_generation(group: ClassicGroup, now_ms: int) -> None:
    """The join phase is over: Empty, or CompletingRebalance with a protocol. Kafka: ClassicGroup#initNextGeneration."""
    group.generation_id += 1
    group.protocol_name = elect_protocol(group) if group.members else None
    group.subscribed_topics = compute_subscribed_topics(group)
    group.transition_to(COMPLETING_REBALANCE if group.members else EMPTY, now_ms)


def compute_subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The union of what the members' metadata for the elected protocol says; None where only the members can know.

    Kafka: ClassicGroup#computeSubscribedTopics.
    """
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    protocol = group.protocol_name or ""
    topics: set[str] = set()
    for metadata in {member.metadata(protocol) for member in group.members.values()}:
        try:
            topics.update(decode_topics(metadata))
        except MalformedConsumerProtocol:
            return None
    return frozenset(topics)


def record_value(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
    """The group as its record says it, with these assignments (nothing for a member they lack) or the ones that the members have.

    Kafka: GroupCoordinatorRecordHelpers#newGroupMetadataRecord.
    """
    protocol = group.protocol_name or ""
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            subscription=member.metadata(protocol),
            assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
        )
        for member in group.members.java_values()
    )
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=-1 if group.state_timestamp_ms is None else group.state_timestamp_ms,
        members=members,
    )
