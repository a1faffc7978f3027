"""Who may send how much, whose turn it is, who held the event loop, and how long work is cut into pieces.

One client must not harm another: what connections have sent and nobody has answered yet is bounded (`ByteBudget`), heartbeats
are answered before the work that queues (`Turns`), and whoever held the loop for longer than `HELD_TOO_LONG_S` is named
(`LoopWatch`).

A handler whose work grows with a request or with the state is a generator. Each bare ``yield`` says that a unit is done, some
microseconds of work: an entry of the answer, a partition that was looked at. ``value = yield awaitable`` waits. Its return value
is the answer. After `UNITS_A_PIECE` units the loop looks at its sockets and timers before the next piece; what fits one piece is
answered at once (`Pieces`).
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable
from time import monotonic, thread_time
from typing import Any, Generic, Protocol, TypeVar, cast

from kgctl.model.values import frozen_in_order

HELD_TOO_LONG_S = 0.05
NOTABLE_S = 0.005
"""A turn of the loop below this is not looked at."""
_OWN_TIME_HOLDS_S = 0.001
STALL_S = 1.0
_BUDGET_OF_A_TURN_S = 0.005
_DELAY_INTERVAL_S = 0.5
_MARKS = 20
_FAREWELL_S = 1.0
_RECEIVE_BYTES = 256 * 1024

log = logging.getLogger(__name__)

T = TypeVar("T")


class ServedConnection(Protocol):
    """As much of a connection as its server looks at."""

    node_id: int
    last_active_s: float

    def is_idle(self) -> bool: ...
    def is_stalled(self, now_s: float) -> bool: ...
    def close(self, reason: str) -> None: ...
    def end(self) -> None: ...
    def abort(self) -> None: ...


class ByteBudget:
    """Bytes of large requests in flight, over all connections (Kafka: ``queued.max.request.bytes``).

    A request is let in whole, so that no two of them wait for each other's room; whoever finds none waits in line.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def take(self, size: int, when_there: Callable[[], None]) -> bool:
        """Take room for a request; False: ``when_there`` is called when it was taken. What is above the limit goes alone."""
        if not self._waiting and self._fits(size):
            self.used += size
            return True
        self._waiting.append((size, when_there))
        return False

    def give_back(self, size: int) -> None:
        """A request is answered, or its connection is gone."""
        self.used -= size
        while self._waiting and self._fits(self._waiting[0][0]):
            size, when_there = self._waiting.popleft()
            self.used += size
            when_there()

    def forget(self, when_there: Callable[[], None]) -> None:
        """Drop the waiting entry of a connection that is gone."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != when_there)
        self.give_back(0)

    def _fits(self, size: int) -> bool:
        return self.used == 0 or self.used + size <= self.limit


class Turns:
    """Work that may wait a moment, in order: a few milliseconds of it, then the sockets are looked at again.

    So a heartbeat that arrives behind hundreds of commits waits for one of them, not for all.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: Callable[[], None]) -> None:
        """Queue the work, to be done when it is its turn."""
        self._waiting.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_scheduled = False
        end_s = monotonic() + _BUDGET_OF_A_TURN_S
        while self._waiting:
            self._waiting.popleft()()
            if monotonic() > end_s:
                break
        if self._waiting:
            self._schedule()


@frozen_in_order
class Held:
    """A request that is being answered."""

    api_key: int
    size: int
    peer: str

    def __str__(self) -> str:
        return f"a request of {self.size} bytes of API {self.api_key} from {self.peer}"


UNDER_WAY: ContextVar[Held | None] = ContextVar("UNDER_WAY", default=None)
"""The request that a task answers."""


