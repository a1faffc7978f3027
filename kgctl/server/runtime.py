"""Drives the coordinator in real time: requests in, records to the log, replies out when they may go, one timer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID, uuid4

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Effect, GroupFailed, Reply, ResolveRegexes, refuse
from kgctl.coordinator.re2 import resolve_regexes
from kgctl.coordinator.timers import NEVER_MS
from kgctl.errors import StorageError
from kgctl.model.coordinator_records import OffsetCommitKey, TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResult,
    DeleteGroupsResult,
    EndTransaction,
    HeartbeatResult,
    JoinGroup,
    ListGroups,
    ListGroupsResult,
    OffsetCommit,
    OffsetDelete,
    Request,
    Result,
    TxnOffsetCommit,
)
from kgctl.model.share_requests import (
    DeleteShareState,
    InitializeShareState,
    ListLatestOffsets,
    ReadShareStateSummary,
    ShareGroupHeartbeat,
    ShareStateCall,
)
from kgctl.model.share_results import ShareGroupHeartbeatResult
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.model.streams_results import StreamsGroupHeartbeatResult
from kgctl.model.values import frozen_in_order
from kgctl.serde.record_schema import uuid_text
from kgctl.server.activity import JOINS, GroupActivity

log = logging.getLogger(__name__)

T = TypeVar("T")


class CoordinatorLog(Protocol):
    """The part of a record log that is used here."""

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        """Make the records durable, all or none."""

    def groups_of_transaction(self, producer_id: int) -> Collection[str]:
        """The groups that an open transaction of this producer holds offsets back of."""
        ...


class HeldAnswer(Protocol):
    """An answer that may go when what stands before it is durable."""

    def release(self) -> None:
        """Give it."""

    def refuse_if_of(self, group_ids: Collection[str]) -> bool:
        """Where the answer concerns one of these groups, whose records were lost: say so instead, and return True."""
        ...


@frozen_in_order
class Lost:
    """Records that could not be written. ``groups`` says whether commits alone were lost; ``written`` is what the log has.

    ``markers`` ends of transactions are still to be written, and applied to the coordinator already.
    """

    error: Exception
    groups: Mapping[str, bool]
    written: GroupCoordinator
    markers: Sequence[TransactionMarker] = ()


class LogWriter:
    """Collects what one turn of the event loop appends and writes it in one transaction; what comes meanwhile waits for the next.

    With ``in_thread`` the loop goes on while the disk is busy; without, writing takes no time worth a thread. Where a write
    fails, the coordinator's memory is ahead of its log in the groups concerned: ``on_lost`` puts it back by what ``read`` finds
    there, and their answers are refused. A record that cannot be written at all takes nobody else's with it. ``on_failure``
    must end the server when not even reading is possible: nothing is released any more.
    """

    def __init__(
        self,
        record_log: CoordinatorLog,
        clock: Callable[[], int],
        on_failure: Callable[[BaseException], None],
        *,
        in_thread: bool,
        read: Callable[[Collection[str]], GroupCoordinator],
    ) -> None:
        self._log = record_log
        self._clock = clock
        self._on_failure = on_failure
        self._read = read
        self._thread = ThreadPoolExecutor(1, "kgctl-log") if in_thread else None
        self._batch: list[AppendRecord] = []
        self._held: list[HeldAnswer] = []
        self._write: asyncio.Future[Lost | None] | None = None
        self._is_scheduled = False
        self._trouble = ""
        self.has_failed = False
        self.written: list[Callable[[], None]] = []
        """Called after each write."""
        self.on_lost: Callable[[Lost], None] = lambda _: None

    @property
    def is_idle(self) -> bool:
        """Whether everything is written and nothing is held."""
        return not self._batch and not self._held and self._write is None

    def append(self, record: AppendRecord) -> None:
        self._batch.append(record)
        self._schedule()

    def after_writes(self, answer: HeldAnswer) -> None:
        """Release ``answer`` when everything appended so far is durable."""
        self._held.append(answer)
        self._schedule()

    async def drain(self) -> None:
        """Return when everything is written, or writing has failed."""
        while not self.is_idle and not self.has_failed:
            if self._write is not None:
                await asyncio.wait([self._write])
            await asyncio.sleep(0)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()

    def _schedule(self) -> None:
        if not self._is_scheduled and self._write is None:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self.has_failed:
            return
        batch, self._batch = self._batch, []
        held, self._held = self._held, []
        if batch and self._thread is not None:
            write = partial(self._write_out, batch, self._clock())
            self._write = asyncio.get_running_loop().run_in_executor(self._thread, write)
            self._write.add_done_callback(partial(self._finished, held))
            return
        try:
            lost = self._write_out(batch, self._clock()) if batch else None
        except Exception as error:  # noqa: BLE001 - whatever it is, the memory is ahead of the log now
            self._failed(error)
        else:
            self._settle(held, lost, has_written=bool(batch))

    def _write_out(self, batch: list[AppendRecord], now_ms: int) -> Lost | None:
        """In the log's thread. Raises what `read` raises."""
        try:
            self._log.append(batch, now_ms)
        except Exception as error:  # noqa: BLE001 - disk or record: the groups concerned go back to what is written
            lost = self._unwritten(batch, now_ms, error)
            return Lost(error, lost, self._read(lost)) if lost else None
        return None

    def _unwritten(self, batch: list[AppendRecord], now_ms: int, error: Exception) -> dict[str, bool]:
        """Write what can be, group by group, where it is not the disk that refuses; what is lost."""
        groups = self._groups_of(batch)
        if isinstance(error, StorageError) or any(isinstance(effect.record, TransactionMarker) for effect in batch):
            return groups
        lost = {}
        for group_id, commits_only in groups.items():
            try:
                self._log.append([effect for effect in batch if _group_of(effect) == group_id], now_ms)
            except Exception:  # noqa: BLE001 - told by the caller
                lost[group_id] = commits_only
        return lost

    def _groups_of(self, batch: list[AppendRecord]) -> dict[str, bool]:
        groups: dict[str, bool] = {}
        for effect in batch:
            record = effect.record
            if isinstance(record, TransactionMarker):
                for group_id in self._log.groups_of_transaction(record.producer_id):
                    groups.setdefault(group_id, True)
            else:
                group_id = record.key.group or ""
                groups[group_id] = groups.get(group_id, True) and isinstance(record.key, OffsetCommitKey)
        return groups

    def _finished(self, held: list[HeldAnswer], write: asyncio.Future[Lost | None]) -> None:
        self._write = None
        error = write.exception()
        if error is not None:
            self._failed(error)
            return
        self._settle(held, write.result(), has_written=True)
        if self._batch or self._held:
            self._schedule()

    def _settle(self, held: list[HeldAnswer], lost: Lost | None, *, has_written: bool) -> None:
        if lost is not None:
            try:
                held = self._give_up(held, lost)
            except Exception as error:  # noqa: BLE001 - whatever it is, the memory stays ahead of the log
                self._failed(error)
                return
        elif has_written and self._trouble:
            log.warning("the log can be written again")
            self._trouble = ""
        if has_written:
            _call_all(self.written)
        _call_all([answer.release for answer in held])

    def _give_up(self, held: list[HeldAnswer], lost: Lost) -> list[HeldAnswer]:
        """Forget what was to follow the lost records; the answers that may go."""
        if str(lost.error) != self._trouble:
            self._trouble = str(lost.error)
            log.error("cannot write to the log, who wanted to is told to ask again: %s", lost.error)
        follow = [effect for effect in self._batch if _group_of(effect) in lost.groups]
        self._batch = [effect for effect in self._batch if _group_of(effect) not in lost.groups]
        groups = {**lost.groups, **{name: lost.groups[name] and only for name, only in self._groups_of(follow).items()}}
        markers = [effect.record for effect in self._batch if isinstance(effect.record, TransactionMarker)]
        waiting, self._held = self._held, []
        self.on_lost(Lost(lost.error, groups, lost.written, markers))
        self._held[:0] = [answer for answer in waiting if not answer.refuse_if_of(groups)]
        return [answer for answer in held if not answer.refuse_if_of(groups)]

    def _failed(self, error: BaseException) -> None:
        self.has_failed = True
        log.critical("cannot go on from the log, no further request is answered: %s", error, exc_info=error)
        self._on_failure(error)


