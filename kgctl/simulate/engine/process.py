"""What a process does for its member: one function an action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from kgctl.member.api import (
    Action,
    Answer,
    CallbackKind,
    Closed,
    CommitDone,
    Failed,
    FindCoordinator,
    ListOffsets,
    Member,
    RefreshMetadata,
    RunAssignor,
    RunCallback,
    Send,
    Skipped,
    StartConsuming,
    StopConsuming,
    StopReason,
)
from kgctl.member.config import is_cooperative
from kgctl.member.factory import make_member
from kgctl.model.groups import MetadataImage, TopicPartition
from kgctl.model.values import frozen_in_order, quick_enum
from kgctl.simulate.engine.pods import Pod, PreStop
from kgctl.simulate.engine.polls import PollCadence
from kgctl.simulate.recording.trace import CalledBack
from kgctl.simulate.recording.traffic import Flow
from kgctl.simulate.scenario.event_port import GRACE_US
from kgctl.simulate.scenario.fields import CommitMode, client_start_of, commit_of
from kgctl.simulate.scenario.vocabulary import GapCause, PodChange, WaitedFor

Question: TypeAlias = FindCoordinator | RefreshMetadata | ListOffsets
"""What any broker answers."""


class Consumption(Protocol):
    """What is written down of the partitions that a process reads."""

    def start(self, process: Process, positions: Mapping[TopicPartition, int]) -> None: ...
    def stop(self, process: Process, partitions: Iterable[TopicPartition], reason: StopReason) -> None: ...
    def taken_over(self, process: Process, partitions: Iterable[TopicPartition]) -> None: ...
    def suspend(self, process: Process, cause: GapCause) -> None: ...
    def resume(self, process: Process) -> None: ...
    def positions_of(self, flow: Flow, partitions: Iterable[TopicPartition], now_us: int) -> dict[TopicPartition, int]: ...
    def commit_answered(self, process: Process, action: CommitDone) -> None: ...
    def commit_failed(self, process: Process) -> None: ...
    def settle_unseen(self, process: Process) -> None: ...
    def committed_quietly(self, process: Process, from_us: int, at_us: int, every_us: int) -> None: ...


@frozen_in_order
class Surroundings:
    """What a process meets: the way to the brokers, who notes what it reads, who skips over it, who hears of its life."""

    send: Callable[[Process, Send], None]
    ask: Callable[[Process, Question], None]
    ownership: Consumption
    skip: Callable[[Process], None]
    resume: Callable[[Process], Skipped]
    on_running: Callable[[Process], None]
    on_gone: Callable[[Process], None]
    on_failed: Callable[[Process, str], None]


def _run_callback(process: Process, action: RunCallback) -> None:
    is_assigned = action.kind is CallbackKind.ASSIGNED
    if is_assigned:
        process.around.ownership.taken_over(process, action.partitions)
    process.context.emit(CalledBack, process.pod.name, len(action.partitions), action.kind.value, is_assigned)
    duration_us = getattr(process.pod.members.callbacks, action.kind).sample(process.pod.rng("callback"))
    if process.config.behaviour.queues_callbacks:  # the application's poll() comes back later
        process.polls.held_until(process.loop.now_us + duration_us)
    process.run_callback(duration_us, WaitedFor(f"callbacks.{action.kind}"))


def _run_assignor(process: Process, action: RunAssignor) -> None:
    process.run_callback(process.context.scenario.assign_time.duration_us(action.partitions, action.members), WaitedFor.ASSIGNOR)


ACTIONS: dict[type, Callable[[Process, Any], None]] = {
    FindCoordinator: lambda process, action: process.around.ask(process, action),
    RefreshMetadata: lambda process, action: process.around.ask(process, action),
    ListOffsets: lambda process, action: process.around.ask(process, action),
    RunCallback: _run_callback,
    RunAssignor: _run_assignor,
    StartConsuming: lambda process, action: process.around.ownership.start(process, action.positions),
    StopConsuming: lambda process, action: process.around.ownership.stop(process, action.partitions, action.reason),
    CommitDone: lambda process, action: process.around.ownership.commit_answered(process, action),
    Failed: lambda process, action: process.fail(action.error),
    Closed: lambda process, _: process.die(PodChange.STOPPED),
}
"""Action -> what is done."""


@quick_enum
class ProcessPhase(Enum):
    """The stages of a process's life."""

    BOOTING = "booting"
    RUNNING = "running"
    CLOSING = "closing"
    FAILED = "failed"
    GONE = "gone"


