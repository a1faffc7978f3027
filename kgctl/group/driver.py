"""What drives one member, and the thread that does: the only one that touches it.

Everything that happens (answers, deadlines, calls of other threads) is an event in one queue; each ends in a call of the member
and in doing what the member wants done. See `kgctl.member.api` for the contract.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from kgctl.errors import AuthError, BrokerError, InvariantViolation, KgctlError, UnsupportedError, UserCodeError, users_code
from kgctl.group.lines import CoordinatorConnection, Errands, JobLine, denied
from kgctl.group.requests import subscribed_topics
from kgctl.member.api import (
    Action,
    Answer,
    CallbackKind,
    Closed,
    CommitDone,
    Failed,
    FindCoordinator,
    FindCoordinatorResult,
    ListOffsets,
    ListOffsetsResult,
    MemberIdentity,
    MemberState,
    NetworkError,
    RefreshMetadata,
    RunAssignor,
    RunCallback,
    Send,
    StartConsuming,
    StopConsuming,
)
from kgctl.member.config import MemberConfig
from kgctl.member.factory import make_member
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, TopicPartition
from kgctl.model.requests import ConsumerGroupHeartbeat, Heartbeat, JoinGroupResult, LeaveGroup, OffsetFetch, Request
from kgctl.model.requests import MemberIdentity as LeavingMember
from kgctl.wire.settings import WireSettings

log = logging.getLogger("kgctl.group")

ANSWERED_AT_ONCE = (Heartbeat, ConsumerGroupHeartbeat, OffsetFetch)
LEAVE_EPOCH = -1
"""Kafka: ConsumerGroupHeartbeatRequest.LEAVE_GROUP_MEMBER_EPOCH."""
LEAVE_MS = 5_000
AT_ONCE_S = 0.02
"""How long the driver waits for the answer to one of those before it lets the line's thread do so: others may want it."""

Event = Callable[[], list[Action]]
Asked = Send | FindCoordinator | RefreshMetadata | ListOffsets


class Listener(Protocol):
    """Told of the member's life, always in the driver's thread."""

    def on_callback(self, kind: CallbackKind, partitions: tuple[TopicPartition, ...], done: Callable[[], None]) -> None:
        """Partitions were assigned, are to be given up, or were lost; call ``done`` (from any thread) when that is dealt with."""

    def on_start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Take note that these partitions are read from these offsets on."""

    def on_stop(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Take note that these partitions are read no longer."""

    def on_step(self) -> None:
        """Something happened, and what the member wanted done is under way."""

    def on_end(self, error: KgctlError | None) -> None:
        """The member has ended: closed (None), or by an error that it does not get over."""


