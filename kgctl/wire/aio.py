"""A connection, and what any broker of a cluster knows, for coroutines: no thread but the one of the event loop.

A cancelled call closes its connection: an answer that is still on its way would be taken for the next one. Two things are done in
a thread: asyncio asks the system's resolver there, and a token of OAUTHBEARER is had there.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from kgctl.errors import TimedOutError, UnreachableError
from kgctl.serde.frames import frame
from kgctl.wire import Deadline
from kgctl.wire.cluster import FIRST_PATIENCE_S, no_bootstrap_server, told_last
from kgctl.wire.connection import Api, Peer, Request, given_up, greeting, tls_context_of, tls_failure
from kgctl.wire.settings import Address, WireSettings
from kgctl.wire.tokens import waited_for

R = TypeVar("R")
_CHUNK = 262_144
_FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}


class AsyncConnection(Peer):
    """One request at a time, in the order in which they are asked for. After any error it is closed and of no more use."""

    def __init__(
        self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], address: Address, settings: WireSettings
    ) -> None:
        super().__init__(address, settings)
        self._from, self._to = streams
        self._turn = asyncio.Lock()

    @property
    def is_usable(self) -> bool:
        """Whether it can still be asked, as far as can be told."""
        return self._may_be_asked and (self._is_fresh or not self._from.at_eof())

    async def call(self, api: Api, values: Mapping[str, Any], deadline: Deadline, *, version: int | None = None) -> Any:
        """As `kgctl.wire.connection.Connection.call`."""
        request = Request(api, self.version(api) if version is None else version, values)
        async with self._turn:
            try:
                payload = await self._exchanged(request, deadline)
                return self._body(request, self._correlation_id, payload)
            except BaseException:
                self.close()
                raise

    async def greet(self, settings: WireSettings, deadline: Deadline) -> None:
        """Learn the versions, and log in. A token is had in a thread: whoever gives it may take their time."""
        steps = greeting(self, settings, deadline)
        in_thread = settings.sasl is not None and settings.sasl.token is not None
        go_on: Callable[[], Request] = partial(next, steps)
        while (request := await asyncio.to_thread(waited_for(_step), go_on) if in_thread else _step(go_on)) is not None:
            try:
                go_on = partial(steps.send, await self._exchanged(request, deadline))
            except UnreachableError as error:
                go_on = partial(steps.throw, error)

    def close(self) -> None:
        """Close the connection. Safe to call twice; whoever waits for an answer waits no longer."""
        self.is_closed = True
        self._to.close()
        if not self._from.at_eof():
            self._from.feed_eof()

    async def _exchanged(self, request: Request, deadline: Deadline) -> bytes:
        try:
            async with asyncio.timeout(deadline.seconds_left(self._name)):
                if self.is_closed:
                    raise self._lost(request.api, None)
                self._to.write(frame(self._payload(request)))
                await self._to.drain()
                while not self._frames:
                    data = await self._from.read(_CHUNK)
                    if not data:
                        raise self._lost(request.api, None)
                    self._frames = self._cut(data)
        except TimeoutError:
            raise deadline.timed_out(self._name) from None
        except OSError as error:
            raise self._lost(request.api, error) from None
        self._last_used_s = time.monotonic()
        return self._frames.pop(0)


def _step(go_on: Callable[[], Request]) -> Request | None:
    """What is to be sent next; None at the end."""
    try:
        return go_on()
    except StopIteration:
        return None


async def open_async(address: Address, settings: WireSettings, deadline: Deadline) -> AsyncConnection:
    """As `kgctl.wire.connection.open_connection`."""
    context = tls_context_of(settings)
    try:
        async with asyncio.timeout(deadline.seconds_left(str(address))):
            family = _FAMILIES.get(settings.address_family, socket.AF_UNSPEC)
            name = None if context is None else address.host
            streams = await asyncio.open_connection(address.host, address.port, family=family, ssl=context, server_hostname=name)
    except TimeoutError:
        raise deadline.timed_out(str(address)) from None
    except socket.gaierror as error:
        lasting = UnreachableError(f"cannot resolve {address.host}: {error.strerror or error}")
        lasting.is_lasting = True
        raise lasting from None
    except ConnectionRefusedError as error:
        raise UnreachableError(f"cannot connect to {address}: {error.strerror}") from None
    except OSError as error:
        if context is not None:
            raise tls_failure(address, error) from None
        raise UnreachableError(f"cannot connect to {address}: {error.strerror or error}") from None
    connection = AsyncConnection(streams, address, settings)
    try:
        await connection.greet(settings, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


class AsyncCluster:
    """What `kgctl.wire.cluster.ClusterClient` asks any broker, for coroutines; one question at a time."""

    def __init__(self, settings: WireSettings) -> None:
        self.settings = settings
        self._connections: dict[Address, AsyncConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}
        self._known: dict[Address, None] = dict.fromkeys(settings.bootstrap)
        self._has_answered = False
        self._is_closed = False

    async def ask(self, task: Callable[[AsyncConnection], Awaitable[R]], deadline: Deadline) -> R:
        """As `kgctl.wire.cluster.ClusterClient.ask`."""
        waits, tries = self.settings.reconnect.waits_s(), 0
        first = deadline.within(FIRST_PATIENCE_S)
        last: UnreachableError | None = None
        while True:
            tries += 1
            try:
                answer = await task(await self._any_broker(deadline))
            except TimedOutError as error:
                raise last or error from None
            except UnreachableError as error:
                last = told_last(error, tries, has_answered=self._has_answered)
                until = deadline if self._has_answered else first
                if error.is_lasting or not (error.is_lost or self._has_answered) or until.is_over:
                    raise last from None
                await asyncio.sleep(min(next(waits), until.seconds_left()))
            else:
                self._has_answered = True
                return answer

    async def call(self, api: Api, values: Mapping[str, Any], deadline: Deadline) -> Any:
        """`ask` for the answer to one request, which changes nothing."""
        return await self.ask(lambda connection: connection.call(api, values, deadline), deadline)

    async def connection_to(self, address: Address, deadline: Deadline) -> AsyncConnection:
        """The connection to this broker, opened where there is none. Raises `UnreachableError`, also once all are closed."""
        async with self._opening.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is not None and known.is_usable:
                return known
            if known is not None:
                known.close()
            connection = await open_async(address, self.settings, deadline)
            if self._is_closed:  # while it was being opened: nobody would close it any more
                connection.close()
                raise given_up(address)
            self._connections[address] = connection
            return connection

    def learn(self, addresses: Mapping[Address, None]) -> None:
        """Remember brokers, for the time when the bootstrap servers are gone."""
        self._known |= addresses

    def close(self) -> None:
        """Close all connections for good, and those that are being opened. Safe to call twice."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _any_broker(self, deadline: Deadline) -> AsyncConnection:
        for connection in self._connections.values():
            if connection.is_usable:
                return connection
        failures: list[UnreachableError] = []
        for position, address in enumerate(list(self._known)):
            left = len(self._known) - position
            try:
                return await self.connection_to(address, deadline.part(1 / left))
            except UnreachableError as error:
                failures.append(error)
        raise no_bootstrap_server(failures)
