"""ConsumerGroupHeartbeat: join (epoch 0), stay, leave (-1), leave for a restart (-2).

A heartbeat that stays is looked at in three steps: the member's new data may bump the group epoch; a group epoch ahead of the
target may make a new target; the member goes a step towards its target. All records of the three are worked out against the
group as it was and written at the end, so a refusal on the way leaves nothing behind.

Kafka: GroupMetadataManager#consumerGroupHeartbeat.

Whom a request speaks for is settled first: a member that is known, a new one, or one that takes over an instance id
(GroupMetadataManager#getOrMaybeSubscribeDynamicConsumerGroupMember, #getOrMaybeSubscribeStaticConsumerGroupMember).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kgctl.assignors.target_order import unmoved_target
from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.current_assignment import OwnedPartitions, Reconciliation, reconcile
from kgctl.coordinator.consumer.group import ConsumerGroup, HeartbeatContext
from kgctl.coordinator.consumer.member import NOTHING, STATIC_LEAVE_EPOCH, ConsumerMember
from kgctl.coordinator.consumer.records import (
    current_assignment_record,
    member_record,
    member_tombstones,
    target_record,
    tombstone,
)
from kgctl.coordinator.consumer.subscription import current_subscriptions, request_resolution, update_regex, update_subscriptions
from kgctl.coordinator.consumer.target_assignment import MemberTarget, subscribed_names, update_target
from kgctl.coordinator.consumer.timers import arm_rebalance, arm_session, disarm_rebalance, fence_members
from kgctl.coordinator.consumer.upgrade import upgrade
from kgctl.coordinator.modern.member import LEAVE_EPOCH, MemberState, Refusal, check_blank, missing, require, topic_order
from kgctl.coordinator.modern.topics import Subscriptions
from kgctl.coordinator.shard import Shard
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResult
from kgctl.model.values import frozen_in_order


@frozen_in_order
class SenderClaim:
    """What a request says of its sender. ``member_epoch`` None: it uses the classic protocol, whose generation is no claim."""

    member_id: str
    instance_id: str | None
    member_epoch: int | None
    owned: OwnedPartitions | None
    may_create: bool


def find_or_create(group: ConsumerGroup, claim: SenderClaim, records: list[CoordinatorRecord]) -> ConsumerMember:
    """Return the member as it was before this request; a takeover of an instance id goes into ``records``. Raises `Refusal`."""
    if claim.instance_id is None:
        return _dynamic(group, claim)
    holder = group.static_member(claim.instance_id)
    # A heartbeat that goes on names its instance id as well: it has to be the holder's, else somebody has taken it over.
    if not claim.may_create:
        member = known_static(group, claim.member_id, claim.instance_id)
        _check_epoch(member, claim, rejoins_at_epoch_0=group.profile.rejoins_at_epoch_0)
        return member
    if holder is None:
        return group.members.get(claim.member_id) or ConsumerMember(claim.member_id)
    return _take_over(group, claim, holder, records)


def _dynamic(group: ConsumerGroup, claim: SenderClaim) -> ConsumerMember:
    member = group.members.get(claim.member_id)
    if member is None:
        if not claim.may_create:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {claim.member_id} is not a member of group {group.group_id}.")
        member = ConsumerMember(claim.member_id)
    _check_epoch(member, claim, rejoins_at_epoch_0=group.profile.rejoins_at_epoch_0)
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


def _take_over(
    group: ConsumerGroup, claim: SenderClaim, holder: ConsumerMember, records: list[CoordinatorRecord]
) -> ConsumerMember:
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
    records.append(current_assignment_record(group_id, member, group.partition_form))
    return member


def _check_epoch(member: ConsumerMember, claim: SenderClaim, *, rejoins_at_epoch_0: bool) -> None:
    """Epoch 0 starts over. An older epoch is only the one before, of a member that did not get the last answer.

    It shows that by owning nothing that is not assigned to it.
    Kafka: GroupMetadataManager#throwIfConsumerGroupMemberEpochIsInvalid.
    """
    epoch = claim.member_epoch
    # 0 is a member that starts over, after a restart or when it was fenced: it owns nothing and claims nothing.
    if epoch is None or epoch == member.member_epoch or (epoch == 0 and rejoins_at_epoch_0):
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
    says_little = epoch > 0 and request.instance_id is None and request.rack_id is None and request.server_assignor is None
    if says_little and request.member_id.strip() and request.group_id.strip():
        return  # the usual heartbeat
    needs_id = request.api_version >= _CONSUMER_GENERATED_ID_VERSION or epoch > 0 or epoch == LEAVE_EPOCH
    check_blank("MemberId", request.member_id if needs_id else None)
    check_blank("GroupId", request.group_id)
    check_blank("InstanceId", request.instance_id)
    check_blank("RackId", request.rack_id)
    if epoch == 0:
        _check_join(request, subscribes_to_nothing=shard.config.profile.subscribes_to_nothing)
    elif epoch == STATIC_LEAVE_EPOCH:
        require("InstanceId can't be null.", request.instance_id is not None)
    else:
        require("MemberEpoch is invalid.", epoch > STATIC_LEAVE_EPOCH)
    assignors = shard.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(sorted(assignors, reverse=True))  # as Kafka's hash map has them: uniform, range
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        raise Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_join(request: ConsumerGroupHeartbeat, *, subscribes_to_nothing: bool) -> None:
    require("RebalanceTimeoutMs must be provided in first request.", request.rebalance_timeout_ms != -1)
    require("TopicPartitions must be empty when (re-)joining.", request.topic_partitions == ())
    if not subscribes_to_nothing:
        require("SubscribedTopicNames must be set in first request.", bool(request.subscribed_topic_names))
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    require("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.", subscribes)


def handle_consumer_group_heartbeat(shard: Shard, request: ConsumerGroupHeartbeat) -> None:
    """Answer a ConsumerGroupHeartbeat: to a consumer group, to none, or to a classic one, which it may replace or upgrade.

    Kafka: GroupMetadataManager#consumerGroupHeartbeat, #consumerGroupLeave.
    """
    try:
        check_request(shard, request)
        result = _leave(shard, request) if request.member_epoch < 0 else _heartbeat(shard, request)
    except Refusal as refusal:
        # Of a failure of its own Kafka tells its log alone.
        message = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.message
        result = ConsumerGroupHeartbeatResult(error=refusal.error, error_message=message)
    shard.reply(request.request_id, result)
    request_resolution(shard, request.group_id)


def _heartbeat(shard: Shard, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatResult:
    records: list[CoordinatorRecord] = []
    # The size counts before the identity: Kafka asks in this order, so a full group fences nobody.
    group = _find_or_create_group(shard, request, records)
    check_size(shard, group, request.member_id)
    # From version 1 on clients make their ids themselves (KIP-1082).
    member_id = request.member_id or shard.new_member_id("")
    claim = SenderClaim(member_id, request.instance_id, request.member_epoch, request.topic_partitions, request.member_epoch == 0)
    old = find_or_create(group, claim, records)
    change = HeartbeatContext(group, old, _with_request(old, request), records)
    update_member(shard, change, request.topic_partitions)
    # Whatever comes of it, the member lives. Records last: none is written where a step refused.
    arm_session(shard, group.group_id, member_id)
    for record in records:
        shard.append_record(record)
    return _answer(shard, request, change)


def _find_or_create_group(shard: Shard, request: ConsumerGroupHeartbeat, records: list[CoordinatorRecord]) -> ConsumerGroup:
    """Return the group; a joining member makes one in the place of none or of an empty classic one, and upgrades a classic one.

    Kafka: GroupMetadataManager#getOrMaybeCreateConsumerGroup.
    """
    group, joins = shard.groups.get(request.group_id), request.member_epoch == 0
    if isinstance(group, ConsumerGroup):
        return group
    if group is None and joins:
        return ConsumerGroup(request.group_id, shard.config.profile)
    if isinstance(group, ClassicGroup) and joins:
        if not group.is_empty:
            return upgrade(shard, group, records)
        records += [tombstone(key) for key in group.tombstone_keys()]
        return ConsumerGroup(request.group_id, shard.config.profile)
    found = f"Group {request.group_id} is not a consumer group." if group else f"Consumer group {request.group_id} not found."
    raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, found)


def check_size(shard: Shard, group: ConsumerGroup, member_id: str) -> None:
    """Refuse whoever a full group has no room for, also a static member that comes back under a new id.

    Kafka: GroupMetadataManager#throwIfConsumerGroupIsFull.
    """
    limit = shard.config.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {limit} members."
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def _with_request(member: ConsumerMember, request: ConsumerGroupHeartbeat) -> ConsumerMember:
    """The member with what the request says anew; the same object if that is nothing."""
    if _says_nothing_new(member, request):
        return member
    said: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_regex": request.subscribed_topic_regex,
        "client_id": request.client_id,
        "client_host": request.client_host,
    }
    changes = {name: value for name, value in said.items() if value is not None and value != getattr(member, name)}
    # A heartbeat of this protocol ends the member's classic life inside the group.
    if member.classic is not None:
        changes["classic"] = None
    names = request.subscribed_topic_names
    if names is not None:
        topics = frozenset(names)
        if topics != member.topic_set:
            changes |= {"topic_set": topics, "subscribed_topics": topic_order(names)}
    return replace(member, **changes) if changes else member


def _says_nothing_new(member: ConsumerMember, request: ConsumerGroupHeartbeat) -> bool:
    """Whether it is the usual heartbeat: only of a known member, in its own name."""
    return (
        request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.rack_id is None
        and request.instance_id == member.instance_id
        and request.client_id == member.client_id
        and request.client_host == member.client_host
        and member.classic is None
    )


def update_member(shard: Shard, change: HeartbeatContext, owned: OwnedPartitions | None) -> None:
    """The three steps: subscriptions, target, reconciliation. ``owned``: what the member says it has."""
    new = change.new
    if new is not change.old and new != change.old:
        change.records.append(member_record(change.group.group_id, new))
    regex = update_regex(shard, change)
    if regex.to_resolve:
        shard.regexes_to_resolve[change.group.group_id] = regex.to_resolve
    # The classic protocol knows no expressions: one that a replaced member leaves behind is dropped, which always counts.
    names_changed = change.names_changed
    begins = change.group.group_epoch == 0 and not change.group.profile.begins_at_epoch_1
    bump = names_changed or (regex.changed if new.uses_classic_protocol else regex.bumps or begins)
    subscriptions = subscribe(shard, change, bump=bump)
    target = update_target(shard, change, subscriptions)
    reconcile_member(shard, change, target, owned, subscription_changed=names_changed or regex.changed)


def subscribe(shard: Shard, change: HeartbeatContext, *, bump: bool) -> Subscriptions:
    """Do the first step: the group epoch grows when the member's subscription or the topics have changed."""
    if bump or change.group.is_metadata_due(shard.now_ms):
        return update_subscriptions(shard, change, bump=bump)
    return current_subscriptions(change.group)


