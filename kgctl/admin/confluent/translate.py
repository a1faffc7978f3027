"""confluent-kafka's objects in kgctl's terms, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.model.groups import (
    Assignment,
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    Node,
)
from kgctl.model.offsets import OffsetAndMetadata
from kgctl.model.partitions import TopicPartition

STATES: Mapping[ConsumerGroupState, GroupState] = {
    ConsumerGroupState.PREPARING_REBALANCING: GroupState.PREPARING_REBALANCE,
    ConsumerGroupState.COMPLETING_REBALANCING: GroupState.COMPLETING_REBALANCE,
    ConsumerGroupState.STABLE: GroupState.STABLE,
    ConsumerGroupState.DEAD: GroupState.DEAD,
    ConsumerGroupState.EMPTY: GroupState.EMPTY,
}
"""States that librdkafka has; Assigning, Reconciling and NotReady come as UNKNOWN."""

TYPES: Mapping[ConsumerGroupType, GroupType] = {
    ConsumerGroupType.CONSUMER: GroupType.CONSUMER,
    ConsumerGroupType.CLASSIC: GroupType.CLASSIC,
}
"""Types that librdkafka has; share and streams groups do not come at all."""


def state(found: ConsumerGroupState) -> GroupState:
    """The state in Kafka's spelling."""
    return STATES.get(found, GroupState.UNKNOWN)


def group_type(found: ConsumerGroupType | None) -> GroupType:
    """The type in Kafka's spelling."""
    return GroupType.UNKNOWN if found is None else TYPES.get(found, GroupType.UNKNOWN)


def listing(found: Any) -> GroupListing:
    """A ConsumerGroupListing; librdkafka lists only groups whose protocol type is "consumer" or none."""
    protocol_type = "" if found.is_simple_consumer_group else "consumer"
    return GroupListing(found.group_id, protocol_type, state(found.state), group_type(found.type))


def description(found: Any) -> GroupDescription:
    """A ConsumerGroupDescription; it has no epochs."""
    return GroupDescription(
        group_id=found.group_id,
        state=state(found.state),
        type=group_type(found.type),
        protocol_type="" if found.is_simple_consumer_group else "consumer",
        assignor=found.partition_assignor or None,
        coordinator=_node(found.coordinator),
        members=tuple(sorted((_member(member) for member in found.members), key=lambda member: member.member_id)),
    )


def _node(found: Any) -> Node | None:
    return Node(found.id, found.host, found.port) if found else None


def _member(found: Any) -> MemberDescription:
    return MemberDescription(
        member_id=found.member_id,
        client_id=found.client_id,
        host=found.host,
        group_instance_id=found.group_instance_id or None,
        assignment=_assignment(found.assignment),
        target_assignment=_assignment(found.target_assignment),
    )


def _assignment(found: Any) -> Assignment | None:
    if found is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for each in found.topic_partitions:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return {topic: tuple(sorted(by_topic[topic])) for topic in sorted(by_topic)}


def committed(found: ConfluentPartition) -> OffsetAndMetadata:
    """A committed offset. Metadata ends at its first NUL: librdkafka's strings are C's."""
    epoch: int | None = found.leader_epoch  # confluent-kafka's annotation forgets None
    return OffsetAndMetadata(found.offset, found.metadata or "", -1 if epoch is None else epoch)


def to_commit(partition: TopicPartition, offset: OffsetAndMetadata) -> ConfluentPartition:
    """The same offset for librdkafka."""
    epoch = (offset.leader_epoch,) if offset.leader_epoch >= 0 else ()
    return ConfluentPartition(partition.topic, partition.partition, offset.offset, offset.metadata, *epoch)
