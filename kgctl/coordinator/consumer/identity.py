"""Who a request speaks for: a member that is known, a new one, or one that takes over an instance id.

Kafka: GroupMetadataManager#getOrMaybeSubscribeDynamicConsumerGroupMember and #getOrMaybeSubscribeStaticConsumerGroupMember.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgctl.coordinator.consumer.current_assignment import OwnedPartitions
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerMember, Refusal
from kgctl.coordinator.consumer.records import current_assignment_record, member_record, member_tombstones, target_record
from kgctl.coordinator.consumer.target_assignment import unmoved_target
from kgctl.coordinator.shard import Shard
from kgctl.model.error_codes import ErrorCode
from kgctl.model.records import CoordinatorRecord
from kgctl.model.requests import ConsumerGroupHeartbeat


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of its sender. ``member_epoch`` None: it uses the classic protocol, whose generation is no claim."""

    member_id: str
    instance_id: str | None
    member_epoch: int | None
    owned: OwnedPartitions | None
    may_create: bool


def find_or_create(group: ConsumerGroup, claim: Claim, records: list[CoordinatorRecord]) -> ConsumerMember:
    """Return the member as it was before this request; a takeover of an instance id goes into ``records``. Raises `Refusal`."""
    if claim.instance_id is None:
        return _dynamic(group, claim)
    holder = group.static_member(claim.instance_id)
    # A heartbeat that goes on names its instance id as well: it has to be the holder's, else somebody has taken it over.
    if not claim.may_create:
        member = known_static(group, claim.member_id, claim.instance_id)
        _check_epoch(member, claim)
        return member
    if holder is None:
        return group.members.get(claim.member_id) or ConsumerMember(claim.member_id)
    return _take_over(group, claim, holder, records)


def _dynamic(group: ConsumerGroup, claim: Claim) -> ConsumerMember:
    member = group.members.get(claim.member_id)
    if member is None:
        if not claim.may_create:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {claim.member_id} is not a member of group {group.group_id}.")
        member = ConsumerMember(claim.member_id)
    _check_epoch(member, claim)
    return member


def known_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """Return the holder of the instance id, which has to be this member. Raises `Refusal`.

    Kafka: GroupMetadataManager#throwIfStaticMemberIsUnknown, #throwIfInstanceIdIsFenced.
    """
    holder = group.static_member(instance_id)
    if holder is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}."
        raise Refusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return holder


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member, which has to hold its instance id if it names one. Raises `Refusal`."""
    if instance_id is not None:
        return known_static(group, member_id, instance_id)
    member = group.members.get(member_id)
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def _take_over(group: ConsumerGroup, claim: Claim, holder: ConsumerMember, records: list[CoordinatorRecord]) -> ConsumerMember:
    """Give a restarted client its instance id; from another member of the consumer protocol only once that has left.

    Two clients with one instance id would else throw each other out for ever.
    Kafka: GroupMetadataManager#throwIfInstanceIdIsUnreleased, #replaceMember.
    """
    both_consumer = claim.member_epoch is not None and not holder.uses_classic_protocol
    if both_consumer and holder.member_epoch != STATIC_LEAVE_EPOCH:
        newcomer = f"Static member {claim.member_id} with instance id {claim.instance_id}"
        message = f"{newcomer} cannot join the group because the instance id is owned by {holder.member_id} member."
        raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    # Target and assignment go to the new id, so that nobody else notices the restart (KIP-345, KIP-848).
    member = replace(holder, member_id=claim.member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    records += member_tombstones(group_id, holder.member_id)
    records.append(member_record(group_id, member))
    records.append(target_record(group_id, member.member_id, unmoved_target(group.target_of(holder.member_id))))
    records.append(current_assignment_record(group_id, member))
    return member


def _check_epoch(member: ConsumerMember, claim: Claim) -> None:
    """Epoch 0 starts over. An older epoch is only the one before, of a member that did not get the last answer.

    It shows that by owning nothing that is not assigned to it.
    Kafka: GroupMetadataManager#throwIfConsumerGroupMemberEpochIsInvalid.
    """
    epoch = claim.member_epoch
    if not epoch or epoch == member.member_epoch:
        return
    if epoch < member.member_epoch and epoch == member.previous_member_epoch and _owns_only_assigned(member, claim.owned):
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    known = f"a {relation} member epoch ({epoch}) than the one known by the group coordinator ({member.member_epoch})"
    message = f"The consumer group member has {known}. The member must abandon all its partitions and rejoin."
    raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _owns_only_assigned(member: ConsumerMember, owned: OwnedPartitions | None) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in member.assigned and all(number in member.assigned[topic_id] for number in numbers)
        for topic_id, numbers in owned
    )


_CONSUMER_GENERATED_ID_VERSION = 1
"""From this version on the member makes its own id."""


def check_request(shard: Shard, request: ConsumerGroupHeartbeat) -> None:
    """Raises `Refusal` for a request that contradicts itself or lacks what it needs."""
    epoch = request.member_epoch
    needs_id = request.api_version >= _CONSUMER_GENERATED_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH
    _check_blank("MemberId", request.member_id if needs_id else None)
    _check_blank("GroupId", request.group_id)
    _check_blank("InstanceId", request.instance_id)
    _check_blank("RackId", request.rack_id)
    if epoch == 0:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        _require("InstanceId can't be null.", request.instance_id is not None)
    else:
        _require("MemberEpoch is invalid.", epoch > STATIC_LEAVE_EPOCH)
    assignors = shard.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(sorted(assignors, reverse=True))  # as Kafka's hash map has them: uniform, range
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        raise Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_join(request: ConsumerGroupHeartbeat) -> None:
    _require("RebalanceTimeoutMs must be provided in first request.", request.rebalance_timeout_ms != -1)
    _require("TopicPartitions must be empty when (re-)joining.", request.topic_partitions == ())
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    _require("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.", subscribes)


def _check_blank(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _require(message: str, holds: bool) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, message)