def reconcile_member(
    shard: Shard, change: HeartbeatContext, target: MemberTarget, owned: OwnedPartitions | None, *, subscription_changed: bool
) -> None:
    """Do the third step; a member that has to revoke gets its rebalance timeout for it.

    Kafka: GroupMetadataManager#maybeReconcile, CurrentAssignmentBuilder.
    """
    group, member = change.group, change.new
    subscription_changed = subscription_changed and group.profile.follows_subscriptions
    if not subscription_changed and member.is_reconciled_to(target.assignment_epoch):
        return
    # Of the other members only the epochs of the partitions count that they still hold.
    facts = Reconciliation(
        member=member,
        assignment_epoch=target.assignment_epoch,
        target=target.target,
        subscription_changed=subscription_changed,
        owned=owned,
        names=subscribed_names(group, member),
        topics=shard.image.topics,
        partition_epoch=group.partition_epoch,
        form=group.partition_form,
        profile=group.profile,
    )
    change.new = reconcile(facts)
    if change.new is member or (change.new.member_epoch == member.member_epoch and change.new == member):
        return
    change.records.append(current_assignment_record(group.group_id, change.new, group.partition_form))
    # A classic member hears of it by REBALANCE_IN_PROGRESS, and has a join timer instead.
    if change.new.uses_classic_protocol:
        return
    if change.new.state is MemberState.UNREVOKED_PARTITIONS:
        arm_rebalance(shard, group.group_id, change.new)
    else:
        disarm_rebalance(shard, group.group_id, member.member_id)


