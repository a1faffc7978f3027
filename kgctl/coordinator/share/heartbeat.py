"""ShareGroupHeartbeat: join (epoch 0), stay, leave (-1); and sessions that end.

As in the consumer protocol, the member's new data may bump the group epoch, a group epoch ahead of the target may make a new
target, and the member goes towards its target: in one step, as nobody has to give anything up first. Only partitions whose state
is there are assigned; of those whose state is not, the driver is asked to have it made.

Kafka: GroupMetadataManager#shareGroupHeartbeat, #shareGroupLeave, #shareGroupFenceMember.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgctl.assignors.simple import SimpleAssignor
from kgctl.assignors.spec import Target, TargetMember, TargetSpec
from kgctl.assignors.target_order import have_same_partitions
from kgctl.coordinator.modern.member import (
    LEAVE_EPOCH,
    NO_TARGET,
    MemberState,
    Refusal,
    check_blank,
    missing,
    require,
    topic_order,
)
from kgctl.coordinator.modern.timers import fencing
from kgctl.coordinator.modern.topics import group_hash
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.group import ShareGroup, ShareMember
from kgctl.coordinator.share.partitions import NOBODYS, Noted, begun, to_initialize
from kgctl.coordinator.share.records import (
    current_assignment_record,
    group_record,
    member_record,
    member_tombstone_keys,
    target_metadata_record,
    target_record,
    topic_partitions,
)
from kgctl.coordinator.timers import Timer, TimerKind
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.share_records import ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue
from kgctl.model.share_requests import InitializeShareState, PartitionStart, ShareGroupHeartbeat, ShareTopicStart
from kgctl.model.share_results import ShareGroupHeartbeatResult
from kgctl.model.values import copied_map_order, uuid_hash

ASSIGNOR = SimpleAssignor()


@dataclass(slots=True)
class ShareHeartbeatContext:
    """The group as it was, the member as it was and as it is so far, and the records to write at the end."""

    group: ShareGroup
    old: ShareMember
    new: ShareMember
    group_epoch: int
    is_homogeneous: bool
    records: list[CoordinatorRecord] = field(default_factory=list)


def handle_share_group_heartbeat(shard: Shard, request: ShareGroupHeartbeat) -> None:
    """Answer a ShareGroupHeartbeat; then have the state made of partitions that have none."""
    call = None
    try:
        _check_request(request)
        if request.member_epoch == LEAVE_EPOCH:
            result = _leave(shard, request)
        else:
            result, call = _heartbeat(shard, request)
    except Refusal as refusal:
        # Of a failure of its own Kafka tells its log alone.
        message = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.message
        result = ShareGroupHeartbeatResult(error=refusal.error, error_message=message)
    shard.reply(request.request_id, result)
    if call is not None:
        shard.emit(call)


def _check_request(request: ShareGroupHeartbeat) -> None:
    check_blank("MemberId", request.member_id)
    check_blank("GroupId", request.group_id)
    check_blank("RackId", request.rack_id)
    if request.member_epoch == 0:
        require("SubscribedTopicNames must be set in first request.", bool(request.subscribed_topic_names))
    else:
        require("MemberEpoch is invalid.", request.member_epoch >= LEAVE_EPOCH)


def _heartbeat(shard: Shard, request: ShareGroupHeartbeat) -> tuple[ShareGroupHeartbeatResult, InitializeShareState | None]:
    joins = request.member_epoch == 0
    group = find_group(shard, request.group_id, may_create=joins)
    _check_size(shard, group, request.member_id)
    # Kafka puts who joins into the group at once, so that it counts from here on.
    old = group.get_or_create(request.member_id) if joins else group.known_member(request.member_id)
    _check_epoch(old, request.member_epoch)
    change = ShareHeartbeatContext(group, old, _with_request(old, request), group.group_epoch, group.is_homogeneous)
    names = _subscribe(shard, change)
    bumped = change.group_epoch > group.group_epoch
    _reconcile(shard.image, change, *_update_target(shard, change), bumped=bumped)
    arm_session(shard, group, request.member_id)
    call = _initialize(shard, change, names)
    for record in change.records:
        shard.append_record(record)
    return _answer(shard, request, change), call


def find_group(shard: Shard, group_id: str, *, may_create: bool) -> ShareGroup:
    """Return the group, or a new one that is not known to anybody yet. Raises `Refusal`.

    Kafka: GroupMetadataManager#getOrMaybeCreateShareGroup.
    """
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if not may_create:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id, shard.config.profile)


def known_group(shard: Shard, group_id: str) -> ShareGroup:
    """Return the group. Raises `Refusal`, in other words than `find_group`. Kafka: GroupMetadataManager#shareGroup."""
    group = shard.groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, missing(ShareGroup, group_id, group))


