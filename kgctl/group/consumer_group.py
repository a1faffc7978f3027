"""`kgctl.ConsumerGroup`: a member of a group on a cluster, as a series of generations.

The shape is kafka-go's ConsumerGroup; the protocol is Apache Kafka's, by the same sans-IO member that ``kgctl simulate`` runs.
"""

from __future__ import annotations

import asyncio
import queue
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from kgctl.arguments import checked
from kgctl.errors import ClosedError, KgctlError, MisuseError, TimedOutError
from kgctl.group.commits import Commits
from kgctl.group.driver import Driver, MemberDriver
from kgctl.group.fetcher import Fetcher
from kgctl.group.generation import Generation
from kgctl.group.generations import Generations, Ready
from kgctl.group.settings import ASSIGNORS, fetch_properties, member_settings
from kgctl.member.api import MemberIdentity
from kgctl.member.config import MemberConfig
from kgctl.wire.settings import WireSettings

CLOSE_TIMEOUT_S = 35.0


class _Group(ABC):
    """What threads and coroutines have in common: the arguments, and what is known of the member."""

    _driver: MemberDriver
    _generations: Generations
    _ready: queue.SimpleQueue[Ready] | asyncio.Queue[Ready]

    @checked(not_empty=("bootstrap", "group_id", "topics", "pattern", "assignors", "server_assignor", "group_instance_id"))
    def __init__(
        self,
        bootstrap: str,
        group_id: str,
        topics: Sequence[str] = (),
        *,
        pattern: str | None = None,
        protocol: Literal["classic", "consumer"] = "classic",
        assignors: Sequence[str] = ASSIGNORS,
        server_assignor: str | None = None,
        group_instance_id: str | None = None,
        client_id: str = "kgctl",
        rack: str | None = None,
        session_timeout_ms: int | None = None,
        heartbeat_interval_ms: int | None = None,
        rebalance_timeout_ms: int = 60_000,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        partition_watch_interval_ms: int = 300_000,
        retry_backoff_ms: int = 100,
        timeout_ms: int = 30_000,
        properties: Mapping[str, str | Callable[[], str | Awaitable[str]]] | None = None,
    ) -> None:
        self.group_id = group_id
        self._is_closed = True  # as long as there is nothing to close
        self._held: Generation | None = None
        found = member_settings(locals())
        self._fetcher = Fetcher(fetch_properties(locals()))
        self._begin(*found)
        self._is_closed = False

    @abstractmethod
    def _begin(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings) -> None:
        """Make what drives the member, and let it join."""

    @property
    def member_id(self) -> str:
        """The id that the coordinator knows the member by; "" before there is one. It survives generations."""
        return self._driver.member.member_id

    @property
    def last_error(self) -> KgctlError | None:
        """What keeps the member from joining at present: no broker, no coordinator. It goes on trying.

        The logger ``kgctl.group`` warns of each once.
        """
        return self._driver.last_error

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"member {self.member_id!r}"
        return f"<{type(self).__name__} {self.group_id!r}: {state}>"

    def _check_is_outside(self, call: str) -> None:
        current = self._generations.current
        if current is not None and current._is_asked_inside():
            raise MisuseError(
                f"group '{self.group_id}': {call} waits until all functions of the generation have returned, "
                "and was called by one: return from the function, which ends the generation, and call it outside",
                group=self.group_id,
            )

    def _not_closed(self) -> TimedOutError:
        is_waiting = self._generations.current is not None
        running = "a function of the last generation still runs" if is_waiting else "the broker is silent"
        return TimedOutError(f"group '{self.group_id}' did not close within {CLOSE_TIMEOUT_S:g} s: {running}")

    def _none_in_time(self, timeout_ms: int | None) -> TimedOutError:
        why = f": {self.last_error.message}" if self.last_error is not None else ""
        message = f"group '{self.group_id}': no generation within {(timeout_ms or 0) / 1000:g} s{why}"
        return TimedOutError(message, group=self.group_id)

    def _chosen(self, ready: Ready) -> Generation | None:
        """The generation; None where it was overtaken before anybody asked. Raises what is there in its place."""
        if isinstance(ready, Generation):
            return None if ready.ended.is_set() else ready
        if self._driver.has_ended.is_set():
            self._ready.put_nowait(ready)  # for whoever asks again
        raise ready if ready is not None else self._closed()

    def _close_once(self) -> None:
        """Begin to leave; nothing where that has begun. Raises `MisuseError` inside of what it waits for."""
        self._check_is_outside("close()")
        if not self._is_closed:
            self._is_closed = True
            self._release()
            self._driver.close()

    def _begun(self, generation: Generation) -> Generation:
        """The body of a loop counts as a function of it."""
        generation._hold()
        self._held = generation
        return generation

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held._release()

    def _raise_unheard(self) -> None:
        """Of a group that has ended: raise what a function of a generation raised and no `next` was asked about."""
        left: list[Ready] = []
        while not self._ready.empty():
            left.append(self._ready.get_nowait())
        for ready in left[-1:]:  # how the group ended, for whoever asks
            self._ready.put_nowait(ready)
        for ready in left[:-1]:
            if isinstance(ready, BaseException):
                raise ready

    def _closed(self) -> ClosedError:
        return ClosedError(
            f"group '{self.group_id}' is closed: make a new {type(self).__name__} to join again", group=self.group_id
        )


