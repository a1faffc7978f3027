"""StreamsGroupHeartbeat: join (epoch 0), stay, leave (-1).

As in the consumer protocol, the member's new data may bump the group epoch, a group epoch ahead of the target may make a new
target, and the member goes a step towards its target; all records are worked out against the group as it was, and written at the
end. Between the first two stands the topology: the first member declares it, and it is laid out on the topics of the cluster anew
when those change. What no record tells (that layout, timers, endpoints) stays as it is where a later step refuses the request.

Kafka: GroupMetadataManager#streamsGroupHeartbeat, #streamsGroupLeave; GroupCoordinatorService#throwIfStreamsGroupHeartbeat*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.modern.member import LEAVE_EPOCH, Refusal, check_blank, missing, require
from kgctl.coordinator.modern.topics import group_hash
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.streams.current_assignment import StreamsReconciliation, reconcile
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import (
    NO_STREAMS_TARGET,
    StreamsMember,
    StreamsTarget,
    owned_tasks,
    task_ids,
)
from kgctl.coordinator.streams.records import current_assignment_record, group_record, member_record, topology_record
from kgctl.coordinator.streams.target_assignment import assignment_configs, compute_target, may_compute, target_records
from kgctl.coordinator.streams.timers import arm_session, fence, watch_revocation
from kgctl.coordinator.streams.topology.configured import ConfiguredTopology
from kgctl.coordinator.streams.topology.internal_topics import configure_topics
from kgctl.coordinator.streams.topology.known import KnownTopology, known_topology
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import TaskIds
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import StreamsStatus, StreamsTopology

_STATIC_LEAVE_EPOCH = -2
_TASKS = {"active_tasks": "ActiveTasks", "standby_tasks": "StandbyTasks", "warmup_tasks": "WarmupTasks"}


@dataclass(slots=True)
class StreamsHeartbeatContext:
    """The group as it was, the member as it was and as it is so far, the records to write at the end, what the member is told."""

    group: StreamsGroup
    request: StreamsGroupHeartbeat
    old: StreamsMember
    new: StreamsMember
    group_epoch: int
    records: list[CoordinatorRecord] = field(default_factory=list)
    status: list[tuple[StreamsStatus, str]] = field(default_factory=list)


def handle_streams_group_heartbeat(shard: Shard, request: StreamsGroupHeartbeat) -> None:
    """Answer a StreamsGroupHeartbeat. Internal topics that are missing are in the answer: somebody has to make them."""
    try:
        check_request(request)
        result = _leave(shard, request) if request.member_epoch == LEAVE_EPOCH else _heartbeat(shard, request)
    except Refusal as refusal:
        # Of a failure of its own Kafka tells its log alone.
        message = None if refusal.error is ErrorCode.UNKNOWN_SERVER_ERROR else refusal.message
        result = StreamsGroupHeartbeatResult(error=refusal.error, error_message=message)
    shard.reply(request.request_id, result)


# The request by itself.


def check_request(request: StreamsGroupHeartbeat) -> None:
    """Raises `Refusal` for a request that contradicts itself, lacks what it needs, or asks for what Kafka has not got yet."""
    _check_features(request)
    check_blank("MemberId", request.member_id)
    check_blank("GroupId", request.group_id)
    check_blank("RackId", request.rack_id)
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == _STATIC_LEAVE_EPOCH:
        require("InstanceId can't be null.", holds=False)
    else:
        message = f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        require(message, request.member_epoch > _STATIC_LEAVE_EPOCH)
    tasks = [getattr(request, name) for name in _TASKS]
    all_or_none = all(each is None for each in tasks) or all(each is not None for each in tasks)
    require("If one task-type is non-null, all must be non-null.", all_or_none)
    require("Topology can only be provided when (re-)joining.", request.member_epoch == 0 or request.topology is None)


def _check_features(request: StreamsGroupHeartbeat) -> None:
    require("Static membership is not yet supported.", request.instance_id is None)
    require("TaskOffsets are not supported yet.", request.task_offsets is None)
    require("TaskEndOffsets are not supported yet.", request.task_end_offsets is None)
    require("WarmupTasks are not supported yet.", not request.warmup_tasks)
    subtopologies = () if request.topology is None else request.topology.subtopologies
    has_regex = any(subtopology.source_topic_regex for subtopology in subtopologies)
    require("Regular expressions for source topics are not supported yet.", not has_regex)


def _check_join(request: StreamsGroupHeartbeat) -> None:
    require("RebalanceTimeoutMs must be provided in first request.", request.rebalance_timeout_ms != -1)
    for name, shown in _TASKS.items():
        require(f"{shown} must be empty when (re-)joining.", getattr(request, name) == ())
    require("Topology must be non-null when (re-)joining.", request.topology is not None)
    for subtopology in request.topology.subtopologies if request.topology is not None else ():
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                what = f"Changelog topic {topic.name} must have an undefined partition count"
                raise Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"{what}, but it is set to {topic.partitions}.")


# The group and the member.


def _heartbeat(shard: Shard, request: StreamsGroupHeartbeat) -> StreamsGroupHeartbeatResult:
    records: list[CoordinatorRecord] = []
    group, old = _find(shard, request, records)
    old.check_metadata()
    change = StreamsHeartbeatContext(group, request, old, old.with_request(request), group.group_epoch, records)
    is_new = change.new != old
    if is_new:
        records.append(member_record(group.group_id, change.new))
    topology = _topology(change)
    configured = _bump_epoch(shard, change, topology, bump=is_new)
    _reconcile(shard, change, *_target(shard, change, configured))
    arm_session(shard, group, request.member_id)
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    try:
        result = _answer(shard, change, configured)
    except Refusal:
        group.has_loose_timers = True
        raise
    for record in records:
        shard.append_record(record)
    return result


def _find(shard: Shard, request: StreamsGroupHeartbeat, records: list[CoordinatorRecord]) -> tuple[StreamsGroup, StreamsMember]:
    group_id, joins = request.group_id, request.member_epoch == 0
    known = shard.groups.get(group_id)
    group = known if isinstance(known, StreamsGroup) else None
    if group is None and joins and (known is None or (isinstance(known, ClassicGroup) and known.is_empty)):
        if known is not None:
            records += [CoordinatorRecord(key, None) for key in known.tombstone_keys()]
        group = StreamsGroup(group_id, shard.config.profile)
    if group is None:
        found = f"Streams group {group_id} not found." if known is None else f"Group {group_id} is not a streams group."
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, found)
    if not joins:
        member = group.known_member(request.member_id)
        _check_epoch(member, request)
        return group, member
    limit = shard.config.group_streams_max_size
    if len(group.members) >= limit:
        # Also who is a member already and starts over.
        message = f"The streams group has reached its maximum capacity of {limit} members."
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    return group, group.members.get(request.member_id) or StreamsMember(request.member_id)


def _check_epoch(member: StreamsMember, request: StreamsGroupHeartbeat) -> None:
    """An older epoch is only the one before, of a member that did not get the last answer: it has nothing that is not its own.

    Kafka: GroupMetadataManager#throwIfStreamsGroupMemberEpochIsInvalid.
    """
    member.check_assignment()
    epoch = request.member_epoch
    is_previous = epoch < member.member_epoch and epoch == member.previous_member_epoch
    if epoch == member.member_epoch or (is_previous and _has_only_assigned(member, request)):
        return
    relation = "greater" if epoch > member.member_epoch else "smaller"
    known = f"a {relation} member epoch ({epoch}) than the one known by the group coordinator ({member.member_epoch})"
    message = f"The streams group member has {known}. The member must abandon all its partitions and rejoin."
    raise Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _has_only_assigned(member: StreamsMember, request: StreamsGroupHeartbeat) -> bool:
    kinds = zip(_TASKS, member.assigned, strict=True)
    return all(_are_among(getattr(request, name), assigned) for name, assigned in kinds)


def _are_among(owned: tuple[TaskIds, ...] | None, assigned: Mapping[str, Mapping[int, int]]) -> bool:
    return owned is not None and all(key in assigned and assigned[key].keys() >= set(numbers) for key, numbers in owned)


# The topology and the group epoch.


def _topology(change: StreamsHeartbeatContext) -> KnownTopology:
    """Return the group's topology; the first one that is declared becomes it. Kafka: GroupMetadataManager#maybeUpdateTopology."""
    group, declared = change.group, change.request.topology
    found = _agreed(change, group.topology, declared)
    if group.topology is not None and change.new.topology_epoch < group.topology.epoch:
        behind = f"The member's topology epoch {change.new.topology_epoch} is behind"
        change.status.append((StreamsStatus.STALE_TOPOLOGY, f"{behind} the group's topology epoch {group.topology.epoch}."))
    return found


