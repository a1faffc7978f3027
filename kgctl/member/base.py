"""A member's calls, the same for both protocols: the application's thread, answers, deadlines, close()."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from kgctl.member.api import (
    Action,
    Answer,
    CallbackKind,
    Closed,
    Failed,
    MemberIdentity,
    MemberState,
    PositionsOf,
    Rng,
    RunAssignor,
    RunCallback,
    Skipped,
    StopConsuming,
    StopReason,
)
from kgctl.member.commits import AUTO_COMMIT, POSITIONS, RETRY_COMMIT, CommitIdentity, Committer, Positions
from kgctl.member.config import INVALID_CONFIG, MemberConfig, refusal
from kgctl.member.runtime import LOOKUP, METADATA, REQUESTS, HeartbeatClock, MemberConnection, MemberTopics, Runtime, draw
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicPartition

HEARTBEAT = "heartbeat"
SESSION = "session"
POLL_LIMIT = "poll limit"
READ = "read"
CHORES = frozenset({HEARTBEAT, SESSION, METADATA, AUTO_COMMIT})

Step = Callable[[], None]


class MemberParts(ABC):
    """The parts of a member, what its protocol adds, and what can be seen of it."""

    __slots__ = (
        "_after_callback",
        "_close_is_wanted",
        "_deadlines",
        "_end",
        "_finds_records",
        "_inbox",
        "_is_departed",
        "_joins_itself",
        "_looks_at_us",
        "_poll_number",
        "_poll_until_us",
        "committer",
        "config",
        "connection",
        "identity",
        "is_closing",
        "is_started",
        "owned",
        "positions",
        "runtime",
        "topics",
    )  # fmt: skip

    has_background = False
    """Whether its client does something by itself: `run_background`."""

    def __init__(
        self, config: MemberConfig, identity: MemberIdentity, rng: Rng, positions_of: PositionsOf, request_ids: Iterator[int]
    ) -> None:
        identity = replace(
            identity,
            group_instance_id=identity.group_instance_id or config.group_instance_id,
            rack_id=identity.rack_id or config.client_rack,
        )
        self.identity = identity
        self.config = config
        self.runtime = Runtime(identity, config, rng, positions_of)
        self._deadlines = self.runtime.deadlines
        self.connection = MemberConnection(self.runtime, request_ids, self.on_coordinator_found)
        self.topics = MemberTopics(self.runtime, self.connection)
        if config.behaviour.rebootstraps and config.metadata_recovery_strategy == "rebootstrap":
            self.connection.on_no_broker = self.topics.forget
        self.positions = Positions(self.runtime, self.connection, self.fetch_identity)
        self.committer = Committer(self.runtime, self.connection, self.commit_identity, self.on_commit_refused)
        self.owned: set[TopicPartition] = set()
        self.is_started = False
        self.is_closing = False
        self._end: MemberState | None = None
        self._inbox: list[tuple[int, Answer]] = []
        self._joins_itself = config.behaviour.joins_itself
        self._poll_until_us = -1
        self._looks_at_us = -1  # when the client's own thread looks for answers next, be there any by then or not
        self._finds_records = False
        self._poll_number = 0
        self._after_callback: Step | None = None
        self._close_is_wanted = False
        self._is_departed = False

    # --- what the protocol adds

    @abstractmethod
    def on_coordinator_found(self) -> None:
        """Go on with the group, whose coordinator is known (again)."""

    @abstractmethod
    def fetch_identity(self) -> tuple[str | None, int]:
        """Return the member id and epoch that an OffsetFetch carries."""

    @abstractmethod
    def commit_identity(self) -> CommitIdentity | ErrorCode:
        """Return in whose name a commit may be sent now, or None."""

    @abstractmethod
    def on_commit_refused(self, error: ErrorCode, sent: CommitIdentity) -> None:
        """React to an error with which the coordinator refused a commit."""

    @abstractmethod
    def begin(self) -> None:
        """Do what the first poll() begins."""

    @abstractmethod
    def next_step(self) -> Step | None:
        """What the application's thread does next. Asking changes nothing."""

    @abstractmethod
    def reads_network(self) -> bool:
        """Whether a thread of the client's own reads answers between polls."""

    def reads_in_us(self) -> int:
        """Return how long until the client's own thread looks for answers; 0: it waits for them."""
        return 0

    def joins(self) -> bool:
        """Whether poll() has to do something for the membership, for which it reads answers first."""
        return True

    @abstractmethod
    def on_deadline(self, name: str) -> None:
        """Act on one of the protocol's own deadlines."""

    @abstractmethod
    def on_poll(self) -> None:
        """Do what the protocol does in each poll()."""

    @abstractmethod
    def on_poll_limit(self) -> None:
        """Leave the group: ``max.poll.interval.ms`` is over (KIP-62)."""

    @abstractmethod
    def begin_close(self) -> None:
        """close() was called, and the application's thread is free for it."""

    @abstractmethod
    def live_state(self) -> MemberState:
        """The state of a member that has neither failed nor closed."""

    @property
    @abstractmethod
    def is_at_rest(self) -> bool:
        """Return whether the protocol has nothing under way."""

    @property
    @abstractmethod
    def clock(self) -> HeartbeatClock:
        """Return the clock of the member's heartbeats."""

    @property
    @abstractmethod
    def member_id(self) -> str:
        """Return the member's id, "" before it has one."""

    @property
    @abstractmethod
    def generation_id(self) -> int:
        """Return the generation, or the epoch of the consumer protocol."""

    def awaits_poll(self) -> bool:
        """Whether the member did something for want of polls that the next one mends."""
        return False

    def callback_waits(self) -> bool:
        """Whether a callback of the application's is due that its next poll() runs."""
        return False

    @property
    def may_call_back(self) -> bool:
        """Whether a callback may run now: the application is in poll() or close(), or does not run it."""
        return self.config.behaviour.calls_back_itself or self.is_closing or self._poll_until_us >= self.runtime.now_us

    def request_rebalance(self) -> None:  # noqa: B027  # the consumer protocol has nothing to ask for
        """Ask for joining again at the next poll()."""

    def run_background(self) -> None:  # noqa: B027  # only some protocols have such a thread
        """What the client does by itself, after whatever has just happened."""

    def on_beats_skipped(self, last_us: int) -> None:  # noqa: B027  # only some protocols care
        """Count beats up to this time as sent and answered."""

    # --- what can be seen

    @property
    def state(self) -> MemberState:
        """Return the state of the membership."""
        if self._end is not None:
            return self._end
        if self.is_closing:
            return MemberState.LEAVING
        return self.live_state() if self.is_started else MemberState.NEW

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that the member believes to own, sorted."""
        return tuple(sorted(self.owned))

    @property
    def consumed_partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions that it reads, sorted."""
        return tuple(sorted(self.positions.consumed))

    @property
    def in_callback(self) -> bool:
        """Whether the application's thread is in a callback."""
        return self._after_callback is not None

    @property
    def needs_poll(self) -> bool:
        """Return whether a poll would do something now."""
        if self._after_callback is not None or self._end is not None or self.is_closing:
            return False
        if self._inbox or not self.is_started or POLL_LIMIT in self._deadlines.armed:
            return True
        if self.has_background and self.awaits_poll():
            return True
        if self._poll_until_us >= self.runtime.now_us:
            return False
        if self._joins_itself:
            return self.callback_waits()
        return self.positions.has_no_start or self.next_step() is not None

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing is under way that a heartbeat or an automatic commit would change."""
        return (
            self.connection.is_idle
            and self.connection.is_known
            and self.is_started
            and self._end is None
            and not self.is_closing
            and self._after_callback is None
            and not self._inbox
            and self.is_at_rest
            and self.positions.is_settled
            and self.committer.is_idle
            and self.topics.image is not None
        )

    @property
    def is_answered(self) -> bool:
        """Return whether the coordinator is known, and nothing is under way to it."""
        return self.connection.is_known and self.connection.is_idle and self.committer.is_idle

    def next_loud_deadline_us(self) -> int | None:
        """Return the next deadline that is neither a heartbeat nor an automatic commit."""
        return self._deadlines.next_except(CHORES)

    def skip_quiet(self, until_us: int, commits_late_us: int = 0) -> Skipped:
        """Take the chores before this time as done."""
        beats, last_us = 0, None
        clock = self.clock
        if clock.next_us < until_us and HEARTBEAT in self._deadlines.armed:
            beats, last_us = clock.skip(until_us)
            self._deadlines.arm(HEARTBEAT, clock.next_us)
            self.on_beats_skipped(last_us)
        commits, last_commit_us = self.committer.skip_timer(until_us, commits_late_us)
        return Skipped(beats, last_us, commits, last_commit_us, self.topics.skip_refreshes(until_us))

    def quiet_commit_us(self, until_us: int, commits_late_us: int = 0) -> int | None:
        """When the last automatic commit before this would have left; nothing changes."""
        return self.committer.would_skip(until_us, commits_late_us)[1]

    def in_poll(self) -> bool:
        """Whether the application's thread is inside poll() or close(), and not in a callback."""
        if self._after_callback is not None or not self.is_started:
            return False
        return self._poll_until_us >= self.runtime.now_us or self.is_closing or self._joins_itself


