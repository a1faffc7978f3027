"""What stands between a test's clients and the brokers: requests that wait, answers that come late, connections that are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field

from kgctl.serde.messages import RequestHeader, decode_header
from kgctl.server.cluster import Broker
from kgctl.server.dispatch import Dispatcher, Refused
from kgctl.server.operator import OPERATOR_PREFIX, Described
from kgctl.server.request_context import ClientSession, Services
from kgctl.server.responses import Response


@dataclass(eq=False)
class Fault:
    """One fault, inside its ``with`` block. ``hits``: how many requests it has met so far; one that met none tested nothing.

    ``broker`` (its node id), ``client_id``, ``requests`` (keys of APIs): whose; None for all. ``delay_ms``: how long requests
    wait, None until the block ends. ``is_cut``: the connection ends instead of an answer; ``is_done_first``: when the request
    was done.
    """

    broker: int | None
    client_id: str | None
    requests: frozenset[int] | None
    delay_ms: int | None = 0
    is_cut: bool = False
    is_done_first: bool = False
    hits: int = 0
    _over: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def _meets(self, node_id: int, header: RequestHeader) -> bool:
        """Whether this request is one of those that it concerns."""
        return (
            self.broker in (None, node_id)
            and self.client_id in (None, header.client_id)
            and (self.requests is None or header.api_key in self.requests)
        )

    async def _wait(self) -> None:
        """Hold up what it has met: for its delay, at most until it is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), None if self.delay_ms is None else self.delay_ms / 1000)

    def _end(self) -> None:
        """What waits goes on."""
        self._over.set()


class Faults:
    """All faults of a cluster, for its event loop alone."""

    def __init__(self, own_client_id: str, own_user: str) -> None:
        """Requests with this client id are the cluster's own, and come from this user."""
        self.own_client_id, self.own_user = own_client_id, own_user
        self._current: list[Fault] = []

    def begin(self, fault: Fault) -> None:
        """From now on it holds."""
        self._current.append(fault)

    def end(self, fault: Fault) -> None:
        """It holds no longer."""
        self._current.remove(fault)
        fault._end()

    def dispatcher(self, services: Services, broker: Broker, describe: Described) -> Dispatcher:
        """Answers the requests to one broker through the faults."""
        return _FaultyDispatcher(self, services, broker, describe)

    def of(self, node_id: int, header: RequestHeader) -> list[Fault]:
        """Those that this request meets."""
        return [fault for fault in self._current if fault._meets(node_id, header)]


class _FaultyDispatcher(Dispatcher):
    def __init__(self, faults: Faults, services: Services, broker: Broker, describe: Described) -> None:
        super().__init__(services, broker, describe)
        self._faults = faults
        self._node_id = broker.node_id

    def answer(self, payload: bytes, session: ClientSession) -> Response:
        if not session.is_authenticated or payload.startswith(OPERATOR_PREFIX):
            return super().answer(payload, session)
        header, _ = decode_header(payload)
        if header.client_id == self._faults.own_client_id:
            session.user = self._faults.own_user
        met = self._faults.of(self._node_id, header)
        if met:
            return self._answer_late(payload, session, met)
        response = super().answer(payload, session)
        session.repeated = None  # a heartbeat that is looked up would not come by here
        return self._held(response, header) if isinstance(response, Awaitable) else response

    async def _answer_late(self, payload: bytes, session: ClientSession, met: list[Fault]) -> bytes | None:
        for fault in met:
            fault.hits += 1
            await fault._wait()
            if fault.is_cut and not fault.is_done_first:
                raise Refused("cut by the test")
        response = super().answer(payload, session)
        session.repeated = None
        found = await response if isinstance(response, Awaitable) else response
        if any(fault.is_cut for fault in met):
            raise Refused("cut by the test, when the request was done")
        return found

    async def _held(self, response: Awaitable[bytes | None], header: RequestHeader) -> bytes | None:
        """An answer that was waited for does not leave a broker that is frozen meanwhile."""
        found = await response
        for fault in self._faults.of(self._node_id, header):
            if fault.delay_ms is None:
                fault.hits += 1
                await fault._wait()
        return found