def _agreed(change: StreamsHeartbeatContext, known: KnownTopology | None, declared: StreamsTopology | None) -> KnownTopology:
    if declared is None:
        if known is None:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        return known
    given = known_topology(declared)
    if given.epoch < 0:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    if known is None:
        change.records.append(topology_record(change.group.group_id, declared))
        return given
    require("Topology updates are not supported yet.", known.epoch > given.epoch or known == given)
    return known


def _bump_epoch(shard: Shard, change: StreamsHeartbeatContext, topology: KnownTopology, *, bump: bool) -> ConfiguredTopology:
    """Lay the topology out if that is due; what is new about it, or about the assignor's settings, bumps the group epoch too."""
    group = change.group
    configured, metadata_hash = _configured(shard, group, topology)
    validated_epoch = -1
    if configured.is_ready:
        validated_epoch = topology.epoch
        _check_tasks(change.request, configured)
    configs = assignment_configs(shard, group.group_id)
    if (
        bump
        or metadata_hash != group.metadata_hash
        or validated_epoch != group.validated_topology_epoch
        or configs != group.last_assignment_configs
    ):
        # Before 4.3 a new group leaves epoch 1 out, at which members wait that have no target yet.
        change.group_epoch = group.group_epoch + 1 if group.group_epoch else 2
        change.records.append(group_record(group.group_id, change.group_epoch, metadata_hash, validated_epoch, configs))
        group.put_metadata_off(shard.now_ms, change.group_epoch)
    return configured


