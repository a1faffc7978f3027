"""Whom the coordinator has assigned each partition to, from the records that it writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast
from uuid import UUID

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.group import Group
from kgctl.coordinator.modern.group import ModernGroup
from kgctl.coordinator.streams.group import StreamsGroup
from kgctl.coordinator.timers import SESSION_TIMERS, TimerKind
from kgctl.member.api import NetworkError
from kgctl.member.config import is_cooperative
from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMetadataKey,
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, TopicPartition
from kgctl.model.requests import ConsumerGroupHeartbeat, Heartbeat, JoinGroup, PartitionErrors, Request, SyncGroup
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.model.streams_records import StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.serde.consumer_protocol import decode_assignment
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.invariants import Invariants
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.trace import GroupChanged, Joined, Removed
from kgctl.simulate.scenario.vocabulary import GapCause

_CACHED = 100_000
MAY_JOIN: frozenset[type] = frozenset({JoinGroup, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat})
"""Requests by which a member joins, and names itself."""


class Assignments:
    """``withheld``: partitions that a cooperative round has taken from their owner and given to nobody yet.

    ``doubled``: those that the leader of this generation gave to two members. ``numbers_of_tasks``: which partitions the tasks
    of a streams group read, given as (subtopology, partitions).
    """

    numbers_of_tasks: Callable[[Sequence[tuple[str, Sequence[int]]]], tuple[int, ...]]

    def __init__(self, context: RunContext, view: GroupObserver) -> None:
        self._context = context
        self._view = view
        self.withheld: dict[int, None] = {}
        self.doubled: dict[int, None] = {}
        self.protocol = ""
        self._is_going_back = False
        self.is_changed = False
        self.is_cooperative = False
        self._largest_bytes = 0
        self._of_member: dict[str, tuple[int, ...]] = {}
        self._bytes: dict[str, bytes] = {}
        self._recorded: dict[str, tuple[AssignedTopicPartitions, ...]] = {}
        self._decoded: dict[bytes, tuple[int, ...]] = {}

    def of_member(self, member_id: str) -> tuple[int, ...]:
        """The numbers of the partitions that this member is assigned."""
        return self._of_member.get(member_id, ())

    def on_record(self, record: CoordinatorRecord) -> None:
        key = record.key
        if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            self._on_assignment(key.member_id, cast("ConsumerGroupCurrentMemberAssignmentValue | None", record.value))
        elif isinstance(key, GroupMetadataKey):
            if isinstance(record.value, GroupMetadataValue):
                self._on_generation(record.value)
            else:
                self._on_end_of_classic()
        elif isinstance(key, ConsumerGroupMetadataKey):
            self._is_going_back = record.value is None
        elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            self._on_tasks(key.member_id, cast("StreamsGroupCurrentMemberAssignmentValue | None", record.value))

    # --- consumer protocol

    def _on_assignment(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        if value is None:
            self._set({}, (member_id,))
        elif self._recorded.get(member_id) is value.assigned_partitions:
            self.is_changed = True  # by its epoch alone
        else:
            self._recorded[member_id] = value.assigned_partitions
            numbers = self._numbers_of({topic.topic_id: topic.partitions for topic in value.assigned_partitions})
            self._set({member_id: numbers} if numbers != self._of_member.get(member_id) else {}, ())

    # --- streams protocol

    def _on_tasks(self, member_id: str, value: StreamsGroupCurrentMemberAssignmentValue | None) -> None:
        if value is None:
            self._set({}, (member_id,))
            return
        numbers = self.numbers_of_tasks([(each.subtopology_id, each.partitions) for each in value.active_tasks])
        self._set({member_id: numbers} if numbers != self._of_member.get(member_id) else {}, ())

    # --- classic

    def _on_generation(self, value: GroupMetadataValue) -> None:
        is_round = not self._is_going_back  # a group that goes back to the classic protocol begins with what was wanted there
        self._is_going_back = False
        self.is_cooperative = is_round and value.protocol is not None and is_cooperative((value.protocol,))
        self.protocol = value.protocol or ""
        changed: dict[str, tuple[int, ...]] = {}
        known = {} if self.doubled else self._bytes
        self.doubled.clear()
        assignments = {member.member_id: member.assignment for member in value.members}
        for member_id, assignment in assignments.items():
            if known.get(member_id) != assignment:
                changed[member_id] = self._decode(assignment)
        gone = tuple(member_id for member_id in self._of_member if member_id not in assignments)
        self._bytes = assignments
        self._recorded.clear()
        self._set(changed, gone)
        self._measure(value)

    def _on_end_of_classic(self) -> None:
        """The group goes over to the consumer protocol, or ends. Who left it since its last generation takes nothing along."""
        members = self._view.members()
        self._bytes = {}
        self.doubled.clear()
        self._view.goes_over()
        self._set({}, tuple(member_id for member_id in self._of_member if member_id not in members))

    def _decode(self, assignment: bytes) -> tuple[int, ...]:
        numbers = self._decoded.get(assignment)
        if numbers is None:
            if len(self._decoded) > _CACHED:
                self._decoded.clear()
            partitions = decode_assignment(assignment).partitions if assignment else ()
            # A leader whose metadata is old gives out partitions of a topic that is gone; nobody can read them.
            deleted_us = self._context.partitions.deleted_us
            found = self._context.partitions.numbers_of(partitions)
            numbers = tuple(number for number in found if deleted_us[number] is None)
            self._decoded[assignment] = numbers
        return numbers

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget partitions that are gone; bytes with their names stand for others from now on."""
        gone = set(numbers)
        self._recorded.clear()
        self._decoded.clear()
        self._bytes = {}
        for number in gone:
            self.withheld.pop(number, None)
        for member_id, held in self._of_member.items():
            self._of_member[member_id] = tuple(number for number in held if number not in gone)

    def _measure(self, value: GroupMetadataValue) -> None:
        size = sum([len(member.subscription) + len(member.assignment) for member in value.members])
        if size > self._largest_bytes:
            self._largest_bytes, self._context.recording.largest = size, value

    # --- both protocols

    def _numbers_of(self, topics: Mapping[UUID, Sequence[int]]) -> tuple[int, ...]:
        names = self._context.topic_names
        present = self._context.partitions.present
        found: list[int] = []
        for topic_id, partitions in topics.items():
            numbers = present.get(names.get(topic_id, ""), ())
            found += [numbers[partition] for partition in partitions if partition < len(numbers)]
        return tuple(found)

    def _set(self, changed: Mapping[str, tuple[int, ...]], gone: Collection[str]) -> None:
        self.is_changed = True
        if changed or gone:
            self._hand_over(changed, gone)
        self._context.changed()

    def _hand_over(self, changed: Mapping[str, tuple[int, ...]], gone: Collection[str]) -> None:
        lanes = self._context.owners
        pods = {member_id: self._pod(member_id) for member_id in changed}
        before: dict[int, None] = {}
        for member_id in gone:
            self._recorded.pop(member_id, None)
            before.update(dict.fromkeys(self._of_member.pop(member_id, ())))
        for member_id in changed:
            before.update(dict.fromkeys(self._of_member.get(member_id, ())))
        taken = set(chain.from_iterable(changed.values()))
        freed = [number for number in before if number not in taken]
        lanes.assign(NOBODY, freed)
        if freed and self._view.state != "Empty":
            self.withheld.update(dict.fromkeys(freed))
        for member_id, numbers in changed.items():
            check = self._view.check
            if twice := check.single_owner(member_id, numbers, self._of_member, changed, assignor=self.protocol):
                self.doubled.update(dict.fromkeys(twice))
            self._of_member[member_id] = numbers
            own = tuple(number for number in numbers if number not in self.doubled) if self.doubled else numbers
            check.assigned(pods[member_id], own, is_cooperative=self.is_cooperative)
            lanes.assign(pods[member_id], own)
        if self.withheld:
            for number in taken:
                self.withheld.pop(number, None)

    def _pod(self, member_id: str) -> int:
        process = self._view.process_of(member_id)
        return NOBODY if process is None else process.pod.number