_RUNNING, _CLOSING = ProcessPhase.RUNNING, ProcessPhase.CLOSING
_OUT = (ProcessPhase.GONE, ProcessPhase.FAILED)


class DrivenMember(ABC):
    """The duties of `kgctl.member.api`'s driver, for one consumer. What comes when the process is gone does nothing."""

    # A thousand of them are in no processor's cache: slots are half of the memory that an event reads.
    __slots__ = (
        "_armed_us", "_held", "_me", "_next_poll", "_polls_each", "around", "callback_over", "commit", "config", "consuming",
        "context", "flow", "gone_us", "image_version", "is_cut_off", "is_skipping", "is_suspended", "is_told_to_end",
        "last_commit_us", "loop", "lost", "lost_its_batch", "member", "on_closed", "phase", "pod", "polls", "stalled_until_us",
        "stop_wanted", "unseen_commit_us",
    )  # fmt: skip

    around: Surroundings

    def __init__(self, pod: Pod, around: Surroundings) -> None:
        self._me = cast("Process", self)
        self.around = around
        self.pod = pod
        self.context = pod.context
        self.loop = pod.context.loop
        self.phase = ProcessPhase.BOOTING
        self.member: Member | None = None
        self.config = pod.member_config()
        pod.context.history.pods[pod.number].heartbeat_ms = (
            self.config.heartbeat_interval_ms if self.config.group_protocol == "classic" else 0
        )
        self.commit = commit_of(pod.members, self.config)
        self.flow = Flow(pod.context.ledger, 0, pod.context.loop.now_us)
        self.consuming: dict[int, None] = {}
        self.polls = PollCadence(pod, self.config, self.flow, self.consuming)
        self.is_skipping = False
        self.is_suspended = False
        self.is_cut_off = False
        self.image_version = -1
        self.stalled_until_us = -1
        self.callback_over = False
        self.on_closed: list[Callable[[], None]] = []
        self.last_commit_us = -1
        """When the application committed last, or a commit was taken as done."""
        self.unseen_commit_us = -1
        """When the last commit was that the coordinator has not been told of, if any."""
        self.is_told_to_end = False
        self.stop_wanted = False
        self.lost_its_batch = False  # what the batch under way is from, as the application did not poll
        self.gone_us = -1
        self.lost: tuple[int, ...] = ()
        """What it consumed when it went."""
        self._held: list[tuple[Callable[[Any], None], Any]] = []
        self._armed_us = -1
        self._next_poll: object | None = None  # stands for the call that is scheduled, if one is
        self._polls_each = False

    @abstractmethod
    def catch_up(self) -> object:
        """Something is about to happen to it: what it did unwatched is taken as done."""

    # --- calls of the member

    def act(self, actions: list[Action]) -> None:
        """Do what the member wants done, and what it leads to at once: callbacks that take no time, a poll() that waits."""
        member = self.member
        assert member is not None
        if actions or self.callback_over:
            self._perform(member, actions)
        if self.phase is _RUNNING and self._next_poll is None and self._may_poll_now() and member.needs_poll:
            self._perform(member, self._call_poll(member))
        self._look_ahead(member)

    def _perform(self, member: Member, actions: list[Action]) -> None:
        me = self._me
        send: Callable[[Process, Any], None] = self.around.send
        while True:
            for action in actions:
                kind = type(action)
                if kind is Send:
                    send(me, action)
                else:
                    ACTIONS[kind](me, action)
            if not self.callback_over:
                return
            self.callback_over = False
            actions = member.callback_done(self.loop.now_us)

    def on_reply(self, answer: tuple[int, Answer]) -> None:
        """Hand an answer to the member."""
        member, phase = self.member, self.phase
        if member is None or phase in _OUT or (self.is_suspended and self._hold(self.on_reply, answer)):
            return
        if self.is_skipping:
            self.catch_up()
        now_us = self.loop.now_us
        if phase is _RUNNING and self._next_poll is None and self._may_poll_now():
            actions = member.answer_in_poll(answer[0], answer[1], now_us)
            if actions is not None:  # as a poll() that is called now and finds the answer there
                next_us = self.polls.called(now_us, drops=True)
                self._perform(member, self._note_busy(member, actions, next_us))
                self._look_ahead(member)
                return
        self.act(member.on_reply(answer[0], answer[1], now_us))

    def on_metadata(self, image: MetadataImage) -> None:
        """Hand the topics' metadata to the member."""
        if self.member is None or self.phase in _OUT or self._hold(self.on_metadata, image):
            return
        self.image_version = image.version
        self.act(self.member.on_metadata(image, self.loop.now_us))

    def callback_done(self, _: object) -> None:
        """Go on after a callback or the assignor has returned."""
        if self.member is None or self.phase in _OUT or self._hold(self.callback_done, None):
            return
        self.act(self.member.callback_done(self.loop.now_us))

    def run_callback(self, duration_us: int, why: WaitedFor) -> None:
        """The application's thread is busy for this long."""
        self._cancel_poll()
        if duration_us:
            self.polls.held_up(duration_us, why)
            self.loop.at(self.loop.now_us + duration_us, self.callback_done)
        else:
            self.callback_over = True

    # --- what comes next

    def _may_poll_now(self) -> bool:
        """Whether the application, which has nothing to process, sits in a poll()."""
        if self.consuming or self.stop_wanted or self.stalled_until_us > self.loop.now_us:
            return False
        return (self.polls.timeout_us is None and not self.polls.looks_now_and_then) or self._waits_in_poll

    def _look_ahead(self, member: Member) -> None:
        phase = self.phase
        if phase is _RUNNING:
            if self._next_poll is None:
                has_to = self.stop_wanted or member.needs_poll
                if (has_to or self._polls_each) and not member.in_callback:
                    now_us = self.loop.now_us
                    self._arm_poll(now_us if has_to and self._waits_in_poll else self.polls.upcoming_us(now_us), is_due=has_to)
                elif not self.is_skipping and member.is_quiet:
                    self.around.skip(self._me)
            elif self._polls_each and member.needs_poll:
                self.polls.awaited(self.polls.next_us, is_stuck=False)
        elif phase is not _CLOSING:
            return
        self._arm_deadline(member)

    def _arm_deadline(self, member: Member) -> None:
        now_us, armed_us = self.loop.now_us, self._armed_us
        deadline_us = member.next_loud_deadline_us() if self.is_skipping else member.next_deadline_us()
        if deadline_us is None or now_us <= armed_us <= deadline_us:
            return
        deadline_us = max(deadline_us, now_us)
        if armed_us < now_us or deadline_us < armed_us:
            self._armed_us = deadline_us
            self.loop.at(deadline_us, self._on_deadline, deadline_us)

    def _on_deadline(self, armed_us: int) -> None:
        if armed_us != self._armed_us or self.member is None or self.phase in _OUT:
            return
        if self.is_suspended and self._hold(self._on_deadline, armed_us):
            return
        self._armed_us = -1
        due_us = self.member.next_loud_deadline_us() if self.is_skipping else self.member.next_deadline_us()
        if due_us is None or due_us > self.loop.now_us:
            self._look_ahead(self.member)
            return
        if self.is_skipping:
            self.catch_up()
        self.act(self.member.expire(self.loop.now_us))

    # --- polls

    def _arm_poll(self, at_us: int, *, is_due: bool = True) -> None:
        now_us = self.loop.now_us
        if self.stalled_until_us > now_us:
            at_us = self.stalled_until_us
        self._next_poll = call = object()
        self.loop.at(max(now_us, at_us), self._poll, call)
        if is_due:
            self.polls.awaited(at_us, is_stuck=at_us == self.stalled_until_us)

    def _cancel_poll(self) -> None:
        self._next_poll = None

    def _poll(self, call: object) -> None:
        member = self.member
        if call is not self._next_poll or self.phase in _OUT or member is None:
            return
        if self.is_suspended and self._hold(self._poll, call):
            return
        self._next_poll = None
        if self.context.has_traffic:
            self._commit_batch(member)
        if self.stop_wanted and self.phase is _RUNNING:
            self.phase = ProcessPhase.CLOSING
            self.act(member.close(self.loop.now_us))
            return
        self.act(self._call_poll(member))

    def _call_poll(self, member: Member) -> list[Action]:
        """poll(): it waits for answers where there is nothing to process."""
        now_us, polls = self.loop.now_us, self.polls
        next_us = polls.called(now_us)
        actions = member.poll(now_us, now_us if self._waits_in_poll else None)
        # What an eager member has fetched is dropped as it joins: ConsumerCoordinator#maybeMarkPartitionsPendingRevocation.
        drops = polls.batch > 0 and self.config.group_protocol == "classic"
        if drops and any(type(each) is StopConsuming for each in actions) and not member.consumed_partitions:
            next_us = polls.called(now_us, drops=True)
        return self._note_busy(member, actions, next_us)

    def _note_busy(self, member: Member, actions: list[Action], next_us: int) -> list[Action]:
        returned_us = self.polls.returned_us
        if self._polls_each and next_us - returned_us > self.config.max_poll_interval_ms * 1000:
            return actions + member.application_busy(returned_us)
        return actions

    def _commit_batch(self, member: Member) -> None:
        """The application commits what it has processed, where it is due, before it polls."""
        commit, now_us = self.commit, self.loop.now_us
        if self.lost_its_batch and commit.mode is CommitMode.AFTER_BATCH and not self.consuming:
            self.around.ownership.commit_failed(self._me)
        self.lost_its_batch = False
        if commit.mode is CommitMode.AUTO or not self.consuming:
            return
        if commit.mode is CommitMode.EVERY:
            at_us = self.polls.committed_us(now_us, self.last_commit_us, commit.interval_us) if member.is_answered else -1
            if at_us > max(self.last_commit_us, self.stalled_until_us):
                self.around.ownership.committed_quietly(self._me, self.last_commit_us, at_us, commit.interval_us)
            is_last = self.stop_wanted and self.config.behaviour.collects_commits
            if now_us - self.last_commit_us < commit.interval_us and not is_last:
                self.around.ownership.settle_unseen(self._me)
                return
        self.last_commit_us = now_us
        self._next_poll = self
        self.act(member.commit(now_us))
        self._next_poll = None

    # --- small things

    @property
    def _waits_in_poll(self) -> bool:
        """Whether what comes is handled at once, by a poll() that waits: there is no batch to process where nothing is read.

        AsyncKafkaConsumer (the consumer protocol) handles what its background thread has for it when poll() is called, not
        while it waits for records.
        """
        polls = self.polls
        if polls.timeout_us is None and (polls.is_continuous or not (self.consuming or polls.looks_now_and_then)):
            return True
        if self.config.behaviour.joins_itself:
            return polls.is_inside(self.loop.now_us)
        if self.config.group_protocol != "classic" or (polls.timeout_us is None and not self.context.has_traffic):
            return False
        return polls.is_inside(self.loop.now_us)

    def _hold(self, task: Callable[[Any], None], argument: object) -> bool:
        """While it is suspended, what comes to it waits."""
        if self.is_suspended:
            self._held.append((task, argument))
        return self.is_suspended


