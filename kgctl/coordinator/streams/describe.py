"""StreamsGroupDescribe. Kafka: GroupMetadataManager#streamsGroupDescribe, StreamsGroup#asDescribedGroup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgctl.coordinator.describe import describe_as
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import NO_STREAMS_TARGET, HeldTasks, StreamsMember, StreamsTarget, task_ids
from kgctl.coordinator.streams.topology.known import java_sorted
from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupDescribe
from kgctl.model.streams_results import (
    StreamsAssignment,
    StreamsGroupDescribedGroup,
    StreamsGroupDescribedMember,
    StreamsGroupDescribeResult,
)
from kgctl.model.streams_topology import StreamsTopology


def handle_streams_group_describe(shard: Shard, request: StreamsGroupDescribe) -> None:
    """StreamsGroupDescribe: streams groups; of every other id there is none. Ids that are none come first.

    A group of which records are missing, which only an odd log has, is a failure of Kafka's own, and of all that were asked for.
    """
    named = [group_id for group_id in request.group_ids if group_id]
    unnamed = [group_id for group_id in request.group_ids if not group_id]

    def described(group_ids: Sequence[str | None]) -> list[StreamsGroupDescribedGroup]:
        return [describe_as(StreamsGroup, shard, each, _describe, StreamsGroupDescribedGroup) for each in group_ids]

    try:
        groups = described(named)
    except Refusal as refusal:
        groups = [StreamsGroupDescribedGroup(group_id=group_id, error=refusal.error) for group_id in named]
    shard.reply(request.request_id, StreamsGroupDescribeResult(groups=(*described(unnamed), *groups)))


def _describe(group: StreamsGroup) -> StreamsGroupDescribedGroup:
    return StreamsGroupDescribedGroup(
        group_id=group.group_id,
        state=group.group_state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=tuple(_describe_member(member, group.targets.get(member.member_id)) for member in group.members.java_values()),
    )


def _topology(group: StreamsGroup) -> StreamsTopology:
    """As it is laid out on the topics of the cluster; as it was declared while that is not done."""
    if group.configured is not None and group.configured.is_ready:
        return StreamsTopology(group.configured.topology_epoch, group.configured.described())
    if group.topology is None:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    return StreamsTopology(group.topology.epoch, group.topology.described())


def _describe_member(member: StreamsMember, target: StreamsTarget | None) -> StreamsGroupDescribedMember:
    member.check_metadata()
    member.check_assignment()
    return StreamsGroupDescribedMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags=tuple(member.client_tags.items()),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target or NO_STREAMS_TARGET),
    )


def _assignment(kinds: HeldTasks | StreamsTarget) -> StreamsAssignment:
    return StreamsAssignment(*(_sorted(kind) for kind in kinds))


def _sorted(tasks: Mapping[str, Iterable[int]]) -> tuple[TaskIds, ...]:
    return task_ids({key: tasks[key] for key in java_sorted(tasks)})
