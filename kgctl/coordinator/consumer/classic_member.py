"""Members that speak the classic protocol in a consumer-protocol group (KIP-848, rolling upgrade).

Their JoinGroup is a heartbeat of the other protocol in disguise: it makes targets and reconciles, and is answered at once, with
the member epoch as the generation. SyncGroup hands out what is assigned, and Heartbeat says REBALANCE_IN_PROGRESS when the
member has to join again for its next step. Kafka: GroupMetadataManager#classicGroupJoinToConsumerGroup and its neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from kgctl.coordinator.consumer.current_assignment import OwnedPartitions
from kgctl.coordinator.consumer.downgrade import (
    assignment_bytes,
    can_downgrade_by_replacing,
    downgrade_by_replacing,
    owned_partitions,
    subscription_of,
)
from kgctl.coordinator.consumer.group import ConsumerGroup, HeartbeatContext
from kgctl.coordinator.consumer.heartbeat import (
    SenderClaim,
    check_size,
    find_or_create,
    known_member,
    known_static,
    reconcile_member,
    subscribe,
    update_member,
)
from kgctl.coordinator.consumer.member import CLASSIC_RESPONSES, ConsumerMember
from kgctl.coordinator.consumer.records import member_record
from kgctl.coordinator.consumer.subscription import request_resolution, update_regex
from kgctl.coordinator.consumer.target_assignment import MemberTarget
from kgctl.coordinator.consumer.timers import arm_join_if_absent, arm_session, arm_sync, disarm_join, disarm_sync, fence_members
from kgctl.coordinator.modern.member import MemberState, Refusal, topic_order
from kgctl.coordinator.shard import Shard
from kgctl.model.coordinator_records import ClassicMemberMetadata, ClassicProtocol, CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import ConsumerSubscription
from kgctl.model.requests import (
    Heartbeat,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    LeaveGroup,
    LeaveGroupResult,
    MemberIdentity,
    MemberLeaveResult,
    SyncGroup,
    SyncGroupResult,
)

CONSUMER = "consumer"
MEMBER_ID_REQUIRED_VERSION = 4


def join_group(shard: Shard, group: ConsumerGroup, request: JoinGroup) -> None:
    """Answer a JoinGroup to a consumer group that has members (KIP-848, online migration).

    Kafka: GroupMetadataManager#classicGroupJoinToConsumerGroup.
    """
    try:
        result = _join(shard, group, request)
    except Refusal as refusal:
        result = JoinGroupResult(error=refusal.error)
    shard.reply(request.request_id, result)
    request_resolution(shard, group.group_id)


def _join(shard: Shard, group: ConsumerGroup, request: JoinGroup) -> JoinGroupResult:
    if shard.config.group_consumer_migration_policy == "disabled" and group.profile.closes_consumer_groups:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_unknown = not request.member_id
    member_id = request.member_id or shard.new_member_id("")
    check_size(shard, group, member_id)
    _check_protocols(group, request)
    # KIP-394: a dynamic member gets an id first and is nothing yet, so that clients that give up leave nobody behind.
    if is_unknown and request.group_instance_id is None and request.api_version >= MEMBER_ID_REQUIRED_VERSION:
        return JoinGroupResult(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    records: list[CoordinatorRecord] = []
    # A static member that starts has no id yet; one that names an id has to be known by it, else it was replaced.
    may_create = request.group_instance_id is None or is_unknown
    claim = SenderClaim(member_id, request.group_instance_id, None, (), may_create)
    old = find_or_create(group, claim, records)
    subscription = _subscription(request)
    change = HeartbeatContext(
        group, old, _with_request(old, request, subscription, drops_regex=group.profile.drops_regexes), records
    )
    owned = owned_partitions(subscription.owned_partitions, shard.image)
    if can_downgrade_by_replacing(shard, group, group.static_member(request.group_instance_id)):
        _join_and_downgrade(shard, change, owned)
    else:
        update_member(shard, change, owned)
        for record in records:
            shard.append_record(record)
        # It has joined in time, and now has to sync in time; each of the two has a timer, and silence has a third.
        disarm_join(shard, group.group_id, member_id)
        arm_session(shard, group.group_id, member_id, request.session_timeout_ms)
        arm_sync(shard, group.group_id, member_id, _rebalance_timeout_ms(request))
    return JoinGroupResult(
        generation_id=change.new.member_epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=member_id,
    )


def _check_protocols(group: ConsumerGroup, request: JoinGroup) -> None:
    """Raise `Refusal` unless one of its protocols is offered by all classic members that are there already.

    Kafka: GroupMetadataManager#throwIfClassicProtocolIsNotSupported, ConsumerGroup#supportsClassicProtocols.
    """
    shared = (group.classic_protocols.get(p.name, 0) == group.classic_member_count for p in request.protocols)
    if request.protocol_type != CONSUMER or not any(shared):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _subscription(request: JoinGroup) -> ConsumerSubscription:
    try:
        return subscription_of(request.protocols)
    except ValueError as error:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _rebalance_timeout_ms(request: JoinGroup) -> int:
    return request.session_timeout_ms if request.rebalance_timeout_ms is None else request.rebalance_timeout_ms


def _with_request(
    member: ConsumerMember, request: JoinGroup, subscription: ConsumerSubscription, *, drops_regex: bool
) -> ConsumerMember:
    protocols = tuple(ClassicProtocol(protocol.name, protocol.metadata) for protocol in request.protocols)
    return replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        topic_set=frozenset(subscription.topics),
        subscribed_topics=topic_order(subscription.topics),
        subscribed_regex="" if drops_regex else member.subscribed_regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMemberMetadata(request.session_timeout_ms, protocols),
    )


def _join_and_downgrade(shard: Shard, change: HeartbeatContext, owned: OwnedPartitions) -> None:
    """It takes the place of the last consumer-protocol member: the group becomes a classic one.

    With the target up to date it takes over the other's; otherwise the classic group has to rebalance.
    """
    group, new = change.group, change.new
    if not group.profile.rebalances_on_downgrade:
        update_member(shard, change, owned)
        downgrade_by_replacing(shard, change, rebalance=False)
        disarm_join(shard, group.group_id, new.member_id)
        return
    if new != change.old:
        change.records.append(member_record(group.group_id, new))
    bump = update_regex(shard, change).changed or change.names_changed
    subscriptions = subscribe(shard, change, bump=bump)
    rebalance = group.assignment_epoch < subscriptions.group_epoch if group.profile.has_assignment_interval else bump
    if not rebalance:
        target = MemberTarget(group.assignment_epoch, group.target_of(new.member_id, new.instance_id))
        reconcile_member(shard, change, target, owned, subscription_changed=bump)
    downgrade_by_replacing(shard, change, rebalance=rebalance)
    disarm_join(shard, group.group_id, new.member_id)


def sync_group(shard: Shard, group: ConsumerGroup, request: SyncGroup) -> None:
    """Answer a SyncGroup with what is assigned, unless there is a newer target to join for first.

    Kafka: GroupMetadataManager#classicGroupSyncToConsumerGroup, #throwIfClassicProtocolUnmatched, #throwIfRebalanceInProgress.
    """
    try:
        result = _sync(shard, group, request)
    except Refusal as refusal:
        result = SyncGroupResult(error=refusal.error)
    shard.reply(request.request_id, result)


def _sync(shard: Shard, group: ConsumerGroup, request: SyncGroup) -> SyncGroupResult:
    member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    protocol = member.classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    responses = CLASSIC_RESPONSES[member.state]
    error = responses.sync_behind if _epoch_to_join_for(group) > member.member_epoch else responses.sync
    if error:
        # Told to join again, a member has its rebalance timeout for it; being told twice gives it no more time.
        arm_join_if_absent(shard, group.group_id, member)
        raise Refusal(error)
    disarm_sync(shard, group.group_id, member.member_id)
    arm_session(shard, group.group_id, member.member_id, member.session_timeout_ms)
    return SyncGroupResult(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_bytes(member.assigned, shard.image, protocol.metadata),
    )


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> ConsumerMember:
    # In the order of GroupMetadataManager#validateConsumerGroupMember, #throwIfMemberDoesNotUseClassicProtocol and
    # #throwIfGenerationIdUnmatched: a member that is unknown hears that, whatever generation it names.
    member = known_member(group, member_id, instance_id)
    if not member.uses_classic_protocol:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation_id != member.member_epoch:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    return member


def heartbeat(shard: Shard, group: ConsumerGroup, request: Heartbeat) -> None:
    """Answer a Heartbeat: REBALANCE_IN_PROGRESS when joining again would bring the member further.

    Kafka: GroupMetadataManager#classicGroupHeartbeatToConsumerGroup.
    """
    try:
        member = _classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
    except Refusal as refusal:
        shard.reply(request.request_id, HeartbeatResult(error=refusal.error))
        return
    # A member that is told to join again is alive all the same.
    arm_session(shard, group.group_id, member.member_id, member.session_timeout_ms)
    error = _heartbeat_error(group, member)
    if error:
        arm_join_if_absent(shard, group.group_id, member)
    shard.reply(request.request_id, HeartbeatResult(error=error))


def _heartbeat_error(group: ConsumerGroup, member: ConsumerMember) -> ErrorCode:
    responses = CLASSIC_RESPONSES[member.state]
    if member.member_epoch < _epoch_to_join_for(group):
        return responses.heartbeat_behind
    # What it waits for is free by now: only a JoinGroup hands it over. Kafka: ConsumerGroup#waitingOnUnreleasedPartition.
    if member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_partitions(member):
        return ErrorCode.REBALANCE_IN_PROGRESS
    return responses.heartbeat


def _epoch_to_join_for(group: ConsumerGroup) -> int:
    return group.assignment_epoch if group.profile.has_assignment_interval else group.group_epoch


def leave_group(shard: Shard, group: ConsumerGroup, request: LeaveGroup) -> None:
    """Answer a LeaveGroup, of members of either protocol: administrators remove both with it. One new epoch for all of them.

    Kafka: GroupMetadataManager#classicGroupLeaveToConsumerGroup.
    """
    leaving: dict[str, ConsumerMember] = {}
    results = []
    for identity in request.members:
        error = ErrorCode.NONE
        try:
            member = _leaver(group, identity)
            leaving[member.member_id] = member
        except Refusal as refusal:
            error = refusal.error
        results.append(MemberLeaveResult(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error=error))
    try:
        fence_members(shard, group, list(leaving.values()))
    except Refusal as refusal:
        shard.reply(request.request_id, LeaveGroupResult(error=refusal.error))
        return
    shard.reply(request.request_id, LeaveGroupResult(members=tuple(results)))


def _leaver(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """The member that goes; an instance id alone is enough."""
    instance_id = identity.group_instance_id
    if instance_id is not None and not identity.member_id:
        return known_static(group, group.static_members.get(instance_id, ""), instance_id)
    return known_member(group, identity.member_id, instance_id)