class Process(DrivenMember):
    """A consumer's process. Who waits for its pod hears when it has subscribed."""

    __slots__ = ("_pre_stop",)

    def __init__(self, pod: Pod, around: Surroundings) -> None:
        super().__init__(pod, around)
        self._pre_stop = PreStop()

    @property
    def hands_over(self) -> bool:
        return self.config.group_protocol == "consumer" or is_cooperative(self.config.partition_assignment_strategy)

    @property
    def end_cause(self) -> GapCause:
        """Why its partitions are nobody's when it has closed its consumer."""
        if self.pod.instance_id is not None and self.config.close_operation != "leave":
            return GapCause.STATIC_WAIT
        remains = self.config.close_operation == "remain" and self.config.group_protocol == "classic"
        return GapCause.DETECTION if remains else GapCause.HANDOVER

    @property
    def is_up(self) -> bool:
        return self.phase is ProcessPhase.RUNNING and not self.stop_wanted and not self._pre_stop.is_begun

    # --- its life

    def boot(self) -> None:
        """The process starts; after the boot time it subscribes."""
        pod = self.pod
        pod.tell(PodChange.BOOT)
        self.loop.at(self.loop.now_us + pod.members.boot.sample(pod.rng("boot")), self._booted)

    def _booted(self, _: object) -> None:
        """The application is up, makes its consumer and subscribes; the client sends its first request when it has started."""
        if self.phase is not ProcessPhase.BOOTING or self._hold(self._booted, None):
            return
        pod, now_us = self.pod, self.loop.now_us
        start_us = client_start_of(pod.members).sample(pod.rng("client start"))
        if not start_us:
            self._subscribe(None)
            return
        self.loop.at(now_us + min(pod.made_us(self.config.behaviour.made_us), start_us), pod.made, self)
        self.loop.at(now_us + start_us, self._subscribe)

    def _subscribe(self, _: object) -> None:
        if self.phase is not ProcessPhase.BOOTING or self._hold(self._subscribe, None):
            return
        pod, context, around = self.pod, self.context, self.around
        self.phase = ProcessPhase.RUNNING
        self.flow = self.polls.flow = Flow(context.ledger, self.polls.capacity_uhz, self.loop.now_us)
        self.polls.next_us = self.polls.last_us = self.loop.now_us
        self.member = self.new_member()
        self._polls_each = self.polls.may_exceed(self.config.max_poll_interval_ms * 1000)
        pod.tell(PodChange.START)
        around.on_running(self)
        self.act(self.member.start(self.loop.now_us))
        pod.ready()

    def new_member(self) -> Member:
        """The consumer that the application has made."""
        pod, positions_of = self.pod, partial(self.around.ownership.positions_of, self.flow)
        ids = self.context.request_ids
        return make_member(self.config, pod.identity(), pod.member_rng, positions_of=positions_of, request_ids=ids)

    def stop(self, then: Callable[[], None] | None = None, *, grace_us: int = GRACE_US, on_sigterm: str | None = None) -> None:
        """SIGTERM: close() at the end of the batch under way, or, where the application has no such handler, the end at once.

        ``on_sigterm``: close, exit, or ignored (it goes on until it is killed ``grace_us`` later); None: as its set says.
        """
        self.is_told_to_end = True
        if then is not None:
            self.on_closed.append(then)
        if self._pre_stop.waits(self.pod, grace_us, lambda left_us: self.stop(grace_us=left_us, on_sigterm=on_sigterm)):
            return
        leaves = self.pod.members.leaves_on_stop if on_sigterm is None else on_sigterm == "close"
        if on_sigterm == "ignored":
            self.loop.at(self.loop.now_us + grace_us, self._kill)
        elif self.phase in (ProcessPhase.BOOTING, ProcessPhase.FAILED) or not leaves:
            self.die(PodChange.STOPPED)
        elif self.phase is ProcessPhase.RUNNING and not self.stop_wanted:
            self.stop_wanted = True
            self.pod.tell(PodChange.STOP)
            self.loop.at(self.loop.now_us + grace_us, self._kill)
            self._end_soon()

    def _end_soon(self) -> None:
        """The application sees that it is to end when it is through with its batch."""
        self.catch_up()
        self._cancel_poll()
        if self.member is not None and not self.member.in_callback:
            self._arm_poll(self.polls.free_us(self.loop.now_us))

    def _kill(self, _: object) -> None:
        if self.phase is not ProcessPhase.GONE:
            self.die(PodChange.KILLED)

    def die(self, what: PodChange, *, is_silent: bool = False) -> None:  # noqa: ARG002  # the coordinator is told nothing, ever
        """End the process at once, as SIGKILL would; ``is_silent``: with its machine, so that no connection is closed."""
        if self.phase is ProcessPhase.GONE:
            return
        self.catch_up()
        self.phase = ProcessPhase.GONE
        self.gone_us = self.loop.now_us
        self.lost = tuple(self.consuming) or self.lost
        self.pod.process = None
        self.pod.tell(what)
        self.around.on_gone(self)
        self._held.clear()
        for then in self.on_closed:
            then()

    def fail(self, error: str) -> None:
        """The consumer has thrown; the process is still there and does nothing more, or it ends and is started again."""
        self.phase = ProcessPhase.FAILED
        self._cancel_poll()
        self.around.on_failed(self, error)
        if self.stop_wanted:
            self.die(PodChange.STOPPED)
        elif self.pod.members.restarts_on_failure:
            self.die(PodChange.EXIT)
            self.pod.boot_after_failure()

    def stall(self, until_us: int) -> None:
        """The application does not call poll() until then, and processes nothing."""
        if self.phase is not ProcessPhase.RUNNING or self.member is None:
            return
        now_us = self.loop.now_us
        is_stalled = now_us < self.stalled_until_us
        since_us = self.polls.away_since_us(now_us)
        self.settle()
        self.stalled_until_us = max(until_us, self.stalled_until_us)
        self.set_reading_rate()
        was_armed = self._next_poll is not None
        self._cancel_poll()
        self.loop.at(self.stalled_until_us, self._unstall)
        if was_armed:
            self._arm_poll(self.stalled_until_us)
        self.act([] if is_stalled else self.member.application_busy(max(since_us, 0)))

    def _unstall(self, _: object) -> None:
        if self.phase in _OUT or self.loop.now_us < self.stalled_until_us or self._hold(self._unstall, None):
            return
        self.pod.tell(PodChange.UNSTALL)
        self.set_reading_rate()
        self._cancel_poll()
        self._arm_poll(self.loop.now_us)

    def suspend(self) -> None:
        """SIGSTOP, or a long garbage collection: nothing goes on."""
        if self.is_suspended or self.phase is ProcessPhase.GONE:
            return
        self.settle()
        self.is_suspended = True
        self.set_reading_rate()
        self.pod.tell(PodChange.PAUSE)
        if not self.is_cut_off:
            self.around.ownership.suspend(self, GapCause.STALL)

    def resume(self, _: object = None) -> None:
        """Go on after a pause: everything that came meanwhile happens now."""
        if not self.is_suspended or self.phase is ProcessPhase.GONE:
            return
        self.is_suspended = False
        self.stalled_until_us = max(self.stalled_until_us, self.loop.now_us)
        self.set_reading_rate()
        self.pod.tell(PodChange.RESUME)
        if not self.is_cut_off:
            self.around.ownership.resume(self)
        held, self._held = self._held, []
        for task, argument in held:
            task(argument)

    def cut_off(self) -> None:
        """Nothing comes through to the brokers: the process runs, and reads nothing."""
        if self.is_cut_off or self.phase is ProcessPhase.GONE:
            return
        self.is_cut_off = True
        self.set_reading_rate()
        if not self.is_suspended:
            self.around.ownership.suspend(self, GapCause.DETECTION)

    def connect_again(self) -> None:
        if not self.is_cut_off or self.phase is ProcessPhase.GONE:
            return
        self.is_cut_off = False
        self.stalled_until_us = max(self.stalled_until_us, self.loop.now_us)
        self.set_reading_rate()
        if not self.is_suspended:
            self.around.ownership.resume(self)

    def slow(self) -> None:
        if self.phase is ProcessPhase.RUNNING:
            self.catch_up()
            self._polls_each = self.polls.may_exceed(self.config.max_poll_interval_ms * 1000)
            self.set_reading_rate()
            self.act([])

    def set_reading_rate(self) -> None:
        """Set how many records a second the process reads at present."""
        now_us = self.loop.now_us
        self.flow.advance(now_us)
        if self.is_suspended or self.is_cut_off or now_us < self.stalled_until_us:
            self.flow.rate_uhz = 0
        else:
            self.flow.rate_uhz = self.polls.capacity_uhz

    def settle(self) -> None:
        """Something is about to happen to it: what it did unwatched is taken as done, and is committed as it was."""
        self.catch_up()
        self.around.ownership.settle_unseen(self)

    def catch_up(self) -> Skipped | None:
        """Something is about to happen to it: what it did unwatched is taken as done."""
        if not self.is_skipping:
            return None
        skipped = self.around.resume(self)
        if self.member is not None:
            self._arm_deadline(self.member)
        return skipped