def error_of(result: Any) -> ErrorCode:
    """Return the error of an answer, `ErrorCode.NONE` if there is none."""
    kind = type(result)
    if kind is PartitionErrors:
        return next((error for _, error in result.partitions if error), ErrorCode.NONE)
    if kind is NetworkError:
        return ErrorCode.NETWORK_EXCEPTION
    error: ErrorCode = getattr(result, "error", ErrorCode.NONE)
    return error


NO_GROUP = "Dead"
_SETTLED = frozenset({GroupState.STABLE.value})
_HAND_OVER = frozenset({GroupType.CONSUMER, GroupType.STREAMS})
"""Types of groups whose coordinator hands each partition over when its owner has given it up."""
_WITHOUT_MEMBERS = frozenset({GroupState.EMPTY.value, NO_GROUP})


class GroupObserver:
    """Kept up to date after each call of the coordinator, ``core``.

    ``on_stored`` is called with each offset that is stored, ``wake_all`` when heartbeats of any member may bring it something
    new, ``blame`` with what set a rebalance off and whom the group has lost last: what the log is to say.
    """

    on_stored: Callable[[TopicPartition, int], None]
    wake_all: Callable[[], None]
    blame: Callable[[str, Process | None], str] | None = None

    def __init__(self, context: RunContext, pods: Sequence[Pod]) -> None:
        self._context = context
        self.check = Invariants(context, pods, self)
        self.state = NO_GROUP
        self.generation = 0
        self.leader: Pod | None = None
        self.assignments = Assignments(context, self)
        self._processes: dict[str, Process] = {}
        self._joined_in: dict[Process, int] = {}
        self._overlooked: dict[Process, bool] = {}
        self._members: dict[str, None] = {}
        self._asking: Process | None = None
        self._asked: Any = None
        self._size = 0
        self._newest = ""
        self._epochs = (0, 0)
        self._seen: tuple[int, int, int, GroupState] | None = None
        """What the state of a group of another protocol than the classic one was made of, when it was looked at last."""
        self.due: Mapping[str, TimerKind] = {}
        """Members, or "" for the group -> their timers that the coordinator found due last."""
        self.has_coordinator = True
        """Whether one answers: events about brokers may leave the group without."""
        self._taken_out: Process | None = None
        self._heard_us: dict[Process, int] = {}
        self._renewed = (-1, -1)
        """When all sessions began anew last, and the generation that they did so for; -1: another coordinator read the group."""
        self._group: Group | None = None

    def follow(self, core: GroupCoordinator) -> None:
        """Look at this coordinator from now on."""
        self.core = core
        self._shard = core.shard

    # --- who is who

    def on_request(self, process: Process, request: Any, kind: type) -> None:
        """Note that a process's request, which is of this kind, has reached the coordinator."""
        self._asking, self._asked = process, request
        self._heard_us[process] = self._context.loop.now_us
        if self._overlooked:
            self._remember(process, request)
        if kind in MAY_JOIN:
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

    @property
    def uses_consumer_protocol(self) -> bool:
        return getattr(self._shard.groups.get(self._context.group_id), "type", None) in _HAND_OVER

    def has_in_group(self, process: Process) -> bool:
        return process.member is not None and not process.is_suspended and process.member.member_id in self._members

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
        return tuple(self._members)

    def session_timeout_ms(self, member_id: str, configured_ms: int) -> int:
        """What the coordinator takes as this member's session timeout."""
        shard = self._shard
        group = shard.groups.get(self._context.group_id)
        if type(group) is ConsumerGroup:
            member = group.members.get(member_id)
            if member is None or member.classic is None:
                return shard.group_config(group.group_id).consumer_session_timeout_ms
        elif type(group) is StreamsGroup:
            return shard.group_config(group.group_id).streams_session_timeout_ms
        return configured_ms

    # --- what changes

    def on_record(self, effect: AppendRecord) -> bool:
        """A record was written. True: it is one of the group's, not an offset."""
        context = self._context
        record = effect.record
        if not isinstance(record, CoordinatorRecord):
            return False
        if context.recording.records is not None:
            context.recording.records.append((context.loop.now_us, effect))
        key = record.key
        if isinstance(key, OffsetCommitKey):
            if isinstance(record.value, OffsetCommitValue):
                self.on_stored(TopicPartition(key.topic, key.partition), record.value.offset)
            return False
        self.assignments.on_record(record)
        return True

    def look(self, trigger: str, pod: Pod | None, why_removed: str, *, has_records: bool) -> None:
        """Compare the group with the last look, and log what has changed."""
        context = self._context
        group = self._shard.groups.get(context.group_id)
        if type(group) is ClassicGroup:
            state, generation, size = group.state.value, group.generation_id, len(group.members)
            if not why_removed and generation == self.generation and size == self._size and state == self.state:
                return
            leader = group.leader_id
        elif isinstance(group, ModernGroup):
            if not has_records:
                return
            seen = (group.group_epoch, group.assignment_epoch, len(group.members), group.group_state)
            if seen == self._seen and group is self._group and not why_removed and trigger != "timer":
                return
            self._seen = seen
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
            reason = "" if pod is None else getattr(self._asked, "reason", None) or ""
            self._changed(state, generation, size, f"{trigger} {pod or ''}".rstrip(), reason)

    def _meet(self, group: Group | None, generation: int) -> None:
        """The group is another one. In the place of one without members Kafka makes a new one, which counts from its start."""
        self._group = group
        if self.state in _WITHOUT_MEMBERS:
            self.generation = min(self.generation, generation)

    def on_coordinator_lost(self) -> None:
        """Nobody knows the group at present; what members think of it is another thing."""
        self.has_coordinator = False
        self._changed(NO_GROUP, self.generation, self._size, "CoordinatorLost")

    def on_coordinator_found(self) -> None:
        """Follow the coordinator that was found, which goes by the records: a generation that no leader assigned is gone."""
        self.has_coordinator = True
        self._renewed = (self._context.loop.now_us, -1)
        group = self.core.shard.groups.get(self._context.group_id)
        if isinstance(group, ClassicGroup):
            self.generation = min(self.generation, group.generation_id)
        self._group = group

    def _changed(self, state: str, generation: int, size: int, trigger: str, reason: str = "") -> None:
        context = self._context
        self.check.generation(self.generation, generation)
        is_settled = state in _SETTLED
        begins = generation > self.generation or (not is_settled and self.state in _SETTLED)
        if begins and self.blame is not None:
            trigger = self.blame(trigger, self._taken_out)
        self.state, self.generation, self._size = state, generation, size
        if state == GroupState.COMPLETING_REBALANCE.value:
            self._renewed = (context.loop.now_us, generation)  # all JoinGroups are answered
        leader = "" if self.leader is None else self.leader.name
        context.emit(GroupChanged, state, generation, size, leader, trigger, begins, reason)
        if not is_settled and not self.uses_consumer_protocol:
            self.wake_all()
        elif is_settled and self.assignments.is_changed:
            self.assignments.is_changed = False
            self.check.stable()
        context.changed()

    def is_settled_for(self, member_id: str) -> bool:
        """Whether heartbeats of this member would change nothing and bring it nothing new, as long as the group stays as it is.

        In the consumer protocol that holds for every member that is where the target wants it, whatever others still have to do,
        once a heartbeat has made the coordinator look at topics that have changed.
        """
        if not self.has_coordinator:
            return False
        group = self._shard.groups.get(self._context.group_id)
        if type(group) is ConsumerGroup:
            epoch = group.assignment_epoch
            if group.group_epoch != epoch or self._awaits_heartbeat(group):
                return False
            member = group.members.get(member_id)
            return member is not None and member.classic is None and member.is_reconciled_to(epoch)
        if type(group) is StreamsGroup:
            tasks_of = group.members.get(member_id)
            return group.group_state is GroupState.STABLE and tasks_of is not None
        return type(group) is ClassicGroup and group.state is GroupState.STABLE

    def _awaits_heartbeat(self, group: ConsumerGroup) -> bool:
        """Whether the next heartbeat finds topics that are new to the group, or to its patterns."""
        if not group.metadata_deadline_ms:
            return True
        if not group.resolved_regexes:
            return False
        newest = self._shard.last_version_with_new_topics
        return any(resolved.version < newest for resolved in group.resolved_regexes.values())

    def _wake_at_new_target(self, group: ModernGroup[Any, Any]) -> None:
        epochs = (group.group_epoch, group.assignment_epoch)
        if epochs != self._epochs:
            self._epochs = epochs
            self.wake_all()

    def _compare_members(self, members: Mapping[str, object], why: str) -> None:
        """Who is gone; who has come. Joins only add, at the end."""
        before = self._members
        gone = [member_id for member_id in before if member_id not in members]
        for member_id in gone:
            del before[member_id]
        if len(before) < len(members):
            for member_id in [member_id for member_id in members if member_id not in before]:
                self._came(member_id)
        if gone:
            there = {pod.number for member_id in before if (pod := self._pod_of(member_id)) is not None}
            for member_id in gone:
                pod = self._pod_of(member_id)
                self._removed(member_id, "replaced" if pod is not None and pod.number in there else why)

    def _came(self, member_id: str) -> None:
        """A member is new."""
        self._members[member_id] = None
        pod = self._pod_of(member_id)
        if pod is not None:
            self._context.emit(Joined, pod.name, member_id)

    def _pod_of(self, member_id: str) -> Pod | None:
        process = self._processes.get(member_id)
        return None if process is None else process.pod

    def _removed(self, member_id: str, why: str) -> None:
        context = self._context
        now_us = context.loop.now_us
        process = self._taken_out = self._processes.pop(member_id, None)
        if process is None:
            return
        dead_us = None if process.gone_us < 0 else now_us - process.gone_us
        has_closed = why == "left" and process.phase is not ProcessPhase.RUNNING
        timer = self.due.get(member_id, self.due.get("", "")) if why == "expired" else ""
        heard_us, (renewed_us, renewed_for) = max(self._heard_us.pop(process, -1), process.gone_us), self._renewed
        is_renewed = timer in SESSION_TIMERS and renewed_us > heard_us
        renewed = (renewed_us - context.warmup_us, renewed_for) if is_renewed else (None, -1)
        context.emit(Removed, process.pod.name, member_id, why, dead_us, has_closed, timer, *renewed)
        if why == "replaced":
            process.catch_up()  # it learns of it by its next request
        elif dead_us is not None:
            lost = [
                number
                for number in process.lost
                if context.owners.gap_cause(number) in (GapCause.DETECTION, GapCause.STATIC_WAIT)
            ]
            context.owners.set_cause(lost, GapCause.HANDOVER, now_us)
