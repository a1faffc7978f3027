"""The coordinator's driver: requests arrive over the network, effects are done, deadlines are kept.

An answer that waits for a record leaves a round trip between brokers later, which is what the replication takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Effect, GroupFailed, Reply, ResolveRegexes
from kgctl.coordinator.timers import TimerKey, TimerKind, TimerQueue
from kgctl.member.api import (
    Answer,
    FindCoordinator,
    FindCoordinatorResult,
    ListOffsets,
    ListOffsetsResult,
    NetworkError,
    RefreshMetadata,
    Send,
)
from kgctl.member.classic_session import OUTSIDE, Membership
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import (
    JoinGroup,
    LeaveGroup,
    OffsetCommit,
    OffsetCommitPartition,
    Request,
    TopicsChanged,
    UpdateGroupConfig,
)
from kgctl.serde.record_schema import uuid_text
from kgctl.simulate.engine.context import RunContext, draw_uuid
from kgctl.simulate.engine.group_observer import MAY_JOIN, GroupObserver, error_of
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, Question
from kgctl.simulate.recording.recording import EPOCH_MS
from kgctl.simulate.recording.trace import Given, Rejoined
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import GapCause

REGEX_US = 1_000
_UP, _DOWN = 0, 1


class Failover(Protocol):
    """Which broker coordinates the group, once something has happened to brokers."""

    @property
    def is_dark(self) -> bool: ...
    def takes(self, process: Process, request: Request) -> bool: ...
    def coordinator_for(self, process: Process) -> FindCoordinatorResult: ...
    def cause_of_gap(self, numbers: list[int], cause: GapCause) -> GapCause: ...
    def blamed(self, trigger: str, removed: Process | None) -> str: ...
    def look_at_leaders(self) -> None: ...
    def leader_of(self, number: int) -> int: ...
    def has_leader(self, number: int) -> bool: ...


class SimulatedBroker:
    """The coordinator and its surroundings. `open` it when the topics that it begins with are there."""

    core: GroupCoordinator
    timers: TimerQueue
    perform: Callable[[Effect], None]
    """Does what only some kinds of groups have done for them."""

    def __init__(self, context: RunContext, pods: Sequence[Pod], config: CoordinatorConfig) -> None:
        self._context = context
        self._config = config
        self._loop = context.loop
        self._event_log = context.event_log
        self._ids = context.randomness.stream("member ids")
        self.observer = GroupObserver(context, pods)
        self._routes: dict[int, tuple[Process, str]] = {}
        self._told: dict[int, list[tuple[int, str]]] = {}
        """Pod -> the answers since its last JoinGroup by which it may know that it has to join again, to its SyncGroup, then to
        heartbeats: (when it came, what)."""
        self.coordination: Failover | None = None
        """From the first event on that is about brokers."""
        self._armed_us = -1
        cluster = context.scenario.cluster
        self._append = cluster.append
        self._append_rng = context.randomness.stream("append")
        self._replication_us = 2 * cluster.network.broker.mean_us if cluster.brokers > 1 else 0

    def open(self) -> None:
        """The coordinator starts."""
        self.take_over(GroupCoordinator(self._config, self._new_member_id, self._context.image, EPOCH_MS))
        self._configure()

    def _configure(self) -> None:
        """The group's own settings, as kafka-configs has set them."""
        group = self._context.scenario.group
        if group.settings:
            request = UpdateGroupConfig(request_id=0, group_id=group.id, config=group.settings)
            self.core.handle(request, self.clock_ms(self._loop.now_us))

    def fails_over(self, coordination: Failover) -> None:
        """From now on this tells which broker coordinates."""
        self.coordination = coordination
        self.observer.blame = coordination.blamed

    def cause_of_gap(self, numbers: list[int], cause: GapCause) -> GapCause:
        """Why nobody consumes these, given why it would be with a coordinator."""
        return cause if self.coordination is None else self.coordination.cause_of_gap(numbers, cause)

    def has_leader(self, number: int) -> bool:
        """Whether the broker that leads a partition lives."""
        return self.coordination is None or self.coordination.has_leader(number)

    def clock_ms(self, at_us: int) -> int:
        return EPOCH_MS + at_us // 1000

    # --- requests

    def send(self, process: Process, action: Send) -> None:
        """Send a process's request on its way to the coordinator."""
        loop = self._loop
        arrival_us = process.pod.link.arrival_us(loop.now_us, _UP)
        if arrival_us is not None:
            loop.at(arrival_us, self._receive, (process, action.request))

    def _receive(self, message: tuple[Process, Request]) -> None:
        process, request = message
        if self.coordination is not None and not self.coordination.takes(process, request):
            return
        kind = type(request)
        api = kind.__name__
        self._routes[request.request_id] = (process, api)
        self._event_log.requested(self._loop.now_us, process.pod.number, process.pod.name, api)
        if kind is JoinGroup:
            self._tell_rejoin(process, request)
        self.observer.on_request(process, request, kind)
        effects = self.core.handle(request, EPOCH_MS + self._loop.now_us // 1000)
        self._after(effects, api, process.pod, _why_removed(request) if kind in _REMOVES else "")

    def _tell_rejoin(self, process: Process, request: Any) -> None:
        """Record what told a member that it has to join, and when: what the coordinator waited for begins with that."""
        told, now_us = self._told.pop(process.pod.number, []), self._loop.now_us
        if request.reason == Membership.TO_REVOKE:
            told = told[:1]
        elif request.reason in Membership.TOPICS_CHANGED:
            told = []
        at_us, what = (told[1:] or told or [(now_us, "")])[0]
        self._context.emit(Rejoined, process.pod.name, now_us - at_us, what)

    def note(self, process: Process, api: str) -> None:
        """A request has reached a broker."""
        self._event_log.requested(self._loop.now_us, process.pod.number, process.pod.name, api)

    def tell(self, request: Request) -> None:
        """An event of the surroundings: a new image, resolved expressions."""
        if not self.observer.has_coordinator:
            return
        self._after(self.core.handle(request, self.clock_ms(self._loop.now_us)), type(request).__name__, None, "")

    def change_topics(self, image: MetadataImage) -> None:
        """Give the coordinator the cluster's new metadata image."""
        self.tell(TopicsChanged(request_id=next(self._context.request_ids), image=image))

    def commit_unseen(self, process: Process, offsets: dict[int, int]) -> None:
        """A commit that was answered in a quiet time, entered now."""
        member, names = process.member, self._context.partitions.names
        if member is None or not self.observer.has_coordinator:
            return
        partitions = tuple(
            OffsetCommitPartition(topic=names[number].topic, partition=names[number].partition, offset=offset)
            for number, offset in offsets.items()
        )
        request = OffsetCommit(
            request_id=next(self._context.request_ids),
            group_id=self._context.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=process.pod.instance_id,
            retention_ms=process.config.commit_retention_ms,
            partitions=partitions,
        )
        timers = self.core.shard.timers
        session = TimerKey(TimerKind.SESSION, self._context.group_id, member.member_id)
        deadline_ms = timers.deadline_ms(session)
        effects = self.core.handle(request, self.clock_ms(self._loop.now_us))
        if deadline_ms is not None and session in timers:
            timers.arm(session, deadline_ms)  # it was no sign of life of now
        records = self._context.recording.records
        if self._context.keeps_all_commits:
            self._context.recording.records = None  # it has the record already, with its own time
        self._after(effects, "OffsetCommit", None, "")
        self._context.recording.records = records

    # --- what any broker answers

    def ask(self, process: Process, question: Question) -> None:
        """A question is on its way to some broker."""
        context = self._context
        arrival_us = process.pod.link.arrival_us(context.loop.now_us, 0)
        if arrival_us is not None:
            context.loop.at(arrival_us, self._answer, (process, question))

    def _answer(self, message: tuple[Process, Question]) -> None:
        process, question = message
        context, correlation_id = self._context, question.correlation_id
        self.note(process, _APIS[type(question)])
        arrival_us = process.pod.link.arrival_us(context.loop.now_us, 1)
        if arrival_us is None:
            return
        coordination = self.coordination
        result: Answer
        if coordination is not None and coordination.is_dark:
            result = NetworkError(correlation_id, no_broker=True)
        elif isinstance(question, RefreshMetadata):
            context.loop.at(arrival_us, process.on_metadata, context.image)
            return
        elif isinstance(question, ListOffsets):
            result = self._offsets(question)
        else:
            result = FindCoordinatorResult() if coordination is None else coordination.coordinator_for(process)
        context.loop.at(arrival_us, process.on_reply, (correlation_id, result))

    def _offsets(self, question: ListOffsets) -> ListOffsetsResult:
        context = self._context
        offsets = {}
        for partition in question.partitions:
            number = context.partitions.numbers.get(partition)
            if number is not None:
                total = context.ledger.arrivals.total_pr(number, context.loop.now_us) // UNIT_PR
                offsets[partition] = total if question.strategy == "latest" else 0
        return ListOffsetsResult(offsets)

    # --- another coordinator

    def successor(self) -> GroupCoordinator:
        shard = self.core.shard
        return GroupCoordinator(shard.config, self._new_member_id, self._context.image, self.clock_ms(self._loop.now_us))

    def take_over(self, core: GroupCoordinator) -> None:
        """Let this core be the coordinator from now on; it has read its log."""
        self.core = core
        self.observer.follow(core)
        self.timers = core.shard.timers
        self._armed_us = -1

    def begin(self) -> None:
        """The log is read: sessions start anew, requests are answered."""
        effects = self.core.loaded(self.clock_ms(self._loop.now_us))
        self._configure()
        self.observer.on_coordinator_found()
        self._after(effects, "CoordinatorLoaded", None, "forgotten")
        self.observer.look("CoordinatorLoaded", None, "forgotten", has_records=True)
        if self.core.shard.image.version != self._context.image.version:
            self.change_topics(self._context.image)

    def take_waiting(self) -> dict[int, tuple[Process, str]]:
        """The requests that are not answered yet: (process, API) by their ids. Nobody waits for them here any more."""
        waiting, self._routes = self._routes, {}
        return waiting

    def send_back(self, process: Process, api: str, request_id: int, result: Answer, wait_us: int = 0) -> None:
        """An answer leaves after this time; or the process is told that its connection has ended."""
        arrival_us = process.pod.link.arrival_us(self._loop.now_us + wait_us, _DOWN)
        if arrival_us is not None:
            self._loop.at(arrival_us, self._deliver, (process, api, request_id, result))

    # --- deadlines

    def arm_deadline(self) -> None:
        """See to it that the coordinator is called at its next deadline."""
        armed_us, now_us = self._armed_us, self._loop.now_us
        if now_us <= armed_us <= (self.timers.earliest_ms - EPOCH_MS) * 1000:
            return  # nothing can be due before that
        deadline_ms = self.core.next_deadline_ms()
        if deadline_ms is None:
            return
        deadline_us = max((deadline_ms - EPOCH_MS) * 1000, now_us)
        if armed_us < now_us or deadline_us < armed_us:
            self._armed_us = deadline_us
            self._loop.at(deadline_us, self._expire, deadline_us)

    def _expire(self, armed_us: int) -> None:
        if armed_us != self._armed_us:
            return
        self._armed_us = -1
        now_ms = self.clock_ms(self._loop.now_us)
        if self.timers.is_due(now_ms):
            armed = self.timers.keys()
            self.observer.due = {key.member_id: key.kind for key in armed if (self.timers.deadline_ms(key) or 0) <= now_ms}
            self._after(self.core.expire(now_ms), "timer", None, "expired")
        else:
            self.arm_deadline()

    # --- effects

    def _after(self, effects: list[Effect], trigger: str, pod: Pod | None, why_removed: str) -> None:
        wait_us = 0
        records = False
        for effect in effects:
            if type(effect) is Reply:
                self._reply(effect, wait_us)
            elif type(effect) is AppendRecord:
                is_of_group = self.observer.on_record(effect)
                if is_of_group and not records:
                    wait_us = self._replication_us + self._append.sample(self._append_rng)
                wait_us = max(wait_us, self._replication_us)
                records = is_of_group or records
            elif type(effect) is ResolveRegexes:
                self._resolve(effect)
            elif type(effect) is GroupFailed:
                raise effect.error
            else:
                self.perform(effect)
        self.observer.look(trigger, pod, why_removed, has_records=records)
        self.arm_deadline()

    def _reply(self, reply: Reply, wait_us: int) -> None:
        request_id = reply.request_id
        route = self._routes.pop(request_id, None)
        if route is not None:
            process, api = route
            self.send_back(process, api, request_id, reply.result, wait_us)

    def _deliver(self, message: tuple[Process, str, int, Answer]) -> None:
        process, api, request_id, result = message
        error = error_of(result)
        self._event_log.replied(self._loop.now_us, process.pod.number, process.pod.name, api, error)
        if api == "SyncGroup":
            self._told[process.pod.number] = [(self._loop.now_us, f"{api} {error.name}" if error else api)]
        elif error and api == "Heartbeat" and (error in _TELLS or process.config.behaviour.leaves_when_refused):
            self._told.setdefault(process.pod.number, []).append((self._loop.now_us, f"{api} {error.name}"))
        if getattr(result, "assignment", None):
            self._context.emit(Given, process.pod.name, 1, api)
        process.on_reply((request_id, result))

    def _resolve(self, effect: ResolveRegexes) -> None:
        from kgctl.coordinator.re2 import resolve_regexes

        request = resolve_regexes(effect, self._context.image.topics, next(self._context.request_ids))
        self._loop.at(self._loop.now_us + REGEX_US, self.tell, request)

    def _new_member_id(self, prefix: str) -> str:
        """Return a member id in Kafka's form, ``<client id>-<uuid>``."""
        value = draw_uuid(self._ids)
        return self.observer.on_new_id(f"{prefix}-{value}" if prefix else uuid_text(value.bytes))


_APIS = {FindCoordinator: "FindCoordinator", RefreshMetadata: "Metadata", ListOffsets: "ListOffsets"}
"""What any broker is asked, by its API."""
_TELLS = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, *OUTSIDE})
"""Errors of heartbeats by which a classic member knows that it has to join (again)."""
_REMOVES = frozenset({LeaveGroup, *MAY_JOIN})
"""Requests that may end a membership."""


def _why_removed(request: Request) -> str:
    """Why a member is gone when this request was answered; "": it cannot be."""
    if isinstance(request, LeaveGroup):
        return "left"
    if getattr(request, "member_epoch", 0) < 0:
        return "left"
    if isinstance(request, JoinGroup):
        is_new, instance_id = not request.member_id, request.group_instance_id
    else:
        is_new, instance_id = getattr(request, "member_epoch", -1) == 0, getattr(request, "instance_id", None)
    return "replaced" if is_new and instance_id is not None else ""