class LoopWatch:
    """Counts requests and looks at the clock around each turn of the loop; a thread looks whether one never ends.

    `LoopTurns`, where the loop has it as its selector, tells how long each turn held the loop; without it only what is between
    `begin` and `end` is seen.
    """

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()
        self.started_s = monotonic()
        self.longest_s = 0.0
        self.longest = ""
        self.held_too_long = 0
        self.delay_s = 0.0
        """How late the loop was with what was due, at the last look."""
        self.longest_delay_s = 0.0
        self._current: Held | None = None
        self._since_s = 0.0
        self._latest: Held | None = None
        self._turns: LoopTurns | None = None
        self._marks: deque[tuple[float, int]] = deque([(self.started_s, 0)], maxlen=_MARKS)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kgctl-watchdog", daemon=True)
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self, turns: LoopTurns | None = None) -> None:
        """Watch the running loop until `stop`."""
        if turns is not None:
            turns.on_turn = self._turn_ended
        self._turns = turns
        self._thread.start()
        self._look()

    def stop(self) -> None:
        """Safe to call twice."""
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()

    def begin(self, what: Held, now_s: float) -> None:
        """Note that this request holds the loop from now on."""
        self._since_s = now_s
        self._current = self._latest = what

    def pause(self) -> None:
        """The request under way lets others have the loop."""
        self._current = None

    def end(self, what: Held) -> None:
        """The loop is free again, or the request waits for something."""
        self._current = None
        self.requests[what.api_key] += 1
        if self._turns is None:
            self._tell(monotonic() - self._since_s, str(what))

    def rate(self) -> float:
        """Return the requests a second of the last while."""
        (begin_s, before), (end_s, after) = self._marks[0], (monotonic(), sum(self.requests.values()))
        return (after - before) / max(end_s - begin_s, 0.001)

    def _turn_ended(self, time_s: float) -> None:
        latest, self._latest = self._latest, None
        self._tell(time_s, "work of the server's own" if latest is None else str(latest))

    def _tell(self, time_s: float, what: str) -> None:
        if time_s > self.longest_s:
            self.longest_s, self.longest = time_s, what
        if time_s > HELD_TOO_LONG_S:
            self.held_too_long += 1
            log.warning("%s held the server for %d ms", what, round(time_s * 1000))

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._marks.append((monotonic(), sum(self.requests.values())))
        if self._timer is not None:
            self.delay_s = max(0.0, loop.time() - self._due_s)
            self.longest_delay_s = max(self.longest_delay_s, self.delay_s)
        self._due_s = loop.time() + _DELAY_INTERVAL_S
        self._timer = loop.call_at(self._due_s, self._look)

    def _watch(self) -> None:
        told_s = 0.0
        while not self._ended.wait(STALL_S):
            current, since_s = self._current, self._since_s  # in this order: `begin` sets the time first
            time_s = monotonic() - since_s
            if current is not None and since_s != told_s and time_s > STALL_S:
                told_s = since_s
                log.error("%s holds the server since %.1f s: nobody is answered meanwhile", current, time_s)


class LoopTurns(selectors.DefaultSelector):
    """The selector of an event loop. It is asked once a turn: what lies between two calls is how long a turn held the loop.

    A turn is told when it took longer than `NOTABLE_S`, by the processor's time of the loop's own thread: what another program
    or another thread took is no fault of a request. That time is a call of the system's, so that short turns share one reading.
    """

    def __init__(self) -> None:
        super().__init__()
        self.on_turn: Callable[[float], None] | None = None
        self._begin_s = self._own_at_s = monotonic()
        self._own_s = thread_time()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Select as the wrapped selector does, and take the times of a turn."""
        time_s = monotonic() - self._begin_s
        if self.on_turn is not None and time_s > NOTABLE_S:
            self.on_turn(min(time_s, thread_time() - self._own_s))
        ready = super().select(timeout)
        self._begin_s = monotonic()
        if self._begin_s - self._own_at_s > _OWN_TIME_HOLDS_S:
            self._own_at_s, self._own_s = self._begin_s, thread_time()
        return ready


def run_in_loop(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in a loop whose turns `LoopWatch` can see."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(LoopTurns())) as runner:
        return runner.run(main)


def turns_of_running_loop() -> LoopTurns | None:
    """The selector of the running loop, if `run_in_loop` made it."""
    selector = getattr(asyncio.get_running_loop(), "_selector", None)
    return selector if isinstance(selector, LoopTurns) else None


class Host:
    """What the connections of a server share."""

    def __init__(self, *, max_frame_bytes: int, max_bytes: int, max_connections: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.budget = ByteBudget(max_bytes)
        self.turns = Turns()
        self.watch = LoopWatch()
        self.connections: set[ServedConnection] = set()
        self.refused = 0
        self.is_closing = False
        self.receive_buffer = memoryview(bytearray(_RECEIVE_BYTES))
        """What arrives is read into this; whoever reads takes a copy before the loop goes on."""
        self._max_connections = max_connections
        self._all_left = asyncio.Event()

    def admit(self, connection: ServedConnection) -> bool:
        """Take a new connection in, unless there are ``max.connections`` already."""
        if len(self.connections) < self._max_connections:
            self.connections.add(connection)
            return True
        self.refused += 1
        if self.refused & (self.refused - 1) == 0:  # 1, 2, 4, 8, ...: a flood does not fill the log
            log.warning("%d connections refused so far: there are %d (max.connections)", self.refused, self._max_connections)
        return False

    def left(self, connection: ServedConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.discard(connection)
        if self.is_closing and not self.connections:
            self._all_left.set()

    async def end_all(self) -> None:
        """End every connection: when what is written has left, or at once where the client does not take it."""
        for connection in list(self.connections):
            connection.end()
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_left.wait(), _FAREWELL_S)
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


UNITS_A_PIECE = 200
HEAVY_UNITS = 20_000
"""Work beyond this goes on alone: others of its kind wait for it, so that their memory is not needed at the same time."""
MAX_UNITS = 1_000_000
"""The entries that an answer may have, and the steps that it may take."""


Work = Generator[Awaitable[Any] | None, Any, T]


class TooMuchWorkError(Exception):
    """Raised where one request asks for more than `MAX_UNITS`."""


class _Run(Generic[T]):
    """A piece of long work that is under way."""

    def __init__(self, work: Work[T]) -> None:
        self.work = work
        self.units = 0
        self.waits_for: Awaitable[Any] | None = None
        self.has_ended = False
        self._result: T | None = None

    @property
    def result(self) -> T:
        """Return the work's result, once it has ended."""
        return cast("T", self._result)

    def piece(self, go_on: Callable[[], Awaitable[Any] | None] | None = None) -> None:
        """Some units, up to the next one that waits; the first step may be another than the next one."""
        step = self.work.__next__
        go_on = go_on or step
        try:
            for _ in range(UNITS_A_PIECE):
                self.waits_for = go_on()
                self.units += 1
                if self.waits_for is not None:
                    return
                go_on = step
        except StopIteration as end:
            self.has_ended, self._result = True, end.value

    async def after_others(self) -> Callable[[], Awaitable[Any] | None]:
        """Wait, for what the work waits for or for the loop's other work; the next step."""
        if self.waits_for is None:
            await asyncio.sleep(0)
            return partial(next, self.work)
        try:
            return partial(self.work.send, await self.waits_for)
        except Exception as error:  # noqa: BLE001 - the work's own affair
            return partial(self.work.throw, error)


