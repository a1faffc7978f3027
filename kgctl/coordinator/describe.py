"""DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe, ListGroups, DeleteGroups, the statistics, and where a group's
reconciliation stands.

Kafka: GroupMetadataManager#describeGroups, ConsumerGroup#asDescribedGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from kgctl.coordinator.classic.group import STABLE, ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.consumer.member import ConsumerMember
from kgctl.coordinator.consumer.target_assignment import described_assignor
from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.member import missing
from kgctl.coordinator.offset_handlers import append_offset_tombstones
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.share.deletion import delete_state_of_groups, errors_of_deletion, offsets_deleted
from kgctl.coordinator.share.group import ShareGroup, ShareMember
from kgctl.coordinator.share.heartbeat import ASSIGNOR
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.requests import (
    AwaitedMember,
    ConsumerGroupDescribe,
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribedMember,
    ConsumerGroupDescribeResult,
    CoordinatorStatistics,
    DeleteGroups,
    DeleteGroupsResult,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    DescribeGroupsResult,
    Done,
    ListedGroup,
    ListGroups,
    ListGroupsResult,
    RebalanceStatus,
    TopicPartitions,
)
from kgctl.model.share_requests import DeleteGroupsPurpose, ShareGroupDescribe, ShareStateDeleted
from kgctl.model.share_results import ShareGroupDescribedGroup, ShareGroupDescribedMember, ShareGroupDescribeResult
from kgctl.model.values import copied_set_order, hash_map_order, uuid_hash

G = TypeVar("G", bound=Group)
D = TypeVar("D")

_NOT_FOUND_VERSION = 6
"""From this version on DescribeGroups tells a missing group from a dead one (KIP-1043)."""


def handle_describe_groups(shard: Shard, request: DescribeGroups) -> None:
    """DescribeGroups: classic groups; every other one is Dead for it."""
    groups = tuple(_describe(shard, group_id, request.api_version) for group_id in request.group_ids)
    shard.reply(request.request_id, DescribeGroupsResult(groups=groups))


def _describe(shard: Shard, group_id: str | None, version: int) -> DescribedGroup:
    if group_id is None:
        return DescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID)
    group = shard.settled_group(group_id)
    if isinstance(group, ClassicGroup):
        return _describe_classic(group)
    error, message = ErrorCode.NONE, None
    if version >= _NOT_FOUND_VERSION:
        error = ErrorCode.GROUP_ID_NOT_FOUND
        message = missing(ClassicGroup, group_id, group)
    return DescribedGroup(group_id=group_id, error=error, error_message=message, state=GroupState.DEAD.value)


def _describe_classic(group: ClassicGroup) -> DescribedGroup:
    """Only in Stable it is sure which protocol the members' metadata belongs to."""
    protocol = group.protocol_name if group.state is STABLE else None
    members = tuple(
        DescribedMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=b"" if protocol is None else member.metadata(protocol),
            assignment=member.assignment,
        )
        for member in group.members.java_values()
    )
    return DescribedGroup(
        group_id=group.group_id,
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=members,
    )


def handle_list_groups(shard: Shard, request: ListGroups) -> None:
    """Answer ListGroups: the groups of the wanted states and types, in the order of Kafka's map."""
    shard.reply(request.request_id, ListGroupsResult(groups=tuple(listed_groups(shard, request))))