def _configured(shard: Shard, group: StreamsGroup, topology: KnownTopology) -> tuple[ConfiguredTopology, int]:
    """Return the layout, and the hash of the topics that it was made for."""
    known = group.configured
    if group.topology is not None and known is not None and not group.is_metadata_due(shard.now_ms):
        return known, group.metadata_hash
    metadata_hash = group_hash(topology.required_topics(), shard.image)
    if group.topology is not None and known is not None and metadata_hash == group.metadata_hash:
        return known, metadata_hash
    configured = configure_topics(topology, shard.image, metadata_hash)
    shard.unsettle(group)
    group.configure(configured)
    return configured, metadata_hash


def _check_tasks(request: StreamsGroupHeartbeat, topology: ConfiguredTopology) -> None:
    """Kafka: GroupMetadataManager#throwIfRequestContainsInvalidTasks."""
    subtopologies = topology.subtopologies or {}
    for name in _TASKS:
        for key, numbers in getattr(request, name) or ():
            require(f"Subtopology {key} does not exist in the topology.", key in subtopologies)
            count = subtopologies[key].number_of_tasks
            for number in numbers:
                limit = f"Number of tasks for this subtopology: {count}"
                require(f"Task {number} for subtopology {key} is invalid. {limit}", 0 <= number < count)


# The target, and the member's step towards it.


