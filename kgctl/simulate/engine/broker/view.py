"""The group as the coordinator has it: its state, who is in it, whom each partition is assigned to; from its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.requests import ConsumerGroupHeartbeat, Heartbeat, JoinGroup, Request, SyncGroup
from kgctl.coordinator.results import PartitionErrors
from kgctl.member.api import NetworkError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.partitions import TopicPartition
from kgctl.model.records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from kgctl.simulate.engine.broker.assignments import Assignments
from kgctl.simulate.engine.recorder.causes import Cause
from kgctl.simulate.engine.recorder.history import Counted, GroupPoint
from kgctl.simulate.engine.trace import GroupChanged, Removed

if TYPE_CHECKING:
    from kgctl.coordinator.group import Group
    from kgctl.simulate.engine.pods.pod import Pod
    from kgctl.simulate.engine.pods.process import Process
    from kgctl.simulate.engine.world import World

NO_GROUP = "Dead"
_SETTLED = frozenset({GroupState.STABLE.value})
_WITHOUT_MEMBERS = frozenset({GroupState.EMPTY.value, NO_GROUP})


class GroupView:
    """Kept up to date after each call of the coordinator."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.state = NO_GROUP
        self.generation = 0
        self.leader: Pod | None = None
        self.assignments = Assignments(world, self)
        self._processes: dict[str, Process] = {}
        self._joined_in: dict[Process, int] = {}
        self._overlooked: dict[Process, bool] = {}
        self._members: dict[str, None] = {}
        self._asking: Process | None = None
        self._size = 0
        self._newest = ""
        self._epochs = (0, 0)
        self.has_coordinator = True
        """Whether one answers: events about brokers may leave the group without."""
        self._taken_out: Process | None = None
        self._group: Group | None = None

    # --- who is who

    def on_request(self, process: Process, request: Request) -> None:
        """A request has come from this process."""
        self._asking = process
        if self._overlooked:
            self._remember(process, request)
        if isinstance(request, (JoinGroup, ConsumerGroupHeartbeat)):
            self._newest = request.member_id
            self._joined_in[process] = self.generation
            if request.member_id:
                self._processes[request.member_id] = process

    def on_new_id(self, member_id: str) -> str:
        """The process whose request is being answered gets this id."""
        if self._asking is not None:
            self._processes[member_id] = self._asking
            self._newest = member_id
        return member_id

    def process_of(self, member_id: str) -> Process | None:
        """The process that has this member id, or had it."""
        return self._processes.get(member_id)

    def has_joined_again(self, process: Process) -> bool:
        """Whether it asked to be in the present generation. A static member that did not is carried along all the same."""
        return self._joined_in.get(process, -1) >= self.generation - 1

    def goes_over(self) -> None:
        """The group becomes one of the consumer protocol. In the middle of a round Kafka forgets what its members own."""
        if self.state not in _SETTLED:
            self._overlooked = {process: False for member_id in self._members if (process := self.process_of(member_id))}

    def is_overlooked(self, process: Process) -> bool:
        """Whether the coordinator has forgotten what this member owned, which it may still consume."""
        return process in self._overlooked

    def _remember(self, process: Process, request: Request) -> None:
        """Once a member beats again after it has got another assignment, it has what the coordinator knows of."""
        if process in self._overlooked:
            if isinstance(request, SyncGroup):
                self._overlooked[process] = True
            elif isinstance(request, ConsumerGroupHeartbeat) or (isinstance(request, Heartbeat) and self._overlooked[process]):
                del self._overlooked[process]

    def members(self) -> tuple[str, ...]:
        """The ids of the members, as of the last look."""
        return tuple(self._members)

    def session_timeout_ms(self, member_id: str, configured_ms: int) -> int:
        """What the coordinator takes as this member's session timeout."""
        shard = self._world.broker.core.shard
        group = shard.groups.get(self._world.scenario.group_id)
        if isinstance(group, ConsumerGroup):
            member = group.members.get(member_id)
            if member is None or member.classic is None:
                return shard.group_config(group.group_id).consumer_session_timeout_ms
        return configured_ms

    @staticmethod
    def error_of(result: Any) -> ErrorCode:
        """The error of an answer, `ErrorCode.NONE` if there is none."""
        if type(result) is PartitionErrors:
            return next((error for _, error in result.partitions if error), ErrorCode.NONE)
        if type(result) is NetworkError:
            return ErrorCode.NETWORK_EXCEPTION
        error: ErrorCode = getattr(result, "error", ErrorCode.NONE)
        return error

    # --- what changes

    def on_record(self, effect: AppendRecord) -> bool:
        """A record was written. True: it is one of the group's, not an offset."""
        world = self._world
        record = effect.record
        if not isinstance(record, CoordinatorRecord):
            return False
        world.keep_record(effect)
        key = record.key
        if isinstance(key, OffsetCommitKey):
            if isinstance(record.value, OffsetCommitValue):
                world.ownership.committed(TopicPartition(key.topic, key.partition), record.value.offset)
            return False
        self.assignments.on_record(record)
        return True

    def look(self, trigger: str, pod: Pod | None, why_removed: str, *, has_records: bool) -> None:
        """See what the call has changed."""
        world = self._world
        group = world.broker.core.shard.groups.get(world.scenario.group_id)
        if isinstance(group, ClassicGroup):
            state, generation, size = group.state.value, group.generation_id, len(group.members)
            if not why_removed and size == self._size and generation == self.generation and state == self.state:
                return
            leader = group.leader_id
        elif isinstance(group, ConsumerGroup):
            if not has_records:
                return
            self._wake_at_new_target(group)
            state, generation, size, leader = group.group_state.value, group.group_epoch, len(group.members), None
        else:
            state, generation, size, leader = NO_GROUP, self.generation, 0, None
        members: Mapping[str, object] = {} if group is None else group.members  # type: ignore[attr-defined]
        if size == self._size + 1 and self._newest in members and self._newest not in self._members:
            self._came(self._newest)
        elif why_removed or trigger == "timer" or size != self._size or generation != self.generation:
            self._compare_members(members, why_removed or "expired")
        if state != self.state or generation != self.generation or size != self._size:
            self.leader = self._pod_of(leader or "")
            if group is not self._group:
                self._meet(group, generation)
            self._changed(GroupPoint(world.loop.now_us, state, generation, size, -1), f"{trigger} {pod or ''}".rstrip())

    def _meet(self, group: Group | None, generation: int) -> None:
        """The group is another one. In the place of one without members Kafka makes a new one, which counts from its start."""
        self._group = group
        if self.state in _WITHOUT_MEMBERS:
            self.generation = min(self.generation, generation)

    def on_coordinator_lost(self) -> None:
        """Nobody knows the group at present; what members think of it is another thing."""
        self.has_coordinator = False
        self._changed(GroupPoint(self._world.loop.now_us, NO_GROUP, self.generation, self._size, -1), "CoordinatorLost")

    def on_coordinator_found(self) -> None:
        """There is one again, which goes by the records: a generation that no leader has assigned is gone with who knew of it."""
        self.has_coordinator = True
        group = self._world.broker.core.shard.groups.get(self._world.scenario.group_id)
        if isinstance(group, ClassicGroup):
            self.generation = min(self.generation, group.generation_id)
        self._group = group

    def _changed(self, point: GroupPoint, trigger: str) -> None:
        world = self._world
        world.check.generation(self.generation, point.generation)
        is_settled = point.state in _SETTLED
        if point.generation > self.generation or (self.state in _SETTLED and not is_settled):
            coordination = world.broker.coordination
            blamed = trigger if coordination is None else coordination.blamed(trigger, self._taken_out)
            world.history.triggers.append((point.at_us, blamed))
        self.state, self.generation, self._size = point.state, point.generation, point.members
        name, number = ("", -1) if self.leader is None else (self.leader.name, self.leader.number)
        world.history.group.append(point._replace(leader=number))
        world.log(GroupChanged(world.log_time, point.state, point.generation, point.members, name))
        if not is_settled and not world.uses_consumer_protocol:
            world.quiet.thaw_all()
        elif is_settled and self.assignments.is_changed:
            self.assignments.is_changed = False
            world.check.stable(self)
        world.changed()

    def is_settled_for(self, member_id: str) -> bool:
        """Whether heartbeats of this member would change nothing and bring it nothing new, as long as the group stays as it is.

        In the consumer protocol that holds for every member that is where the target wants it, whatever others still have to do,
        once a heartbeat has made the coordinator look at topics that have changed.
        """
        if not self.has_coordinator:
            return False
        group = self._world.broker.core.shard.groups.get(self._world.scenario.group_id)
        if isinstance(group, ConsumerGroup):
            if self._awaits_heartbeat(group):
                return False
            member = group.members.get(member_id)
            is_current = group.group_epoch == group.assignment_epoch and member is not None and not member.uses_classic_protocol
            return is_current and member is not None and member.is_reconciled_to(group.assignment_epoch)
        return isinstance(group, ClassicGroup) and group.state is GroupState.STABLE

    def _awaits_heartbeat(self, group: ConsumerGroup) -> bool:
        """Whether the next heartbeat finds topics that are new to the group, or to its patterns."""
        if not group.metadata_deadline_ms:
            return True
        newest = self._world.broker.core.shard.last_version_with_new_topics
        return any(resolved.version < newest for resolved in group.resolved_regexes.values())

    def _wake_at_new_target(self, group: ConsumerGroup) -> None:
        epochs = (group.group_epoch, group.assignment_epoch)
        if epochs != self._epochs:
            self._epochs = epochs
            self._world.quiet.thaw_all()

    def _compare_members(self, members: Mapping[str, object], why: str) -> None:
        """Who is gone; who has come. Joins only add, at the end."""
        before = self._members
        now_us = self._world.loop.now_us
        gone = [member_id for member_id in before if member_id not in members]
        for member_id in gone:
            del before[member_id]
        if len(before) < len(members):
            for member_id in [member_id for member_id in members if member_id not in before]:
                before[member_id] = None
                pod = self._pod_of(member_id)
                if pod is not None:
                    self._world.history.pods[pod.number].came(member_id, now_us)
        if gone:
            there = {pod.number for member_id in before if (pod := self._pod_of(member_id)) is not None}
            for member_id in gone:
                pod = self._pod_of(member_id)
                self._removed(member_id, "replaced" if pod is not None and pod.number in there else why)

    def _came(self, member_id: str) -> None:
        """The member whose request was just answered may be a new one."""
        self._members[member_id] = None
        pod = self._pod_of(member_id)
        if pod is not None:
            self._world.history.pods[pod.number].came(member_id, self._world.loop.now_us)

    def _pod_of(self, member_id: str) -> Pod | None:
        process = self._processes.get(member_id)
        return None if process is None else process.pod

    def _removed(self, member_id: str, why: str) -> None:
        world = self._world
        now_us = world.loop.now_us
        process = self._taken_out = self._processes.pop(member_id, None)
        if process is None:
            return
        world.log(Removed(world.log_time, process.pod.name, member_id, why))
        if why == "replaced":
            process.thaw()  # it learns of it by its next request
            return
        world.history.pods[process.pod.number].in_group.set(now_us, is_so=False)
        if process.gone_us >= 0:
            if why == "expired":
                world.history.detections.append(Counted(now_us, now_us - process.gone_us, process.pod.number))
            lost = [number for number in process.lost if world.lanes.gap_cause(number) in (Cause.DETECTION, Cause.STATIC_WAIT)]
            world.lanes.recause(lost, Cause.HANDOVER, now_us)
        elif why == "expired":
            world.history.kicked.append(Counted(now_us, 1, process.pod.number))