def listed_groups(shard: Shard, request: ListGroups) -> Iterator[ListedGroup]:
    """Return the groups that match, in Kafka's order. Both filters have to match, in any case of letters; an empty one does."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    for group in shard.settled_groups():
        if (not states or group.state_filter in states) and (not types or group.type.value in types):
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                state=group.group_state.value,
                type=group.type.value,
            )


def handle_delete_groups(shard: Shard, request: DeleteGroups) -> None:
    """DeleteGroups: each group by itself, offsets first. Kafka goes through a HashSet of them, which orders the tombstones.

    What is kept of share groups' partitions has to go before, and is somebody else's to delete.
    """
    errors = delete_state_of_groups(shard, request)
    if errors is not None:
        _delete_groups(shard, request.request_id, request.group_ids, errors)


def handle_share_state_deleted(shard: Shard, request: ShareStateDeleted) -> None:
    """Go on with what waited for it."""
    purpose = request.call.purpose
    if isinstance(purpose, DeleteGroupsPurpose):
        errors = {**dict(purpose.errors), **errors_of_deletion(request.call, request.groups)}
        _delete_groups(shard, purpose.request_id, purpose.group_ids, errors)
    else:
        for group in request.groups:
            offsets_deleted(shard, purpose, group)
    shard.reply(request.request_id, Done())


def _delete_groups(shard: Shard, request_id: int, group_ids: Sequence[str | None], failed: dict[str, ErrorCode]) -> None:
    if shard.config.profile.deletes_each_group_once:
        named = [group_id for group_id in group_ids if group_id is not None]
        left = [group_id for group_id in copied_set_order(named) if group_id not in failed]
        errors: dict[str | None, ErrorCode] = {group_id: _delete(shard, group_id) for group_id in left}
        errors.update(failed)
        results = tuple((group_id, errors.get(group_id, ErrorCode.INVALID_GROUP_ID)) for group_id in group_ids)
    else:
        results = tuple((group_id, _delete(shard, group_id)) for group_id in group_ids)
    shard.reply(request_id, DeleteGroupsResult(groups=results))


def _delete(shard: Shard, group_id: str | None) -> ErrorCode:
    if group_id is None:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.groups.get(group_id)
    if group is None or group.group_state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    append_offset_tombstones(shard, group_id)
    shard.delete_group(group)
    return ErrorCode.NONE


def statistics(shard: Shard) -> CoordinatorStatistics:
    """Groups by type and state, members by the type of their group, and how many offsets are committed."""
    members: Counter[str] = Counter()
    for group in shard.groups.values():
        members[group.type.value] += group.member_count
    return CoordinatorStatistics(
        groups=dict(Counter((group.type.value, group.group_state.value) for group in shard.groups.values())),
        members=dict(members),
        offsets=len(shard.offsets),
    )


def describe_as(kind: type[G], shard: Shard, group_id: str | None, describe: Callable[[G], D], refuse: Callable[..., D]) -> D:
    """Return what ``describe`` says of the group; where there is none of this type, ``refuse`` with its id and an error."""
    if not group_id:
        return refuse(group_id="", error=ErrorCode.INVALID_GROUP_ID)
    group = shard.settled_group(group_id)
    if isinstance(group, kind):
        return describe(group)
    message = missing(kind, group_id, group)
    return refuse(group_id=group_id, error=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)


def handle_consumer_group_describe(shard: Shard, request: ConsumerGroupDescribe) -> None:
    """ConsumerGroupDescribe: groups of this protocol; of every other id there is none."""
    existing = {topic.topic_id for topic in shard.image.topics.values()}

    def described(group: ConsumerGroup) -> ConsumerGroupDescribedGroup:
        return _describe_consumer_group(shard, group, existing)

    groups = [describe_as(ConsumerGroup, shard, each, described, ConsumerGroupDescribedGroup) for each in request.group_ids]
    shard.reply(request.request_id, ConsumerGroupDescribeResult(groups=tuple(groups)))


def _describe_consumer_group(shard: Shard, group: ConsumerGroup, existing: set[UUID]) -> ConsumerGroupDescribedGroup:
    return ConsumerGroupDescribedGroup(
        group_id=group.group_id,
        state=group.group_state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=described_assignor(shard, group),
        members=tuple(_describe_member(group, member, existing) for member in group.members.java_values()),
    )


def handle_share_group_describe(shard: Shard, request: ShareGroupDescribe) -> None:
    """ShareGroupDescribe: share groups; of every other id there is none."""
    existing = {topic.topic_id for topic in shard.image.topics.values()}

    def described(group: ShareGroup) -> ShareGroupDescribedGroup:
        return _describe_share_group(group, existing)

    groups = [describe_as(ShareGroup, shard, each, described, ShareGroupDescribedGroup) for each in request.group_ids]
    shard.reply(request.request_id, ShareGroupDescribeResult(groups=tuple(groups)))


def _describe_share_group(group: ShareGroup, existing: set[UUID]) -> ShareGroupDescribedGroup:
    return ShareGroupDescribedGroup(
        group_id=group.group_id,
        state=group.group_state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR.name,
        members=tuple(_describe_share_member(member, existing) for member in group.members.java_values()),
    )


def _describe_share_member(member: ShareMember, existing: set[UUID]) -> ShareGroupDescribedMember:
    return ShareGroupDescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topics,
        assignment=_topics(member.assigned.items(), existing),
    )


def _describe_member(group: ConsumerGroup, member: ConsumerMember, existing: set[UUID]) -> ConsumerGroupDescribedMember:
    return ConsumerGroupDescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.subscribed_topics,
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_held(group, member, existing),
        target_assignment=_topics(group.target_of(member.member_id).items(), existing),
        member_type=0 if member.uses_classic_protocol else 1,
    )


def _held(group: ConsumerGroup, member: ConsumerMember, existing: set[UUID]) -> TopicPartitions:
    """What it owns and what it still has to revoke: it answers for both."""
    if not group.profile.describes_revocations:
        return _topics(((topic_id, tuple(epochs)) for topic_id, epochs in member.assigned.items()), existing)
    held: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, []).extend(epochs)
    return _topics(((topic_id, held[topic_id]) for topic_id in hash_map_order(held, hash_of=uuid_hash)), existing)


def _topics(topics: Iterable[tuple[UUID, Sequence[int]]], existing: set[UUID]) -> TopicPartitions:
    return tuple((topic_id, tuple(numbers)) for topic_id, numbers in topics if topic_id in existing)


def reconciliation_status(shard: Shard, group: ConsumerGroup) -> RebalanceStatus:
    """Who keeps the group from being Stable: members that are not at their target yet."""
    awaited = [
        AwaitedMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            waiting_for=member.state.name,
            session_deadline_ms=shard.timers.deadline_ms(TimerKey(TimerKind.CONSUMER_SESSION, group.group_id, member_id)),
        )
        for member_id, member in sorted(group.members.items())
        if not member.is_reconciled_to(group.assignment_epoch)
    ]
    is_assigning = group.group_epoch > group.assignment_epoch and bool(group.members)
    deadlines = [shard.timers.deadline_ms(TimerKey(TimerKind.CONSUMER_REBALANCE, group.group_id, a.member_id)) for a in awaited]
    return RebalanceStatus(
        group_id=group.group_id,
        state=group.group_state.value,
        generation_id=group.group_epoch,
        waiting_for="assignment" if is_assigning else "reconciliation" if awaited else None,
        deadline_ms=min((deadline for deadline in deadlines if deadline is not None), default=None),
        awaited=tuple(awaited),
    )
