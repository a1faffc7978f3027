"""A classic group becomes a consumer-protocol one when a member of that protocol joins (KIP-848, online upgrade).

The members go on, each with what its last assignment bytes said, at the generation as their epoch; the joining member's
subscription then makes a new target. Kafka: GroupMetadataManager#convertToConsumerGroup, ConsumerGroup#fromClassicGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgctl.assignors.spec import Target
from kgctl.assignors.target_order import unmoved_target
from kgctl.coordinator.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, ClassicMember
from kgctl.coordinator.classic.rebalance import refuse_join
from kgctl.coordinator.consumer.downgrade import CustomAssignor, target_of_bytes
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import NOTHING, ConsumerMember, Partitions
from kgctl.coordinator.consumer.records import (
    current_assignment_record,
    group_record,
    member_record,
    partition_metadata_record,
    target_metadata_record,
    target_record,
    tombstone,
)
from kgctl.coordinator.consumer.subscription import subscribed_topics
from kgctl.coordinator.consumer.timers import arm_session
from kgctl.coordinator.modern.member import Refusal, topic_order
from kgctl.coordinator.modern.topics import group_hash
from kgctl.coordinator.shard import Shard, apply_to_group
from kgctl.errors import InvariantViolation
from kgctl.model.coordinator_records import ClassicMemberMetadata, ClassicProtocol, CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import SyncGroupResult
from kgctl.model.values import TimelineHashMap, hash_map_order, integer_hash, uuid_hash
from kgctl.serde.consumer_protocol import MalformedConsumerProtocol, decode_subscription

_ADVICE = "Please refer to the documentation or switch to a default assignor before re-attempting the upgrade."


def upgrade(shard: Shard, classic: ClassicGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """The group in its new form, with its records added to ``records``; it is registered when those are appended.

    Whoever waits is told to join again, also when the group then turns out not to be convertible: `Refusal`.
    """
    _check_policy(shard, classic)
    shard.upgraded[classic.group_id] = None
    _answer_waiting(shard, classic)
    records += [tombstone(key) for key in classic.tombstone_keys()]
    try:
        staging, targets = _converted(shard, classic)
    except MalformedConsumerProtocol as error:
        raise _cannot_upgrade(classic, "the embedded consumer protocol is malformed.") from error
    except CustomAssignor as error:
        raise _cannot_upgrade(classic, f"an unsupported custom assignor is in use. {_ADVICE}") from error
    except KeyError as error:
        # A member that joined since does not offer the elected protocol; Kafka fails as well.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"A member does not support {error}.") from error
    # ConsumerGroup#createConsumerGroupRecords. The tombstone of the old form comes first, or it would delete the new one.
    converted = _records_of(shard, classic, staging, targets)
    records += converted
    for member in staging.members.java_values():
        arm_session(shard, staging.group_id, member.member_id, member.session_timeout_ms)
    return _build(staging, converted)


def _check_policy(shard: Shard, classic: ClassicGroup) -> None:
    # The first reason is the one that is told, in the order of GroupMetadataManager#validateOnlineUpgrade.
    reason = None
    if not shard.config.allows_upgrade:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > shard.config.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        if not shard.config.profile.tells_why_not_upgraded:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {classic.group_id} is not a consumer group.")
        raise _cannot_upgrade(classic, f"{reason}.")


def _cannot_upgrade(classic: ClassicGroup, because: str) -> Refusal:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {because}"
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _answer_waiting(shard: Shard, classic: ClassicGroup) -> None:
    # The old form can answer nobody any more: ClassicGroup#completeAllJoinFutures goes first, then #completeAllSyncFutures.
    for member in classic.members.java_values():
        refuse_join(shard, classic, member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    for member in classic.members.java_values():
        if member.parked_sync is not None:
            shard.reply(member.parked_sync, SyncGroupResult(error=ErrorCode.REBALANCE_IN_PROGRESS))
            member.parked_sync = None


def _converted(shard: Shard, classic: ClassicGroup) -> tuple[ConsumerGroup, Mapping[str, Target]]:
    """The members as those of a consumer group, and their targets.

    Records and timers go in the order of this group, as in Kafka; that of the group built from the records may differ.
    """
    staging = ConsumerGroup(classic.group_id, shard.config.profile)
    targets: dict[str, Target] = {}
    for member in classic.members.java_values():
        targets[member.member_id] = target_of_bytes(member.assignment, shard.image)
        _add(staging, _convert(classic, member, targets[member.member_id]))
    return staging, targets


def _records_of(
    shard: Shard, classic: ClassicGroup, staging: ConsumerGroup, targets: Mapping[str, Target]
) -> list[CoordinatorRecord]:
    """The records of the converted group, in Kafka's order."""
    group_id, epoch = classic.group_id, classic.generation_id
    members = staging.members.java_values()
    names = [name for member in members for name in member.subscribed_topics]
    return [
        *(member_record(group_id, member) for member in members),
        *_epoch_records(staging, epoch, dict.fromkeys(names), shard.image),
        *(target_record(group_id, m.member_id, unmoved_target(_in_map_order(targets[m.member_id]))) for m in members),
        # Assignment epoch and group epoch are equal: the target is what the members have, and only the join that comes next
        # asks for another.
        target_metadata_record(group_id, epoch, 0),
        *(current_assignment_record(group_id, member, staging.partition_form) for member in members),
    ]


def _epoch_records(group: ConsumerGroup, epoch: int, names: Iterable[str], image: MetadataImage) -> list[CoordinatorRecord]:
    if group.profile.hashes_topics:
        return [group_record(group.group_id, epoch, group_hash(names, image))]
    topics = subscribed_topics(names, image)
    return [partition_metadata_record(group.group_id, topics), group_record(group.group_id, epoch, 0)]


def _convert(classic: ClassicGroup, member: ClassicMember, target: Target) -> ConsumerMember:
    if classic.protocol_name is None:
        # Kafka 4.3.1 fails here: a group in its very first rebalance has no protocol yet.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "The classic group has not completed its first rebalance.")
    subscription = decode_subscription(member.metadata(classic.protocol_name))
    protocols = tuple(ClassicProtocol(protocol.name, protocol.metadata) for protocol in member.protocols)
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topic_set=frozenset(subscription.topics),
        subscribed_topics=topic_order(subscription.topics),
        classic=ClassicMemberMetadata(member.session_timeout_ms, protocols),
        # The generation goes on as the epoch: to a classic member, the one is the other.
        member_epoch=classic.generation_id,
        previous_member_epoch=classic.generation_id,
        assigned=_owned(target, classic.generation_id),
    )


def _owned(target: Target, epoch: int) -> Partitions:
    if not target:
        return NOTHING
    return {topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in _in_map_order(target).items()}


def _in_map_order(target: Target) -> Target:
    topics = hash_map_order(target, hash_of=uuid_hash)
    return {topic_id: hash_map_order(target[topic_id], hash_of=integer_hash) for topic_id in topics}


def _add(group: ConsumerGroup, member: ConsumerMember) -> None:
    try:
        group.update_member(member)
    except InvariantViolation as error:
        # Two classic members were given the same partition by their leader; Kafka fails as well.
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from error


def _build(staging: ConsumerGroup, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """The group that the records make, its members in the order of ``staging``: the request goes on with that one."""
    group = ConsumerGroup(staging.group_id, staging.profile)
    for record in records:
        apply_to_group(group, record)
    members = group.members
    group.members = TimelineHashMap()
    for member_id in staging.members:
        group.members[member_id] = members[member_id]
    return group