class MemberDriver(ABC):
    """One member, and what is done about what it wants. ``timeout_ms`` is the time that a broker has to answer.

    `Driver` does it in threads, `kgctl.group.async_driver.AsyncDriver` in an event loop.
    """

    _listener: Listener

    def __init__(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings, timeout_ms: int) -> None:
        self.member = make_member(config, identity, random.SystemRandom())
        self.last_error: KgctlError | None = None
        self.has_ended = threading.Event()
        self.end_error: KgctlError | None = None
        self.coordinator: Node | None = None
        """The group's coordinator, once it has been found."""
        self.is_closing = False
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._parked: Request | None = None
        self._led_topics: frozenset[str] = frozenset()
        self._warned = ""
        self._told_left_over = 0
        self.is_classic = config.group_protocol == "classic"
        self._is_ending = False

    @abstractmethod
    def post(self, event: Event) -> None:
        """Do this call of the member, in order. From any thread."""

    def start(self, listener: Listener) -> None:
        """Begin to join the group, and tell this one how it goes."""
        self._listener = listener
        self.post(lambda: self.member.start(self.now_us()))

    @staticmethod
    def now_us() -> int:
        """The member's clock."""
        return time.monotonic_ns() // 1000

    @abstractmethod
    def _ask(self, action: Asked) -> None: ...

    @abstractmethod
    def _drop_coordinator(self) -> None: ...

    @abstractmethod
    def _send_beside(self, node: Node, request: Request) -> None:
        """Send this on a connection of its own, beside the member's."""

    @abstractmethod
    def _finish(self, error: KgctlError | None, node: Node | None, leaving: Request | None) -> None:
        """The member is at its end: send what it leaves by, give connections back, and tell the listener."""

    def close(self) -> None:
        """Leave the group and end. A JoinGroup that the broker holds back is given up, and the member leaves beside it."""
        self.post(self._begin_close)

    def _begin_close(self) -> list[Action]:
        self.is_closing = True
        member, node = self.member, self.coordinator
        if node is not None and self._parked is not None and member.state is MemberState.JOINING:
            leaving = self._leaving(None, member.member_id)
            self._drop_coordinator()
            if leaving is not None:
                self._send_beside(node, leaving)
        return member.close(self.now_us())

    def _end(self, error: KgctlError | None) -> None:
        if self._is_ending:
            return
        self._is_ending = True
        node, leaving = self.coordinator, self._leaving(error, self.member.member_id) if error is not None else None
        self.end_error = error
        self._drop_coordinator()
        self._finish(error, node, leaving)

    def _take(self, event: Event | None) -> None:
        """One step of the member, a deadline for None. What is not kgctl's own fault is `UserCodeError`."""
        with users_code("code that the member runs"):
            for action in event() if event is not None else self.member.expire(self.now_us()):
                self._do(action)
            self._tell_left_over()
            self._listener.on_step()

    def _step(self, event: Event | None) -> None:
        try:
            self._take(event)
        except UserCodeError as error:
            self._end(error)
        except Exception as error:
            log.critical("group '%s': %r", self.member.identity.group_id, error, exc_info=error)
            self._end(_bug_in_kgctl(error))

    def _bug(self, error: BaseException) -> None:
        """A line failed as it should not."""
        self.post(partial(self._give_up, _bug_in_kgctl(error)))

    def _do(self, action: Action) -> None:
        match action:
            case Send() | FindCoordinator() | RefreshMetadata() | ListOffsets():
                self._ask(action)
            case RunCallback():
                self._listener.on_callback(action.kind, action.partitions, self._callback_done)
            case RunAssignor():
                self._callback_done()
            case StartConsuming():
                self._listener.on_start(action.positions)
            case StopConsuming():
                self._listener.on_stop(action.partitions)
            case Failed():
                self._end(_failure(action, self._settings, self.member.identity))
            case Closed():
                self._end(None)
            case CommitDone():
                pass  # commits are the generation's

    def _callback_done(self) -> None:
        self.post(lambda: self.member.callback_done(self.now_us()))

    def _tell_left_over(self) -> None:
        """Warn of partitions that an assignor of the user's own gives to nobody: they are read by nobody, in silence."""
        left, told = self.member.left_over, self._told_left_over
        self._told_left_over = left
        if left and left != told:
            log.warning("group '%s': the assignor leaves %d partition(s) to nobody", self.member.identity.group_id, left)

    def _trouble(self, error: KgctlError) -> None:
        """Keep what went wrong, and warn of it once: the same error comes back with every try."""
        self.last_error = error
        if error.message != self._warned and not self.is_closing:
            self._warned = error.message
            log.warning("group '%s': %s", self.member.identity.group_id, error.message)

    def _errand_failed(self, correlation_id: int, error: KgctlError) -> None:
        self._trouble(error)
        if isinstance(error, (AuthError, UserCodeError)):
            self.post(partial(self._give_up, error))
        else:
            self._answer(correlation_id, NetworkError(correlation_id))

    def _give_up(self, error: KgctlError) -> list[Action]:
        self._end(error)
        return []

    def _found(self, correlation_id: int, found: Node | ErrorCode) -> None:
        """Here is the coordinator, or why there is none."""

        def take() -> list[Action]:
            if isinstance(found, ErrorCode):
                return self.member.on_reply(correlation_id, FindCoordinatorResult(found), self.now_us())
            self._use_coordinator(found)
            return self.member.on_reply(correlation_id, FindCoordinatorResult(), self.now_us())

        self.post(take)

    @abstractmethod
    def _use_coordinator(self, node: Node) -> None: ...

    def _unanswered(self, error: KgctlError) -> None:
        """A broker that does not know the request will know it no better the next time."""
        self._trouble(error)
        if isinstance(error, UnsupportedError):
            failed = Failed("UNSUPPORTED_VERSION", error.message)
            self.post(partial(self._give_up, _failure(failed, self._settings, self.member.identity)))
        elif isinstance(error, UserCodeError):
            self.post(partial(self._give_up, error))

    def _lacks_topics_of(self, answer: JoinGroupResult) -> bool:
        """A leader assigns the topics of all members, and looks at those that it does not read itself before it goes on."""
        identity = self.member.identity
        wanted = subscribed_topics(answer.members) - set(identity.topics) if identity.pattern is None else frozenset()
        is_known, self._led_topics = wanted <= self._led_topics, wanted
        return not is_known

    def _own_topics(self) -> tuple[str, ...] | None:
        """With a pattern all topics; else the member's own, and those that it assigns as the leader."""
        identity = self.member.identity
        return identity.topics if identity.pattern is None else None

    def _answer(self, correlation_id: int, answer: Answer) -> None:
        self.post(lambda: self.member.on_reply(correlation_id, answer, self.now_us()))

    def _leaving(self, error: KgctlError | None, member_id: str) -> Request | None:
        """What is sent so that nobody waits a session for this member; None for one that is not there, or static."""
        identity = self.member.identity
        is_in = error is None or _is_still_in(error)
        if not (is_in and member_id and self.coordinator is not None) or identity.group_instance_id is not None:
            return None
        if not self.is_classic:
            return ConsumerGroupHeartbeat(request_id=0, group_id=identity.group_id, member_id=member_id, member_epoch=LEAVE_EPOCH)
        leaving = LeavingMember(member_id=member_id, reason="the consumer is being closed")
        return LeaveGroup(request_id=0, group_id=identity.group_id, members=(leaving,))