class Pieces:
    """Drives the long work of one server."""

    def __init__(self, watch: LoopWatch) -> None:
        self._watch = watch
        self._heavy = asyncio.Lock()

    def begin(self, work: Work[T]) -> T | Awaitable[T]:
        """Do the first piece; the result, or an awaitable of it where there is more to do. Raises what the work raises."""
        run = _Run(work)
        run.piece()
        return run.result if run.has_ended else self._go_on(run)

    async def _go_on(self, run: _Run[T]) -> T:
        is_alone = False
        try:
            while not run.has_ended:
                if run.units >= MAX_UNITS:
                    raise TooMuchWorkError(f"more than {MAX_UNITS} entries to answer")
                if run.units >= HEAVY_UNITS and not is_alone:
                    is_alone = await self._heavy.acquire()
                go_on = await run.after_others()
                if (held := UNDER_WAY.get()) is not None:
                    self._watch.begin(held, monotonic())
                try:
                    run.piece(go_on)
                finally:
                    self._watch.pause()
        finally:
            if is_alone:
                self._heavy.release()
            run.work.close()
        return run.result


def waited(value: Any) -> Generator[Awaitable[Any], Any, Any]:
    """``yield from waited(x)``: x, or what it becomes where it is an awaitable."""
    return (yield value) if isawaitable(value) else value


def finish(work: Work[T]) -> T:
    """The result of work that waits for nothing, done in one go: in a thread of its own."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        return cast("T", end.value)


def is_long(topics: Iterable[Any]) -> bool:
    """Whether a request names so many topics and partitions that it is more than one piece."""
    left = UNITS_A_PIECE
    for topic in topics:
        left -= 1 + len(topic.partitions)
        if left < 0:
            return True
    return False


def all_of(works: Iterable[Work[T]]) -> Work[list[T]]:
    """``yield from all_of(works)``: their results, one after the other."""
    results = []
    for work in works:
        results.append((yield from work))  # noqa: PERF401 - nothing yields inside a comprehension
    return results


def each(entries: Iterable[T], make: Callable[[T], Any]) -> Work[list[Any]]:
    """``yield from each(entries, make)``: a unit for each entry."""
    made = []
    for entry in entries:
        made.append(make(entry))
        yield None
    return made
