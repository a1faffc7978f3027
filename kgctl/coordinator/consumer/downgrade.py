"""A consumer-protocol group becomes a classic one when the last member of the consumer protocol is gone.

The classic members keep what their *target* assignment says and go on with the group epoch as their generation.
Kafka: GroupMetadataManager#convertToClassicGroup, ClassicGroup#fromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kgctl.assignors.spec import Target
from kgctl.coordinator.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    ClassicMember,
    compute_subscribed_topics,
    elect_protocol,
    record_value,
)
from kgctl.coordinator.classic.rebalance import extend_session, start_rebalance
from kgctl.coordinator.consumer.current_assignment import OwnedPartitions
from kgctl.coordinator.consumer.group import ConsumerGroup, HeartbeatContext
from kgctl.coordinator.consumer.member import ConsumerMember, Partitions
from kgctl.coordinator.consumer.records import group_tombstone_keys
from kgctl.coordinator.modern.member import NO_TARGET, Refusal
from kgctl.coordinator.shard import Shard
from kgctl.model.coordinator_records import GroupMetadataKey, RecordKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ConsumerSubscription, GroupState, MetadataImage, TopicPartition
from kgctl.model.requests import JoinProtocol
from kgctl.model.values import copied_set_order, integer_hash
from kgctl.serde.consumer_protocol import (
    LATEST_VERSION,
    decode_assignment,
    decode_subscription,
    encode_assignment_by_topic,
    group_by_topic,
)


class CustomAssignor(Exception):  # noqa: N818 - says what was found
    """The assignment has user data: an assignor is in use whose state would be lost."""


def subscription_of(protocols: Sequence[JoinProtocol]) -> ConsumerSubscription:
    """The subscription in the first protocol, which is the one that counts. Raises MalformedConsumerProtocol, a ValueError."""
    return decode_subscription(protocols[0].metadata)


def owned_partitions(owned: Sequence[TopicPartition], image: MetadataImage) -> OwnedPartitions:
    """Partitions by name as partitions by id; topics that do not exist are left out."""
    return [(image.topics[topic].topic_id, numbers) for topic, numbers in group_by_topic(owned) if topic in image.topics]


def target_of_bytes(assignment: bytes, image: MetadataImage) -> dict[UUID, tuple[int, ...]]:
    """What an assignment gives, topics that do not exist left out. Empty bytes give nothing.

    Raises MalformedConsumerProtocol, a ValueError, or `CustomAssignor`.
    """
    if not assignment:
        return {}
    decoded = decode_assignment(assignment)
    if decoded.user_data:
        raise CustomAssignor
    topics = group_by_topic(decoded.partitions)
    return {image.topics[topic].topic_id: tuple(dict.fromkeys(numbers)) for topic, numbers in topics if topic in image.topics}


def assignment_bytes(partitions: Target | Partitions, image: MetadataImage, metadata: bytes) -> bytes:
    """An assignment as a classic member reads it, in the version in which it wrote its subscription."""
    names = {topic.topic_id: name for name, topic in image.topics.items()}
    topics = [(names[topic_id], list(numbers)) for topic_id, numbers in partitions.items() if topic_id in names]
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_assignment_by_topic(topics, None, min(max(version, 0), LATEST_VERSION))


def can_downgrade(shard: Shard, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Whether the group becomes a classic one when these members go: only classic ones, and at least one, are left."""
    remaining = len(group.members) - len(leaving)
    classic_remaining = group.classic_member_count - sum(member.uses_classic_protocol for member in leaving)
    return 0 < remaining == classic_remaining and shard.config.allows_downgrade and remaining <= shard.config.group_max_size


def can_downgrade_by_replacing(shard: Shard, group: ConsumerGroup, replaced: ConsumerMember | None) -> bool:
    """Whether the group becomes a classic one when a classic member takes the place of ``replaced``."""
    return (
        replaced is not None
        and not replaced.uses_classic_protocol
        and group.classic_member_count == len(group.members) - 1
        and shard.config.allows_downgrade
        and len(group.members) <= shard.config.group_max_size
        and group.profile.downgrades_by_replacing
    )


def downgrade(shard: Shard, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> None:
    """The group goes on without these members, as a classic one, and rebalances at once."""
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.java_values() if member.member_id not in gone]
    classic = _classic_group(shard, group, [(member, member.member_id) for member in staying])
    keys = group_tombstone_keys(group.group_id, group.members.java_order(), group.resolved_regexes.java_order())
    _replace(shard, classic, keys)
    start_rebalance(shard, classic)


def downgrade_by_replacing(shard: Shard, change: HeartbeatContext, *, rebalance: bool) -> None:
    """A classic member has joined in the place of the last consumer-protocol one; its records are still to be written."""
    group, joining = change.group, change.new
    replaced_id = group.static_members[joining.instance_id or ""]
    if group.members[replaced_id].instance_id != joining.instance_id:
        # It has come back with another instance id since. Kafka then takes it for one that stays, which it cannot convert.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"Member {replaced_id} has another instance id by now.")
    staying = [(member, member.member_id) for member in group.members.java_values() if member.member_id != replaced_id]
    classic = _classic_group(shard, group, [*staying, (joining, replaced_id)])
    ids = [joining.member_id if member_id == replaced_id else member_id for member_id in group.members.java_order()]
    keys = group_tombstone_keys(group.group_id, ids, group.resolved_regexes.java_order())
    for record in change.records:
        shard.append_record(record)
    _replace(shard, classic, keys)
    if rebalance:
        start_rebalance(shard, classic)


def _classic_group(shard: Shard, group: ConsumerGroup, members: Sequence[tuple[ConsumerMember, str]]) -> ClassicGroup:
    """The classic group of these members, each with the id whose target it inherits."""
    classic = ClassicGroup(group.group_id, shard.now_ms)
    classic.state = classic.previous_state = GroupState.STABLE
    # What the members hear next has to be newer than all their epochs, and the group epoch is at least the largest of them.
    classic.generation_id = group.group_epoch
    for member, _ in members:
        classic.add_member(_classic_member(classic, member), CONSUMER_PROTOCOL_TYPE)
    classic.protocol_name = elect_protocol(classic)
    classic.subscribed_topics = compute_subscribed_topics(classic)
    for member, target_id in members:
        converted = classic.members[member.member_id]
        target = group.targets.get(target_id, NO_TARGET if group.profile.needs_no_target_to_downgrade else None)
        if target is None:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"Member {target_id} has no target assignment.")
        converted.assignment = assignment_bytes(_in_set_order(target), shard.image, converted.metadata(classic.protocol_name))
    return classic


def _in_set_order(target: Target) -> Target:
    """The partitions of each topic as the HashSet copied from the record's list iterates over them."""
    return {topic_id: copied_set_order(numbers, hash_of=integer_hash) for topic_id, numbers in target.items()}


def _classic_member(classic: ClassicGroup, member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocols=tuple(JoinProtocol(name=p.name, metadata=p.metadata) for p in member.classic.supported_protocols),
        session_timer=classic.session_timer(member.member_id),
    )


def _replace(shard: Shard, classic: ClassicGroup, keys: Sequence[RecordKey]) -> None:
    """Put the classic group in the consumer group's place, then write the one's record after the other's tombstones.

    It is put once, as in Kafka: putting it again may enlarge the table that decides the order of groups. Its members support all
    their protocols, which the record does not say.
    """
    del shard.groups[classic.group_id]
    shard.groups[classic.group_id] = classic
    for key in keys:
        shard.append(key, None)
    shard.append(GroupMetadataKey(classic.group_id), record_value(classic))
    for member in classic.members.java_values():
        extend_session(shard, member)