def _answer(shard: Shard, request: ConsumerGroupHeartbeat, change: HeartbeatContext) -> ConsumerGroupHeartbeatResult:
    """Return the answer. The assignment travels only when it is news: to who joins, says everything, or has got another one."""
    says_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    # A request that says everything is the first after a failure: what was answered before may not have arrived.
    is_full = request.rebalance_timeout_ms != -1 and says_topics and request.topic_partitions is not None
    assignment = None
    new, old = change.new.assigned, change.old.assigned
    if request.member_epoch == 0 or is_full or (new is not old and new != old):
        assignment = tuple((topic_id, tuple(epochs)) for topic_id, epochs in change.new.assigned.items())
    return ConsumerGroupHeartbeatResult(
        member_id=change.new.member_id,
        member_epoch=change.new.member_epoch,
        heartbeat_interval_ms=shard.group_config(request.group_id).consumer_heartbeat_interval_ms,
        assignment=assignment,
    )


def _leave(shard: Shard, request: ConsumerGroupHeartbeat) -> ConsumerGroupHeartbeatResult:
    """Take the member out at epoch -1; at -2 a static one keeps its partitions until its session ends (KIP-848).

    Kafka: GroupMetadataManager#consumerGroupLeave, #consumerGroupStaticMemberGroupLeave.
    """
    group = shard.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, missing(ConsumerGroup, request.group_id, group))
    member = known_member(group, request.member_id, request.instance_id)
    # No other member gets anything before the session ends, so that a restart moves no partition (KIP-345).
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        record = current_assignment_record(group.group_id, _away(member), group.partition_form)
        shard.append_record(record)
        return ConsumerGroupHeartbeatResult(member_id=member.member_id, member_epoch=STATIC_LEAVE_EPOCH)
    fence_members(shard, group, [member])
    return ConsumerGroupHeartbeatResult(member_id=request.member_id, member_epoch=LEAVE_EPOCH)


def _away(member: ConsumerMember) -> ConsumerMember:
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return replace(member, member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation=NOTHING)
