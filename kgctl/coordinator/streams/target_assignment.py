"""A new target for the members of a streams group: who should run which task. Kafka: streams' TargetAssignmentBuilder.

Kafka: GroupMetadataManager#maybeUpdateStreamsTargetAssignment, #computeDelayedTargetAssignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams_sticky import StickyTaskAssignor
from kgctl.assignors.task_spec import TaskMember, TaskSpec
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.shard import Shard
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.streams.member import NO_STREAMS_TARGET, StreamsMember, StreamsTarget
from kgctl.coordinator.streams.records import target_metadata_record, target_record
from kgctl.coordinator.streams.topology.configured import ConfiguredTopology, sizes
from kgctl.coordinator.timers import Timer
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.error_codes import ErrorCode

ASSIGNOR = StickyTaskAssignor()
NUM_STANDBY_REPLICAS = "num.standby.replicas"
Targets = Mapping[str, StreamsTarget]


def assignment_configs(shard: Shard, group_id: str) -> dict[str, str]:
    """What the assignor is told besides: it is recorded with the group epoch, which grows when it changes."""
    return {NUM_STANDBY_REPLICAS: str(shard.group_config(group_id).streams_num_standby_replicas)}


def may_compute(shard: Shard, group: StreamsGroup) -> bool:
    """Whether the interval since the last target is over."""
    return group.may_compute_target(shard.group_config(group.group_id).streams_assignment_interval_ms, shard.now_ms)


def compute_target(group: StreamsGroup, new: StreamsMember | None, topology: ConfiguredTopology, replicas: int) -> Targets:
    """The target of every member, with ``new`` in its place, in Kafka's order. Raises `Refusal` where Kafka's assignor fails."""
    members = group.members_with(new)
    specs = []
    for member_id, member in members.items():
        member.check_metadata()
        target = group.targets.get(member_id, NO_STREAMS_TARGET)
        specs.append(TaskMember(member_id, member.process_id, target.active, target.standby))
    if not topology.is_ready:
        # Nobody gets a task before all topics are there.
        return dict.fromkeys(members, NO_STREAMS_TARGET)
    spec = TaskSpec(specs, sizes(topology.subtopologies or {}), replicas)
    try:
        assigned = ASSIGNOR.assign_tasks(spec)
    except AssignorError as error:
        raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    return {member_id: StreamsTarget(assigned[member_id].active, assigned[member_id].standby) for member_id in members}


def target_records(shard: Shard, group: StreamsGroup, group_epoch: int, targets: Targets) -> Iterator[CoordinatorRecord]:
    """The records of the targets that are not what they were, and of the epoch that they are made for."""
    for member_id, target in targets.items():
        before = group.targets.get(member_id)
        if before is None or before.as_sets() != target.as_sets():
            yield target_record(group.group_id, member_id, target)
    made_ms = shard.now_ms if group.profile.has_assignment_interval else 0
    yield target_metadata_record(group.group_id, group_epoch, made_ms)


def on_initial_rebalance_timer(shard: Shard, timer: Timer) -> None:
    """Those that have joined meanwhile get their target; each hears of it when it beats next."""
    group = shard.groups.get(timer.key.group_id)
    if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
        return
    if group.group_epoch <= group.assignment_epoch or not may_compute(shard, group):
        return
    replicas = int(group.last_assignment_configs.get(NUM_STANDBY_REPLICAS, 0))
    try:
        targets = compute_target(group, None, group.configured, replicas)
    except Refusal:
        return  # Kafka does not try again: a heartbeat does
    for record in list(target_records(shard, group, group.group_epoch, targets)):
        shard.append_record(record)
