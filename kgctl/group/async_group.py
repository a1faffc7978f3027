"""`kgctl.AsyncConsumerGroup`: the live member for coroutines, driven by their own event loop."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from kgctl.arguments import checked
from kgctl.errors import ClosedError, MisuseError
from kgctl.group.async_driver import AsyncDriver
from kgctl.group.commits import AsyncCommits
from kgctl.group.consumer_group import CLOSE_TIMEOUT_S, _Group
from kgctl.group.generation import Generation
from kgctl.group.generations import Generations, Ready
from kgctl.member.api import MemberIdentity
from kgctl.member.config import MemberConfig
from kgctl.wire.settings import WireSettings


class AsyncConsumerGroup(_Group):
    """`kgctl.ConsumerGroup` for coroutines: the same arguments, guarantees and errors, in the event loop of the caller.

    It starts no thread, unless for a token of OAUTHBEARER: the loop must go on to turn, as heartbeats are sent by it. Made
    inside a coroutine; use ``async with``, and ``async for generation in group`` or `next`. Commits are ``await
    generation.commit_async(...)``. A call that is cancelled leaves nothing behind: the next one takes up where it was.

    Raises, when it is made:
        UsageError: settings that cannot be.
        MisuseError: no event loop runs here.
    """

    _driver: AsyncDriver
    _ready: asyncio.Queue[Ready]

    def _begin(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise MisuseError("an AsyncConsumerGroup is made inside a coroutine: its event loop drives it") from None
        timeout_ms, self._ready = config.request_timeout_ms, asyncio.Queue()
        driver = self._driver = AsyncDriver(config, identity, settings, timeout_ms)
        commits, is_classic = AsyncCommits(driver, settings, timeout_ms), config.group_protocol == "classic"
        self._generations = Generations(driver, commits, _Putting(self._ready), self._fetcher, is_classic=is_classic)
        driver.start(self._generations)

    @checked()
    async def next(self, *, timeout_ms: int | None = None) -> Generation:
        """Wait for the next generation; as `ConsumerGroup.next`, with the same errors."""
        self._check_is_outside("next()")
        self._release()
        until_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while (found := self._chosen(await self._take(timeout_ms, until_s))) is None:
            pass
        return found

    async def __aiter__(self) -> AsyncIterator[Generation]:
        """Each generation until the group is closed. The body counts as a function of the generation."""
        while True:
            try:
                generation = await self.next()
            except ClosedError:
                return
            yield self._begun(generation)

    async def close(self) -> None:
        """End the generation, wait for its functions, leave the group (a static member stays), give connections back.

        Safe to call twice. Cancelled, it goes on in the loop.

        Raises:
            MisuseError: called by a function of the generation, for which it waits.
            TimedOutError: they, or the broker, let it wait for more than 35 s.
        """
        self._close_once()
        if not await self._driver.join(CLOSE_TIMEOUT_S):
            raise self._not_closed()
        if self._fetcher.is_open:
            await asyncio.to_thread(self._fetcher.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        await self.close()
        if kind is None:
            self._raise_unheard()

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            warnings.warn(
                f"unclosed {self!r}: it leaves its group now; use `async with`, or close()",
                ResourceWarning,
                stacklevel=1,
                source=self,
            )
            with suppress(RuntimeError):  # the loop is closed
                self._driver.close()

    async def _take(self, timeout_ms: int | None, until_s: float | None) -> Ready:
        try:
            async with asyncio.timeout(None if until_s is None else max(0.0, until_s - time.monotonic())):
                return await self._ready.get()
        except TimeoutError:
            raise self._none_in_time(timeout_ms) from None


class _Putting:
    """A queue of the loop, as `Generations` fills it."""

    def __init__(self, ready: asyncio.Queue[Ready]) -> None:
        self._ready = ready

    def put(self, ready: Ready, /) -> None:
        self._ready.put_nowait(ready)