def _group_of(effect: AppendRecord) -> str | None:
    return None if isinstance(effect.record, TransactionMarker) else effect.record.key.group or ""


def _call_all(functions: Iterable[Callable[[], None]]) -> None:
    for function in functions:
        try:
            function()
        except Exception:  # one answer that cannot be given keeps back no other
            log.exception("an answer failed")


Values = dict[str, Any]
"""A response body, as `kgctl.serde.messages.encode_response` takes it."""

Answer = Values | Awaitable[Values | None] | None
"""At once, later, or never (a produce request with acks=0)."""

EVENT_ID = 0
"""The request id of events, whose answer nobody waits for."""

RETRY_MS = 1_000
"""How long nothing is expired after a failure that the core did not keep to its group, and commits are refused unseen after one
that the disk refused."""


_HEARTBEATS = (HeartbeatResult, ConsumerGroupHeartbeatResult, ShareGroupHeartbeatResult, StreamsGroupHeartbeatResult)
_COMMITS = (OffsetCommit, TxnOffsetCommit, OffsetDelete)

UNWRITTEN = ErrorCode.NOT_COORDINATOR
"""Kafka's answer where the group's log cannot be written (CoordinatorOperationExceptionHelper): clients ask again."""


Perform = Callable[[ShareStateCall, Callable[[Request], None]], None]
"""Given a call of the core's, and how to tell the core what came of it."""