class ConsumerGroup(_Group):
    """A live member: joins in the background, heartbeats, follows rebalances, leaves when closed.

    Iterate over it, or call `next`, to get each `Generation`; with ``async for`` or `next_async` in coroutines. The body of a
    ``for`` counts as a function of the generation: the group joins again only when the body has come back.

    ``topics`` or ``pattern`` (a regular expression for whole names). ``assignors`` in order of preference, for ``protocol``
    "classic"; "consumer" (KIP-848) takes ``server_assignor``, and session and heartbeats from the cluster. ``session_timeout_ms``
    is 45,000 and ``heartbeat_interval_ms`` 3,000 in the classic protocol.
    ``auto_offset_reset`` is where partitions begin that have no commit: "earliest", "latest" or "none" (an error).
    ``partition_watch_interval_ms``: how often topics are looked at for new partitions, 0 for never. ``properties`` have
    librdkafka's names (``security.protocol``, ``sasl.username``); ``sasl.oauthbearer.token`` may be a function, or a coroutine
    function, that makes a token for each login. Times are milliseconds.

    Raises:
        UsageError: settings that cannot be.
    """

    _driver: Driver
    _ready: queue.SimpleQueue[Ready]

    def _begin(self, config: MemberConfig, identity: MemberIdentity, settings: WireSettings) -> None:
        timeout_ms, self._ready = config.request_timeout_ms, queue.SimpleQueue()
        driver = self._driver = Driver(config, identity, settings, timeout_ms)
        is_classic = config.group_protocol == "classic"
        self._generations = Generations(
            driver, Commits(driver, settings, timeout_ms), self._ready, self._fetcher, is_classic=is_classic
        )
        driver.start(self._generations)

    # --- for applications

    @checked()
    def next(self, *, timeout_ms: int | None = None) -> Generation:
        """Wait for the next generation; never are there two at once.

        Raises:
            TimedOutError: none came in time; the message says what keeps the member from joining, where that is known.
            ClosedError: the group was closed.
            AuthError, BrokerError, KgctlError: the member failed for good (not authorised, fenced, no assignor in common).
            MisuseError: called by a function of the generation, which would wait for itself.
            Exception: what a function of the last generation raised.
        """
        self._check_is_outside("next()")
        self._release()
        until_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while (found := self._chosen(self._take(timeout_ms, until_s))) is None:
            pass
        return found

    def __iter__(self) -> Iterator[Generation]:
        """Each generation until the group is closed."""
        while True:
            try:
                generation = self.next()
            except ClosedError:
                return
            yield self._begun(generation)

    @checked()
    async def next_async(self, *, timeout_ms: int | None = None) -> Generation:
        """As `next`, for coroutines."""
        self._check_is_outside("next_async()")
        return await asyncio.to_thread(partial(self.next, timeout_ms=timeout_ms))

    async def __aiter__(self) -> AsyncIterator[Generation]:
        """Each generation until the group is closed."""
        while True:
            try:
                generation = await self.next_async()
            except ClosedError:
                return
            yield self._begun(generation)

    def close(self) -> None:
        """End the generation, wait for its functions, leave the group (a static member stays), give connections back.

        Safe to call twice, and from any thread but those of the generation's functions, which it waits for.

        Raises:
            MisuseError: called by one of those.
            TimedOutError: they, or the broker, let it wait for more than 35 s.
        """
        self._close_once()
        if not self._driver.join(CLOSE_TIMEOUT_S):
            raise self._not_closed()
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
        if kind is None:
            self._raise_unheard()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._check_is_outside("close()")
        await asyncio.to_thread(self.close)
        if kind is None:
            self._raise_unheard()

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and not self._is_closed:
            warnings.warn(
                f"unclosed {self!r}: it leaves its group now; use `with`, or close()", ResourceWarning, stacklevel=1, source=self
            )
            driver.close()

    # --- inside

    def _take(self, timeout_ms: int | None, until_s: float | None) -> Ready:
        try:
            return self._ready.get(timeout=None if until_s is None else max(0.0, until_s - time.monotonic()))
        except queue.Empty:
            raise self._none_in_time(timeout_ms) from None