def _target(shard: Shard, change: StreamsHeartbeatContext, topology: ConfiguredTopology) -> tuple[int, StreamsTarget]:
    """A new target, if the group epoch is ahead of it and nothing is waited for; else the last one."""
    group, new = change.group, change.new
    initial_ms = shard.group_config(group.group_id).streams_initial_rebalance_delay_ms
    if group.is_empty and initial_ms > 0:
        shard.timers.arm_if_absent(group.initial_timer, shard.now_ms + initial_ms)
    profile, is_ahead = group.profile, change.group_epoch > group.assignment_epoch
    if group.initial_timer in shard.timers and (is_ahead or profile.begins_at_epoch_1):
        _delay(change, "initial rebalance delay")
        return max(group.assignment_epoch, 1) if not profile.begins_at_epoch_1 else group.assignment_epoch, NO_STREAMS_TARGET
    last = group.targets.get(new.member_id, NO_STREAMS_TARGET)
    if not is_ahead:
        return group.assignment_epoch, last
    if not may_compute(shard, group):
        _delay(change, "assignment interval")
        return group.assignment_epoch, last
    replicas = shard.group_config(group.group_id).streams_num_standby_replicas
    targets = compute_target(group, new, topology, replicas)
    change.records += target_records(shard, group, change.group_epoch, targets)
    return change.group_epoch, targets[new.member_id]


def _delay(change: StreamsHeartbeatContext, what: str) -> None:
    change.status.append((StreamsStatus.ASSIGNMENT_DELAYED, f"Assignment delayed due to the configured {what}."))


def _reconcile(shard: Shard, change: StreamsHeartbeatContext, epoch: int, target: StreamsTarget) -> None:
    """Kafka: GroupMetadataManager#maybeReconcile."""
    group, member = change.group, change.new
    if member.is_reconciled_to(epoch):
        return
    owned = owned_tasks(change.request)
    member.check_assignment()
    change.new = reconcile(member, StreamsReconciliation(epoch, target, owned, group.processes))
    if change.new != member:
        change.records.append(current_assignment_record(group.group_id, change.new))
        watch_revocation(shard, group, change.new)


# The answer.


def _answer(shard: Shard, change: StreamsHeartbeatContext, topology: ConfiguredTopology) -> StreamsGroupHeartbeatResult:
    """Return the answer. Tasks travel when they are news, and to who joins; endpoints when the member knows an older epoch."""
    group, request, member = change.group, change.request, change.new
    tasks: list[tuple[TaskIds, ...] | None] = [None, None, None]
    if request.member_epoch == 0 or member.assigned != change.old.assigned:
        tasks = [task_ids(kind) for kind in member.assigned]
        group.endpoints.pop(member.member_id, None)
        group.endpoint_epoch += member.user_endpoint is not None
    is_news = group.endpoint_epoch != request.endpoint_information_epoch
    endpoints = group.endpoints_with(member, shard.image) if is_news else None
    if topology.problem is not None:
        change.status.append((topology.problem.status, topology.problem.message))
    if group.shutdown_member_id is not None:
        what = "encountered a fatal error and requested a shutdown for the entire application."
        text = f"Streams group member {group.shutdown_member_id} {what}"
        change.status.append((StreamsStatus.SHUTDOWN_APPLICATION, text))
    return StreamsGroupHeartbeatResult(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=shard.group_config(group.group_id).streams_heartbeat_interval_ms,
        status=tuple(change.status),
        active_tasks=tasks[0],
        standby_tasks=tasks[1],
        warmup_tasks=tasks[2],
        # What is counted for a group that is new is lost with the first records.
        endpoint_information_epoch=group.endpoint_epoch if group.group_id in shard.groups else 0,
        partitions_by_user_endpoint=endpoints,
        creatable_topics=topology.internal_topics_to_create if topology.problem is not None else (),
    )


def _leave(shard: Shard, request: StreamsGroupHeartbeat) -> StreamsGroupHeartbeatResult:
    group = shard.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, missing(StreamsGroup, request.group_id, group))
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    fence(shard, group, group.known_member(request.member_id))
    return StreamsGroupHeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch, status=())