def write_partitions(shard: Shard, group_id: str, value: ShareGroupStatePartitionMetadataValue) -> None:
    """Append what is now so of the state of a group's partitions."""
    shard.append(ShareGroupStatePartitionMetadataKey(group_id), value)


def _check_size(shard: Shard, group: ShareGroup, member_id: str) -> None:
    limit = shard.config.group_share_max_size
    if len(group.members) >= limit and member_id not in group.members:
        message = f"The share group has reached its maximum capacity of {limit} members."
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """Epoch 0 starts over; an older epoch is the one before, of a member that did not get the last answer.

    Kafka: GroupMetadataManager#throwIfShareGroupMemberEpochIsInvalid.
    """
    if epoch in (0, member.member_epoch) or (epoch < member.member_epoch and epoch == member.previous_member_epoch):
        return
    relation, more = ("greater", "") if epoch > member.member_epoch else ("smaller", _NOT_PREVIOUS)
    known = f"a {relation} member epoch ({epoch}) than the one known by the group coordinator ({member.member_epoch})"
    message = f"The share group member has {known}{more.format(member.previous_member_epoch)}."
    raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, f"{message} The member must abandon all its partitions and rejoin.")


_NOT_PREVIOUS = ", and it does not match the previous member epoch ({})"


def _with_request(member: ShareMember, request: ShareGroupHeartbeat) -> ShareMember:
    said: dict[str, Any] = {"client_id": request.client_id, "client_host": request.client_host}
    if request.rack_id is not None:
        said["rack_id"] = request.rack_id
    names = request.subscribed_topic_names
    if names is not None:
        said |= {"topic_set": frozenset(names), "subscribed_topics": topic_order(names)}
    return replace(member, **said)


def _subscribe(shard: Shard, change: ShareHeartbeatContext) -> Sequence[str]:
    """The first step: the group epoch grows when the subscription, the topics or the partitions that may be read have changed.

    Return the names of all topics subscribed to.
    """
    group, old, new = change.group, change.old, change.new
    bump = False
    if new != old:
        change.records.append(member_record(group.group_id, new))
        bump = new.topic_set != old.topic_set
    # Where a target may be late, the one to come has the new partitions in any case.
    if group.assignment_epoch >= group.group_epoch or not group.profile.has_assignment_interval:
        bump = bump or _has_unassigned(shard, group)
    if not bump and not group.is_metadata_due(shard.now_ms):
        return group.topic_counts.java_order()
    names = group.subscribed_names(old, new)
    metadata_hash = group_hash(names, shard.image)
    change.is_homogeneous = group.is_homogeneous_with(old, new)
    if bump or metadata_hash != group.metadata_hash:
        change.group_epoch += 1
        change.records.append(group_record(group.group_id, change.group_epoch, metadata_hash))
    group.put_metadata_off(shard.now_ms, change.group_epoch)
    return names


def _has_unassigned(shard: Shard, group: ShareGroup) -> bool:
    """Whether partitions of a topic subscribed to whose state is there are not those that are in somebody's target.

    Kafka: GroupMetadataManager#initializedAssignmentPending.
    """
    assigned: dict[object, set[int]] = {}
    for target in group.targets.values():
        for topic_id, numbers in target.items():
            assigned.setdefault(topic_id, set()).update(numbers)
    return bool(group.members) and any(
        topic.name in group.topic_counts and assigned.get(topic_id) != set(topic.partitions)
        for topic_id, topic in _initialized(shard, group).items()
    )


def _initialized(shard: Shard, group: ShareGroup) -> Noted:
    return shard.share_partitions.get(group.group_id, NOBODYS).initialized


def _update_target(shard: Shard, change: ShareHeartbeatContext) -> tuple[int, Target]:
    """The second step: a new target, if the group epoch is ahead of it and the assignment interval is over; else the last one."""
    group, new, records = change.group, change.new, change.records
    interval_ms = shard.group_config(group.group_id).share_assignment_interval_ms
    if group.assignment_epoch >= change.group_epoch or not group.may_compute_target(interval_ms, shard.now_ms):
        return group.assignment_epoch, group.recorded_target(new.member_id)
    spec = _spec(shard, change)
    try:
        assigned = ASSIGNOR.assign_targets(spec)
    except IndexError as error:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    for member in spec.members:
        target = assigned.get(member.member_id, NO_TARGET)
        if not group.has_target(member.member_id, target):
            records.append(target_record(group.group_id, member.member_id, target))
    made_ms = shard.now_ms if group.profile.has_assignment_interval else 0
    records.append(target_metadata_record(group.group_id, change.group_epoch, made_ms))
    return change.group_epoch, assigned.get(new.member_id, NO_TARGET)