CLOSE = "close"
CLOSE_TIMEOUT_US = 30_000_000


class BaseMember(MemberParts):
    """A `kgctl.member.api.Member`, but for the protocol.

    The application's thread works in steps: while it is inside poll() (or close()) it takes the next one as long as there is one.
    Between polls nothing of that happens, and answers wait in an inbox unless a thread of the client's own reads the network.
    """

    __slots__ = ()

    def start(self, now_us: int) -> list[Action]:
        """Begin the life of the member: the application has called subscribe()."""
        self._enter(now_us)
        message = refusal(self.config)
        if message is not None:
            self.fail(INVALID_CONFIG, message)
        elif self._joins_itself:
            self._start()
        return self._leave()

    def poll(self, now_us: int, until_us: int | None = None) -> list[Action]:
        """Do what a poll() of the application does."""
        self._enter(now_us)
        if self._end is not None or self.is_closing or self._after_callback is not None:
            return self.runtime.take_actions()
        self._begin_poll(now_us if until_us is None else max(now_us, until_us))
        self._finds_records = until_us is None and not self._joins_itself
        if not self.is_started:
            self._start()
        self.on_poll()
        return self._leave()

    def _begin_poll(self, until_us: int) -> None:
        if POLL_LIMIT in self._deadlines.armed:
            self._deadlines.cancel(POLL_LIMIT)
        self._joins_itself = self.config.behaviour.joins_itself
        self._poll_until_us = until_us
        self._finds_records = False
        self._poll_number += 1

    def application_busy(self, since_us: int) -> list[Action]:
        """Note that the application will not poll for a while."""
        if self.is_started and self._end is None and self.config.behaviour.limits_poll_interval:
            lag_us = draw(self.runtime.rng, self.config.behaviour.limit_lag_us)
            self.runtime.deadlines.arm(POLL_LIMIT, since_us + self.config.max_poll_interval_ms * 1000 + lag_us)
        return []

    def commit(self, now_us: int) -> list[Action]:
        """Commit for the application, sync or async."""
        self._enter(now_us)
        if self._end is None and not self.is_closing:
            retry_us = self.config.default_api_timeout_ms * 1000
            self.committer.commit(self.positions.consumed, is_automatic=False, retry_for_us=retry_us)
        return self._leave()

    def callback_done(self, now_us: int) -> list[Action]:
        """Go on after the application's rebalance callback has returned."""
        self._enter(now_us)
        after, self._after_callback = self._after_callback, None
        if after is None or self._end is not None:
            return self.runtime.take_actions()
        self.runtime.deadlines.cancel(POLL_LIMIT)
        self._poll_until_us = max(self._poll_until_us, now_us)
        after()
        if self._close_is_wanted and not self.in_callback:
            self._begin_close()
        return self._leave()

    def enforce_rebalance(self, now_us: int) -> list[Action]:
        """Join again at the next poll() (KIP-568)."""
        self._enter(now_us)
        if self.is_started and self._end is None and not self.is_closing:
            self.request_rebalance()
        return self._leave()

    def on_reply(self, correlation_id: int, result: Answer, now_us: int) -> list[Action]:
        """Take a broker's answer, or the failure of a request."""
        self._enter(now_us)
        if self.connection.expects(correlation_id):
            if self.in_poll() or (self.reads_network() and not (wait_us := self.reads_in_us())):
                self.connection.answer(correlation_id, result)
            else:
                self._inbox.append((correlation_id, result))
                if self.reads_network() and READ not in self._deadlines.armed:
                    if self._looks_at_us <= now_us:
                        self._looks_at_us = now_us + wait_us
                    self._deadlines.arm(READ, self._looks_at_us)
                if not self.has_background and not self._is_departed:  # nobody looks at it now
                    taken, self.runtime.actions = self.runtime.actions, []
                    return taken
        return self._leave()

    def answer_in_poll(self, correlation_id: int, result: Answer, now_us: int) -> list[Action] | None:
        """Take an answer in a poll() that blocks; None, and nothing is done: the answer is not for the application's thread."""
        if self._after_callback is not None or self._end is not None or self.is_closing or not self.is_started:
            return None
        if self.has_background or self._joins_itself or self._inbox or not self.connection.expects(correlation_id):
            return None
        if self._poll_until_us >= now_us:
            return None
        self._enter(now_us)
        if self.reads_network():
            wait_us = self.reads_in_us()
            if not wait_us:
                return None
            if self._looks_at_us <= now_us and READ not in self._deadlines.armed:
                self._looks_at_us = now_us + wait_us
        self._begin_poll(now_us)
        self.connection.answer(correlation_id, result)
        return self._leave()

    def on_metadata(self, image: MetadataImage, now_us: int) -> list[Action]:
        """Take the topics of the cluster."""
        self._enter(now_us)
        if self._end is None:
            self.topics.take(image)
        return self._leave()

    def close(self, now_us: int) -> list[Action]:
        """Leave and end, as the consumer's close() does."""
        self._enter(now_us)
        if self._end is MemberState.FAILED or (self._end is None and not self.is_started):
            self._finish_close()
        elif self._end is None and not self.is_closing:
            if self.in_callback:
                self._close_is_wanted = True
            else:
                self._begin_close()
        return self._leave()

    def next_deadline_us(self) -> int | None:
        """Return when `expire` has to be called; None: not before something else happens."""
        deadlines = self._deadlines
        return deadlines.next_us() if deadlines.earliest_us is None else deadlines.earliest_us

    def expire(self, now_us: int) -> list[Action]:
        """Do everything whose time has come."""
        self._enter(now_us)
        deadlines = self.runtime.deadlines
        while (name := deadlines.pop_due(now_us)) is not None:
            self._on_deadline(name)
        return self._leave()

    # --- for the parts

    def call_back(self, kind: CallbackKind, partitions: set[TopicPartition], after: Step) -> None:
        """Run the application's callback, then go on with ``after``."""
        self._suspend(RunCallback(kind, tuple(sorted(partitions))), after)

    def run_assignor(self, action: RunAssignor, after: Step) -> None:
        """Let the assignor compute, then go on with ``after``."""
        self._suspend(action, after)

    def stop(self, partitions: set[TopicPartition], reason: StopReason) -> None:
        """Stop reading these partitions."""
        stopped = self.positions.drop(partitions)
        if stopped:
            self.runtime.actions.append(StopConsuming(stopped, reason))

    def auto_commit(self) -> None:
        """Commit what was read: the interval is over."""
        self.committer.auto_commit(self.positions.consumed)

    def commit_last(self, release: Step) -> None:
        """Read nothing more, and go on with ``release`` when what was read is committed, where the client does so by itself."""
        consumed = set(self.positions.consumed)
        self.stop(consumed, StopReason.CLOSED)
        if self.config.enable_auto_commit:
            self.committer.commit(consumed, is_automatic=True, retry_for_us=CLOSE_TIMEOUT_US, done=lambda _: release())
        else:
            release()

    def fail(self, error: str, message: str = "") -> None:
        """End the member by an error that the consumer does not get over."""
        self.stop(set(self.owned), StopReason.FAILED)
        self.owned.clear()
        self.runtime.emit(Failed(error, message))
        self._finish(MemberState.FAILED)

    def await_close(self) -> None:
        """What is left to do is sent: wait for the answers, and for the client's other threads."""
        self._is_departed = True
        self.runtime.arm_in(CLOSE, CLOSE_TIMEOUT_US)

    # --- inside

    def _run_background(self) -> None:
        if self.is_started and self._end is None:
            self.run_background()

    def _enter(self, now_us: int) -> None:
        runtime = self.runtime
        if now_us > runtime.now_us:  # noqa: PLR1730  # in the way of every call
            runtime.now_us = now_us

    def _leave(self) -> list[Action]:
        has_background = self.has_background
        if has_background:
            self._run_background()
        runtime = self.runtime
        in_poll = self._joins_itself or self.is_closing or self._poll_until_us >= runtime.now_us
        while self.is_started and self._after_callback is None and self._end is None and in_poll:
            if self._inbox and (not self._finds_records or self.joins()):
                self._read_inbox()
            elif self.positions.has_no_start:
                self.fail("NO_OFFSET_FOR_PARTITION", "auto.offset.reset=none and no committed offset")
            elif (step := self.next_step()) is not None:
                step()
                if has_background:
                    self._run_background()
            else:
                break
        if self._finds_records and self._inbox and self.in_poll():
            self._end_of_poll()
        if self._is_departed and self._end is None and self.connection.is_clear:
            self._is_departed = False
            runtime.arm_in(CLOSE, draw(runtime.rng, self.config.behaviour.close_lag_us))
        taken, runtime.actions = runtime.actions, []
        return taken

    def _end_of_poll(self) -> None:
        """A poll() that has records reads the network as it returns: what it learns the next one acts on (KafkaConsumer#poll)."""
        self._poll_until_us = self.runtime.now_us - 1
        while self._inbox:
            self._read_inbox()

    def _read_inbox(self) -> None:
        correlation_id, result = self._inbox.pop(0)
        if not self._inbox and READ in self._deadlines.armed:
            self._deadlines.cancel(READ)
        if self.connection.expects(correlation_id):
            self.connection.answer(correlation_id, result)

    def _start(self) -> None:
        self.is_started = True
        self.committer.restart_timer()
        self.topics.refresh()
        self.connection.find()
        self.begin()

    def _suspend(self, action: RunCallback | RunAssignor, after: Step) -> None:
        self.runtime.actions.append(action)
        self._after_callback = after
        if self.config.behaviour.limits_poll_interval and not self.is_closing:
            self.runtime.arm_in(POLL_LIMIT, self.config.max_poll_interval_ms * 1000)

    def _begin_close(self) -> None:
        self.is_closing = True
        self._close_is_wanted = False
        self.runtime.deadlines.cancel(POLL_LIMIT)
        self.positions.forget()
        self.begin_close()

    def _finish_close(self) -> None:
        self.runtime.emit(Closed())
        self._finish(MemberState.CLOSED)

    def _finish(self, end: MemberState) -> None:
        self._end = end
        self._after_callback = None
        self._inbox.clear()
        self.connection.abandon()
        self.committer.give_up()
        self.runtime.deadlines.clear()

    def _on_deadline(self, name: str) -> None:
        if name == REQUESTS:
            self.connection.expire_requests()
        elif name == LOOKUP:
            self.connection.find()
        elif name == METADATA:
            self.topics.refresh()
        elif name == RETRY_COMMIT:
            self.committer.retry()
        elif name == POLL_LIMIT:
            self.on_poll_limit()
            self._joins_itself = (
                False  # librdkafka's rd_kafka_cgrp_join, too: nobody joins again before the application has polled
            )
        elif name == CLOSE:
            self._finish_close()
        elif name == READ:
            while self._inbox and self.reads_network():
                self._read_inbox()
        elif name not in (AUTO_COMMIT, POSITIONS):
            self.on_deadline(name)
