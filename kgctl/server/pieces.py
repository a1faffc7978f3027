"""Long work in pieces: what grows with a request or with the state lets others have the event loop in between.

A handler whose work grows is a generator. Each bare ``yield`` says that a unit is done, some microseconds of work: an entry
of the answer, a partition that was looked at. ``value = yield awaitable`` waits. Its return value is the answer. After
`UNITS_A_PIECE` units the loop looks at its sockets and timers before the next piece; what fits one piece is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from inspect import isawaitable
from typing import Any, Generic, TypeVar, cast

from kgctl.server.traffic import UNDER_WAY, LoopWatch

UNITS_A_PIECE = 200
HEAVY_UNITS = 20_000
"""Work beyond this goes on alone: others of its kind wait for it, so that their memory is not needed at the same time."""
MAX_UNITS = 1_000_000
"""The entries that an answer may have, and the steps that it may take."""

T = TypeVar("T")

Work = Generator[Awaitable[Any] | None, Any, T]


class TooMuchWorkError(Exception):
    """One request asks for more than `MAX_UNITS`."""


class _Run(Generic[T]):
    """One work under way."""

    def __init__(self, work: Work[T]) -> None:
        self.work = work
        self.units = 0
        self.waits_for: Awaitable[Any] | None = None
        self.has_ended = False
        self._result: T | None = None

    @property
    def result(self) -> T:
        """What the work returned, once it has ended."""
        return cast("T", self._result)

    def piece(self, go_on: Callable[[], Awaitable[Any] | None] | None = None) -> None:
        """Some units, up to the next one that waits; the first step may be another than the next one."""
        go_on = go_on or partial(next, self.work)
        try:
            for _ in range(UNITS_A_PIECE):
                self.waits_for = go_on()
                self.units += 1
                if self.waits_for is not None:
                    return
                go_on = partial(next, self.work)
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
                self._watch.resume(UNDER_WAY.get())
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
