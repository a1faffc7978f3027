"""Drives the coordinator in real time: requests in, records to the log, replies out when they may go, one timer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol
from uuid import UUID, uuid4

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Effect, GroupFailed, Reply, ResolveRegexes, refuse
from kgctl.coordinator.re2 import resolve_regexes
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatResult,
    HeartbeatResult,
    JoinGroup,
    JoinGroupResult,
    ListGroups,
    ListGroupsResult,
    Request,
    Result,
)
from kgctl.serde.record_schema import uuid_text

log = logging.getLogger(__name__)


class CoordinatorLog(Protocol):
    """The part of a record log that is written here."""

    def append(self, effects: Sequence[AppendRecord], now_ms: int) -> None:
        """Make the records durable."""


class LogWriter:
    """Collects what one turn of the event loop appends and writes it in one transaction; what comes meanwhile waits for the next.

    With ``in_thread`` the loop goes on while the disk is busy; without, writing takes no time worth a thread. When a write fails,
    the coordinator's memory is ahead of its log: ``on_failure`` must end the server, nothing is released any more.
    """

    def __init__(
        self,
        record_log: CoordinatorLog,
        clock: Callable[[], int],
        on_failure: Callable[[BaseException], None],
        *,
        in_thread: bool,
    ) -> None:
        self._log = record_log
        self._clock = clock
        self._on_failure = on_failure
        self._thread = ThreadPoolExecutor(1, "kgctl-log") if in_thread else None
        self._batch: list[AppendRecord] = []
        self._held: list[Callable[[], None]] = []
        self._write: asyncio.Future[None] | None = None
        self._is_scheduled = False
        self.has_failed = False
        self.written: list[Callable[[], None]] = []
        """Called after each write."""

    @property
    def is_idle(self) -> bool:
        """Whether everything is written and nothing is held."""
        return not self._batch and not self._held and self._write is None

    def append(self, record: AppendRecord) -> None:
        self._batch.append(record)
        self._schedule()

    def after_writes(self, release: Callable[[], None]) -> None:
        """RequestContext ``release`` when everything appended so far is durable."""
        self._held.append(release)
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
            write = partial(self._log.append, batch, self._clock())
            self._write = asyncio.get_running_loop().run_in_executor(self._thread, write)
            self._write.add_done_callback(partial(self._finished, held))
            return
        try:
            if batch:
                self._log.append(batch, self._clock())
        except Exception as error:  # noqa: BLE001 - whatever it is, the memory is ahead of the log now
            self._failed(error)
        else:
            self._release(held, has_written=bool(batch))

    def _finished(self, held: list[Callable[[], None]], write: asyncio.Future[None]) -> None:
        self._write = None
        error = write.exception()
        if error is not None:
            self._failed(error)
            return
        self._release(held, has_written=True)
        if self._batch or self._held:
            self._schedule()

    def _release(self, held: list[Callable[[], None]], *, has_written: bool) -> None:
        if has_written:
            held = [*self.written, *held]
        for release in held:
            try:
                release()
            except Exception:  # one answer that cannot be given keeps back no other
                log.exception("an answer failed")

    def _failed(self, error: BaseException) -> None:
        self.has_failed = True
        log.critical("cannot write to the log, no further request is answered: %s", error)
        self._on_failure(error)


Values = Mapping[str, Any]
"""A response body, as `kgctl.serde.messages.encode_response` takes it."""

Answer = Values | Awaitable[Values | None] | None
"""At once, later, or never (a produce request with acks=0)."""

EVENT_ID = 0
"""The request id of events, whose answer nobody waits for."""

RETRY_MS = 1_000
"""How long nothing is expired after a failure that the core did not keep to its group."""


_HEARTBEATS = (HeartbeatResult, ConsumerGroupHeartbeatResult)


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


class Activity:
    """When groups were made and were last asked for something, and when members joined, as far as this server has seen it."""

    _ROOM = 1_000

    def __init__(self) -> None:
        self.created_ms: dict[str, int] = {}
        self.last_ms: dict[str, int] = {}
        self.joined_ms: dict[tuple[str, str], int] = {}
        self._prune_at = self._ROOM

    def asked(self, group_id: str, now_ms: int, *, is_new: bool) -> None:
        """A request was about this group, which it may have made."""
        self.last_ms[group_id] = now_ms
        if is_new:
            self.created_ms[group_id] = now_ms

    def joined(self, request: JoinGroup | ConsumerGroupHeartbeat, result: Result, now_ms: int) -> None:
        """An answer to a request to join, which came at ``now_ms``. Who joins a rebalance of its group has joined before."""
        group_id = request.group_id or ""
        if isinstance(result, ConsumerGroupHeartbeatResult) and result.error is ErrorCode.NONE and result.member_id:
            self.joined_ms[group_id, result.member_id] = now_ms
        elif isinstance(result, JoinGroupResult) and result.error is ErrorCode.NONE:
            self.joined_ms.setdefault((group_id, result.member_id), now_ms)

    def forget_gone(self, groups: Mapping[str, Any]) -> None:
        """Keep no more than twice as much as there is."""
        if len(self.last_ms) + len(self.joined_ms) < self._prune_at:
            return
        self.last_ms = {group_id: at_ms for group_id, at_ms in self.last_ms.items() if group_id in groups}
        self.created_ms = {group_id: at_ms for group_id, at_ms in self.created_ms.items() if group_id in groups}
        self.joined_ms = {
            (group_id, member_id): at_ms
            for (group_id, member_id), at_ms in self.joined_ms.items()
            if group_id in groups and member_id in getattr(groups[group_id], "members", ())
        }
        self._prune_at = 2 * (len(self.last_ms) + len(self.joined_ms)) + self._ROOM


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
        self.activity = Activity()
        self._ids = itertools.count(EVENT_ID + 1)
        self._waiting: dict[int, asyncio.Future[Result]] = {}
        self._answered: dict[int, Result] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms: int | None = None
        self._is_stopped = False
        self._not_before_ms = 0

    def next_request_id(self) -> int:
        return next(self._ids)

    def ask(self, request: Request, render: Callable[[Result], Values]) -> Answer:
        """Hand a request to the core: its rendered result, or an awaitable of it."""
        result = self.result(request)
        return _rendered(result, render) if isinstance(result, asyncio.Future) else render(result)

    def result(self, request: Request) -> Result | asyncio.Future[Result]:
        """Hand a request to the core: its result, or a future of it."""
        now_ms, group_id, groups = self.clock(), getattr(request, "group_id", None), self.core.shard.groups
        is_new = group_id not in groups
        try:
            effects = self.core.handle(request, now_ms)
        except Exception as error:  # noqa: BLE001 - a bug in one group must not reach the connections of others
            _log_failure(f"a {type(request).__name__}", error)
            self._watch_time()
            return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        if group_id is not None and group_id in groups:
            self.activity.asked(group_id, now_ms, is_new=is_new)
        self._run(effects)
        result = self._answered.pop(request.request_id, None)
        if result is not None:
            self._note_join(request, result, now_ms)
            return result
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if isinstance(request, (JoinGroup, ConsumerGroupHeartbeat)):
            future.add_done_callback(partial(self._joined_later, request, now_ms))
        self._waiting[request.request_id] = future
        return future

    def _joined_later(self, request: Request, now_ms: int, done: asyncio.Future[Result]) -> None:
        if not done.cancelled():
            self._note_join(request, done.result(), now_ms)

    def _note_join(self, request: Request, result: Result, now_ms: int) -> None:
        is_join = isinstance(request, JoinGroup) or (isinstance(request, ConsumerGroupHeartbeat) and request.member_epoch == 0)
        if is_join and isinstance(request, (JoinGroup, ConsumerGroupHeartbeat)):
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
                        self._deliver(effect)
                    else:
                        self.writer.after_writes(partial(self._deliver, effect))
                case AppendRecord():
                    has_appended = True
                    self.writer.append(effect)
                case ResolveRegexes():
                    asyncio.get_running_loop().call_soon(self._resolve, effect)
                case GroupFailed():
                    log.error("group %s: a timer failed, the group goes on: %s", effect.group_id, effect.error)
        self._watch_time()

    def _deliver(self, reply: Reply) -> None:
        future = self._waiting.pop(reply.request_id, None)
        if future is None:
            if reply.request_id != EVENT_ID:
                self._answered[reply.request_id] = reply.result
        elif not future.done():
            future.set_result(reply.result)

    def _watch_time(self) -> None:
        deadline_ms = self.core.next_deadline_ms()
        if deadline_ms == self._timer_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = None
        if deadline_ms is not None and not self._is_stopped and not self.writer.has_failed:
            delay_ms = max(0, max(deadline_ms, self._not_before_ms) - self.clock())
            self._timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.fire_due()

    def _resolve(self, effect: ResolveRegexes) -> None:
        self.tell(resolve_regexes(effect, self.topic_names(), EVENT_ID))


def _log_failure(what: str, error: Exception) -> None:
    """One line with the group, and the traceback for who mends it: nothing of this is a client's fault."""
    group = getattr(error, "group", None)
    log.error("%s%s failed: %s", what, f" of group {group}" if group else "", error, exc_info=error)


async def _rendered(future: asyncio.Future[Result], render: Callable[[Result], Values]) -> Values:
    return render(await future)