def _spec(shard: Shard, change: ShareHeartbeatContext) -> TargetSpec:
    group, topics = change.group, shard.image.topics
    members = list(group.members_with(change.new).values())
    return TargetSpec(
        [
            TargetMember(
                member.member_id,
                [topics[name].topic_id for name in member.subscribed_topics if name in topics],
                group.recorded_target(member.member_id),
            )
            for member in members
        ],
        {topic.topic_id: topic.partition_count for topic in topics.values()},
        change.is_homogeneous,
        len(members[0].subscribed_topics),
        {topic_id: frozenset(topic.partitions) for topic_id, topic in _initialized(shard, group).items()},
    )


def _reconcile(image: MetadataImage, change: ShareHeartbeatContext, epoch: int, target: Target, *, bumped: bool) -> None:
    """The third step: the member reads its target, as far as it subscribes to it. Kafka: ShareGroupAssignmentBuilder."""
    member = change.new
    if not bumped and member.is_reconciled_to(epoch):
        return
    assigned = _subscribed_part(image, member, target)
    if epoch != member.member_epoch:
        change.new = replace(
            member,
            state=MemberState.STABLE,
            assigned=assigned,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
        )
    else:
        change.new = replace(member, assigned=assigned)
    if not change.new.is_like(member):
        change.records.append(current_assignment_record(change.group.group_id, change.new))


def _subscribed_part(image: MetadataImage, member: ShareMember, target: Target) -> Target:
    subscribed = {image.topics[name].topic_id for name in member.subscribed_topics if name in image.topics}
    if subscribed.issuperset(target):
        return target
    order = copied_map_order(target, hash_of=uuid_hash)
    return {topic_id: target[topic_id] for topic_id in order if topic_id in subscribed}


def arm_session(shard: Shard, group: ShareGroup, member_id: str) -> None:
    """Start the member's session anew. Kafka: GroupMetadataManager#scheduleShareGroupSessionTimeout."""
    shard.arm(group.session_timer(member_id), shard.group_config(group.group_id).share_session_timeout_ms)


def _initialize(shard: Shard, change: ShareHeartbeatContext, names: Sequence[str]) -> InitializeShareState | None:
    """Have the state of partitions made that have none. Kafka: #maybeCreateInitializeShareGroupStateRequest."""
    group_id = change.group.group_id
    known = shard.share_partitions.get(group_id)
    topics = to_initialize(known or NOBODYS, names, shard.image, shard.now_ms, shard.config.share_initialize_retry_interval_ms)
    if not topics:
        return None
    key = ShareGroupStatePartitionMetadataKey(group_id)
    change.records.append(CoordinatorRecord(key, begun(known, topics, shard.image)))
    starts = (
        ShareTopicStart(topic_id, tuple(PartitionStart(number, change.group_epoch) for number in topic.partitions))
        for topic_id, topic in topics.items()
    )
    return InitializeShareState(group_id, tuple(starts))


def _answer(shard: Shard, request: ShareGroupHeartbeat, change: ShareHeartbeatContext) -> ShareGroupHeartbeatResult:
    """Return the answer. The assignment travels when it is news, and to who says what it subscribes to."""
    is_full = request.member_epoch == 0 or request.subscribed_topic_names is not None
    is_news = not have_same_partitions(change.old.assigned, change.new.assigned)
    return ShareGroupHeartbeatResult(
        member_id=change.new.member_id,
        member_epoch=change.new.member_epoch,
        heartbeat_interval_ms=shard.group_config(request.group_id).share_heartbeat_interval_ms,
        assignment=topic_partitions(change.new.assigned) if is_full or is_news else None,
    )


def _leave(shard: Shard, request: ShareGroupHeartbeat) -> ShareGroupHeartbeatResult:
    group = known_group(shard, request.group_id)
    _fence(shard, group, group.known_member(request.member_id))
    return ShareGroupHeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch)


def _fence(shard: Shard, group: ShareGroup, member: ShareMember) -> None:
    """Take a member out and bump the group epoch; the next heartbeat of somebody else computes the new target."""
    record = group_record(group.group_id, group.group_epoch + 1, group_hash(group.subscribed_names(member, None), shard.image))
    shard.disarm(group.session_timer(member.member_id))
    shard.append_tombstones(member_tombstone_keys(group.group_id, member.member_id))
    shard.append_record(record)


def wake_share_group(shard: Shard, group: ShareGroup) -> None:
    """The log is loaded: all sessions start anew."""
    for member_id in group.members.java_order():
        arm_session(shard, group, member_id)


SHARE_TIMERS: dict[TimerKind, Callable[[Shard, Timer], None]] = {TimerKind.SHARE_SESSION: fencing(ShareGroup, _fence)}