class Clock(Protocol):
    """Milliseconds since the epoch, never going back."""

    def __call__(self) -> int: ...


def steady_clock() -> Clock:
    """The wall clock as it is now, carried on by the monotonic one: a changed system time expires no session.

    It agrees with the system's clock to the millisecond until that is set anew.
    """
    offset_ns = min(_readings(), key=lambda each: each[0])[1]
    return lambda: (time.monotonic_ns() + offset_ns) // 1_000_000


def _readings() -> Iterable[tuple[int, int]]:
    """How long a reading of both clocks took, and how far they were apart: one that was interrupted is not believed."""
    for _ in range(5):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        yield after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2


def new_member_id(prefix: str) -> str:
    """As Kafka makes them: ``prefix-uuid`` for the classic protocol, 22 characters of base64 for the consumer protocol."""
    return f"{prefix}-{uuid4()}" if prefix else base64_uuid()


def base64_uuid(value: UUID | None = None) -> str:
    """22 characters of URL-safe base64, as Kafka writes a uuid; a random one, never with a leading dash, unless given."""
    text = uuid_text((value or uuid4()).bytes)
    return base64_uuid() if value is None and text.startswith("-") else text


class CoordinatorRuntime:
    """Owns the coordinator. Everything happens in the event loop's thread; only the log is written in another.

    No reply is given before the records that stand before it are durable. Heartbeats that append nothing do not wait for the
    records of others.
    """

    def __init__(self, core: GroupCoordinator, writer: LogWriter, clock: Clock) -> None:
        self.core = core
        self.clock = clock
        self.writer = writer
        self.topic_names: Callable[[], Iterable[str]] = tuple
        self.perform: Perform = lambda _, __: None
        """Does what the core has done elsewhere for share groups, and tells it what came of it."""
        self.refuse_call: Perform = lambda _, __: None
        """Tells it that nothing came of it, as what stands before it is lost."""
        self.activity = GroupActivity()
        self._ids = itertools.count(EVENT_ID + 1)
        self._waiting: dict[int, tuple[Request, asyncio.Future[Result]]] = {}
        self._answered: dict[int, Result] = {}
        self._timers = core.shard.timers
        self._groups = core.shard.groups
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._is_stopped = False
        self._not_before_ms = 0
        self._commits_from_ms = 0
        writer.on_lost = self._restore

    def next_request_id(self) -> int:
        return next(self._ids)

    def ask(self, request: Request, render: Callable[[Result], Values]) -> Answer:
        """Hand a request to the core: its rendered result, or an awaitable of it."""
        return rendered(self.result(request), render)

    def result(self, request: Request) -> Result | asyncio.Future[Result]:
        """Hand a request to the core: its result, or a future of it."""
        now_ms = self.clock()
        if now_ms < self._commits_from_ms and isinstance(request, _COMMITS):
            return refuse(request, UNWRITTEN)
        group_id, groups = getattr(request, "group_id", None), self._groups
        is_new = group_id not in groups
        try:
            effects = self.core.handle(request, now_ms)
        except Exception as error:  # noqa: BLE001 - a bug in one group must not reach the connections of others
            _log_failure(f"a {type(request).__name__}", error)
            self._watch_time()
            return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        if group_id is not None and group_id in groups:
            self.activity.asked(group_id, now_ms, is_new=is_new)
        if len(effects) == 1 and isinstance(reply := effects[0], Reply) and self._may_go(reply, request):
            self._watch_time()
            result: Result | None = reply.result
        else:
            self._run(effects)
            result = self._answered.pop(request.request_id, None)
        if result is not None:
            if isinstance(request, JOINS):
                self._note_join(request, result, now_ms)
            return result
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if isinstance(request, JOINS):
            future.add_done_callback(partial(self._joined_later, request, now_ms))
        self._waiting[request.request_id] = request, future
        return future

    def _may_go(self, reply: Reply, request: Request) -> bool:
        """Whether a reply that stands alone is one to this request and waits for nothing."""
        return reply.request_id == request.request_id and (isinstance(reply.result, _HEARTBEATS) or self.writer.is_idle)

    def _joined_later(self, request: Request, now_ms: int, done: asyncio.Future[Result]) -> None:
        if not done.cancelled():
            self._note_join(request, done.result(), now_ms)

    def _note_join(self, request: Request, result: Result, now_ms: int) -> None:
        if isinstance(request, JoinGroup) or (
            isinstance(request, (ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat))
            and request.member_epoch == 0
        ):
            self.activity.joined(request, result, now_ms)
            self.activity.forget_gone(self.core.shard.groups)

    def group_ids(self) -> list[str]:
        request = ListGroups(request_id=self.next_request_id())
        effects = self.core.handle(request, self.clock())
        results = (effect.result for effect in effects if isinstance(effect, Reply))
        return sorted(group.group_id for result in results if isinstance(result, ListGroupsResult) for group in result.groups)

    def tell(self, event: Request) -> None:
        """Hand an event to the core (``request_id`` must be EVENT_ID)."""
        try:
            self._run(self.core.handle(event, self.clock()))
        except Exception as error:  # noqa: BLE001 - whoever caused the event has its answer already
            _log_failure(f"a {type(event).__name__}", error)
            self._watch_time()

    def fire_due(self) -> None:
        """Fire the timers that are due now, and perform what somebody has put into the core beside a request."""
        try:
            effects = self.core.expire(self.clock())
        except Exception as error:  # noqa: BLE001 - the other groups' timers go on
            _log_failure("a timer", error)
            self._not_before_ms = self.clock() + RETRY_MS
            effects = []
        self._run(effects)

    def clock_moved(self) -> None:
        """Fire what is due now that the clock shows another time."""
        self._timer_ms = None
        self.fire_due()

    def start(self) -> None:
        """Begin to watch the time; the log is loaded already."""
        self._watch_time()

    async def stop(self) -> None:
        """Answer what is parked with NOT_COORDINATOR and write what is left."""
        self._is_stopped = True
        if not self.writer.has_failed:
            self._run(self.core.unload(self.clock()))
            await self.writer.drain()
        if self._timer is not None:
            self._timer.cancel()
        self.writer.close()

    def _run(self, effects: list[Effect]) -> None:
        has_appended = False
        for effect in effects:
            match effect:
                case Reply():
                    if self.writer.is_idle or (not has_appended and isinstance(effect.result, _HEARTBEATS)):
                        self.deliver(effect)
                    else:
                        self.writer.after_writes(_Held(self, effect))
                case AppendRecord():
                    has_appended = True
                    self.writer.append(effect)
                case ResolveRegexes():
                    asyncio.get_running_loop().call_soon(self._resolve, effect)
                case InitializeShareState() | DeleteShareState() | ReadShareStateSummary() | ListLatestOffsets():
                    self.writer.after_writes(_HeldCall(self, effect))
                case GroupFailed():
                    log.error("group %s: a timer failed, the group goes on: %s", effect.group_id, effect.error)
        self._watch_time()

    def deliver(self, reply: Reply) -> None:
        """Give an answer to whoever waits for it."""
        _, future = self._waiting.pop(reply.request_id, (None, None))
        if future is None:
            if reply.request_id != EVENT_ID:
                self._answered[reply.request_id] = reply.result
        elif not future.done():
            future.set_result(reply.result)

    def refuse_if_of(self, reply: Reply, group_ids: Collection[str]) -> bool:
        """Where the reply's request concerns one of these groups: answer that it could not be written, and return True."""
        request, _ = self._waiting.get(reply.request_id, (None, None))
        if request is None or not _is_about(request, group_ids):
            return False
        self.deliver(Reply(reply.request_id, _unwritten(request, reply.result, group_ids)))
        return True

    def _restore(self, lost: Lost) -> None:
        if isinstance(lost.error, StorageError):
            self._commits_from_ms = self.clock() + RETRY_MS
        for marker in lost.markers:
            lost.written.replay(marker)
        self._run(self.core.restore(lost.groups, lost.written, self.clock()))

    def _watch_time(self) -> None:
        # No timer fires before this; a beat only moves its timer, and does not make this later before it is due.
        deadline_ms = self._timers.earliest_ms
        if deadline_ms == self._timer_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = None
        if deadline_ms < NEVER_MS and not self._is_stopped and not self.writer.has_failed:
            delay_ms = max(0, max(deadline_ms, self._not_before_ms) - self.clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.fire_due()

    def _resolve(self, effect: ResolveRegexes) -> None:
        self.tell(resolve_regexes(effect, self.topic_names(), EVENT_ID))


@frozen_in_order
class _Held:
    """A reply of the core's that waits for its records."""

    runtime: CoordinatorRuntime
    reply: Reply

    def release(self) -> None:
        self.runtime.deliver(self.reply)

    def refuse_if_of(self, group_ids: Collection[str]) -> bool:
        return self.runtime.refuse_if_of(self.reply, group_ids)


@frozen_in_order
class _HeldCall:
    """A call of the core's that waits for its records."""

    runtime: CoordinatorRuntime
    call: ShareStateCall

    def release(self) -> None:
        self.runtime.perform(self.call, self.runtime.tell)

    def refuse_if_of(self, group_ids: Collection[str]) -> bool:
        """What was to be done for records that are lost is not done."""
        if getattr(self.call, "group_id", None) not in group_ids:
            return False
        self.runtime.refuse_call(self.call, self.runtime.tell)
        return True


def _is_about(request: Request, group_ids: Collection[str]) -> bool:
    """Whether a request concerns one of these groups. The end of a transaction names none: it may always."""
    if isinstance(request, EndTransaction):
        return True
    return any(group_id in group_ids for group_id in (getattr(request, "group_id", None), *getattr(request, "group_ids", ())))


def _unwritten(request: Request, result: Result, group_ids: Collection[str]) -> Result:
    if isinstance(result, DeleteGroupsResult):
        groups = tuple((group_id, UNWRITTEN if group_id in group_ids else error) for group_id, error in result.groups)
        return DeleteGroupsResult(groups=groups)
    return refuse(request, UNWRITTEN)


def _log_failure(what: str, error: Exception) -> None:
    """One line with the group, and the traceback for who mends it: nothing of this is a client's fault."""
    group = getattr(error, "group", None)
    log.error("%s%s failed: %s", what, f" of group {group}" if group else "", error, exc_info=error)


@frozen_in_order
class Later(Generic[T]):
    """What is made of the coordinator's result when it comes. Whoever waits may be called back by ``result``, without a task.

    An awaitable without being derived from the abstract one, which would make each question whether something is a `Later` slow.
    """

    result: asyncio.Future[Result]
    make: Callable[[Result], T | Awaitable[T]]

    def __await__(self) -> Generator[Any, None, T]:
        made = self.make((yield from self.result))
        return (yield from made.__await__()) if isinstance(made, Awaitable) else made


def rendered(result: Result | asyncio.Future[Result], render: Callable[[Result], Values]) -> Values | Later[Values]:
    """Return what ``render`` makes of the result, now or when it comes."""
    return Later(result, render) if isinstance(result, asyncio.Future) else render(result)