class Driver(MemberDriver):
    """Drives it in a thread of its own, with its lines to the cluster."""

    def __init__(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings, timeout_ms: int) -> None:
        super().__init__(config, identity, settings, timeout_ms)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._errands = Errands(identity.group_id, settings, timeout_ms)
        self._connection: CoordinatorConnection | None = None
        self._line: JobLine | None = None
        self._thread = threading.Thread(target=self._run, name=f"kgctl-group-{identity.group_id}", daemon=True)

    def start(self, listener: Listener) -> None:
        """As `MemberDriver.start`."""
        super().start(listener)
        self._thread.start()

    def post(self, event: Event) -> None:
        """Let the driver's thread do this call of the member, in order. From any thread."""
        self._events.put(event)

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False where it did not come in time."""
        return self.has_ended.wait(timeout_s)

    # --- the driver's thread

    def _run(self) -> None:
        while not self.has_ended.is_set():
            self._step(self._next_event())

    def _next_event(self) -> Event | None:
        due_us = self.member.next_deadline_us()
        try:
            if due_us is None:
                return self._events.get()
            return self._events.get(timeout=max(0.0, (due_us - self.now_us()) / 1e6))
        except queue.Empty:
            return None

    def _ask(self, action: Asked) -> None:
        match action:
            case Send():
                self._send(action.correlation_id, action.request)
            case FindCoordinator():
                self._errand(action.correlation_id, partial(self._find_coordinator, action.correlation_id))
            case RefreshMetadata():
                self._errand(action.correlation_id, self._refresh)
            case ListOffsets():
                self._errand(action.correlation_id, partial(self._list_offsets, action), to_leaders=True)

    def _finish(self, error: KgctlError | None, node: Node | None, leaving: Request | None) -> None:
        if node is not None and leaving is not None:
            self._send_beside(node, leaving)
        self.has_ended.set()
        self._errands.close()
        self._listener.on_end(error)

    # --- the lines

    def _errand(
        self,
        correlation_id: int,
        work: Callable[[float], None],
        then: Callable[[], None] = lambda: None,
        *,
        to_leaders: bool = False,
    ) -> None:
        def run(since_s: float) -> None:
            try:
                work(since_s)
                self.last_error, self._warned = None, ""
                then()
            except KgctlError as error:
                self._errand_failed(correlation_id, error)
            except BaseException as error:  # noqa: BLE001 - the line is other members', too
                self._bug(error)

        self._errands.put(run, to_leaders=to_leaders)

    def _find_coordinator(self, correlation_id: int, since_s: float) -> None:
        self._found(correlation_id, self._errands.find_coordinator(since_s))

    def _refresh(self, since_s: float) -> None:
        image = self._errands.metadata(since_s, self._own_topics(), self._led_topics)
        self.post(lambda: self.member.on_metadata(image, self.now_us()))

    def _list_offsets(self, action: ListOffsets, since_s: float) -> None:
        offsets = self._errands.list_offsets(since_s, action.partitions, action.strategy)
        self._answer(action.correlation_id, ListOffsetsResult(offsets))

    def _use_coordinator(self, node: Node) -> None:
        self._drop_coordinator()
        self.coordinator = node
        self._connection = CoordinatorConnection(node, self._settings)
        self._line = JobLine(f"kgctl-group-coordinator-{node.node_id}", self._bug)

    def _drop_coordinator(self) -> None:
        if self._connection is not None and self._line is not None:
            self._connection.abort()
            self._line.put(self._connection.close)
            self._line.close()
        self._connection = self._line = self.coordinator = None

    def _send(self, correlation_id: int, request: Request) -> None:
        connection = self._connection
        if connection is None or self._line is None:
            self._answer(correlation_id, NetworkError(correlation_id))
            return

        ask: Callable[[], Answer] = partial(connection.ask, request)
        if isinstance(request, ANSWERED_AT_ONCE) and self._line.is_idle:
            found: Answer | Callable[[], Answer] | None
            try:
                found = connection.ask_at_once(request, AT_ONCE_S)
            except KgctlError as error:
                self._unanswered(error)
                found = NetworkError(correlation_id)
            if callable(found):
                ask = found
            elif found is not None:
                self._answer(correlation_id, found)
                return

        def run() -> None:
            self._parked = request
            try:
                answer = ask()
            except KgctlError as error:
                self._unanswered(error)
                answer = NetworkError(correlation_id)
            finally:
                self._parked = None
            if isinstance(answer, JoinGroupResult):
                self._joined(correlation_id, answer)
            else:
                self._answer(correlation_id, answer)

        self._line.put(run)

    def _joined(self, correlation_id: int, answer: JoinGroupResult) -> None:
        if self._lacks_topics_of(answer):
            self._errand(correlation_id, self._refresh, then=lambda: self._answer(correlation_id, answer))
        else:
            self._answer(correlation_id, answer)

    # --- the end

    def _send_beside(self, node: Node, request: Request) -> None:
        connection = CoordinatorConnection(node, self._settings)
        try:
            connection.ask(request, min(self._timeout_ms, LEAVE_MS))
        except KgctlError as error:
            self.last_error = error
        finally:
            connection.close()


_ADVICE: Mapping[str, str] = {
    "FENCED_INSTANCE_ID": "give each member a group_instance_id of its own",
    "UNRELEASED_INSTANCE_ID": "close that member, or wait until its session has ended",
    "INCONSISTENT_GROUP_PROTOCOL": "name an assignor that all of them have",
    "UNSUPPORTED_ASSIGNOR": "name one of the cluster's group.consumer.assignors",
    "UNSUPPORTED_VERSION": 'the cluster may know the classic protocol alone: protocol="classic"',
    "NO_OFFSET_FOR_PARTITION": 'commit offsets first, or set auto_offset_reset to "earliest" or "latest"',
}
"""What to do about an error for good, where its own text does not say."""


def _failure(failed: Failed, settings: WireSettings, identity: MemberIdentity) -> KgctlError:
    """Return the exception for an error that the member does not get over: Kafka's code, what it means, what to do."""
    code, group_id = ErrorCode.__members__.get(failed.error), identity.group_id
    if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return denied(code, settings, group_id)
    if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return denied(code, settings, group_id, ", ".join(identity.topics))
    said = failed.message or (f"{code.name}: {code.text}" if code is not None else failed.error)
    advice = f"; {_ADVICE[failed.error]}" if failed.error in _ADVICE else ""
    kind = KgctlError if code is None else BrokerError
    return kind(f"group '{group_id}': {said}{advice}", code=failed.error, group=group_id)


_OUT = frozenset({"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"})
"""Errors with which the coordinator says that it does not know the member, or another in its place."""


def _is_still_in(error: KgctlError) -> bool:
    """Whether the coordinator may still count on a member that ended by this."""
    return error.code not in _OUT and not isinstance(error, AuthError)


def _bug_in_kgctl(error: BaseException) -> KgctlError:
    found = InvariantViolation(f"a bug in kgctl ended the member: {error!r}")
    found.__cause__ = error
    return found
