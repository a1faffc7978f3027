"""One client's connection: frames in, answers out, one request at a time, as Kafka's own network layer has it.

The next request is looked at when the one before it is answered (Kafka mutes the channel), so answers leave in the order of the
requests, and a client that only sends cannot fill the memory: reading stops while a request waits and more are there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from kgctl.serde.frames import FrameReader, MalformedMessage, frame
from kgctl.server.dispatch import Dispatcher, Refused
from kgctl.server.request_context import ClientSession

log = logging.getLogger(__name__)

MAX_WAITING_FRAMES = 64


class ClientConnection(asyncio.Protocol):
    """Created by the listener for each connection."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        max_frame_bytes: int,
        session: ClientSession,
        on_close: Callable[[ClientConnection], None],
        node_id: int,
    ) -> None:
        self.node_id = node_id
        self._dispatcher = dispatcher
        self._reader = FrameReader(max_frame_bytes)
        self._session = session
        self._on_close = on_close
        self._transport: asyncio.Transport | None = None
        self._frames: deque[bytes] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_full = False
        self._peer = "?"
        self.last_active_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._peer = f"{peer[0]}:{peer[1]}" if peer else "?"
        self._session.client_host = f"/{peer[0]}" if peer else "/?"
        self.last_active_s = asyncio.get_running_loop().time()
        log.debug("%s connected", self._peer)

    def connection_lost(self, exc: Exception | None) -> None:
        log.debug("%s disconnected%s", self._peer, f": {exc}" if exc else "")
        self._transport = None
        self._frames.clear()
        if self._task is not None:
            self._task.cancel()
        self._on_close(self)

    def data_received(self, data: bytes) -> None:
        self.last_active_s = asyncio.get_running_loop().time()
        try:
            self._frames.extend(self._reader.receive(data))
        except MalformedMessage as error:
            self.close(str(error))
            return
        self._work()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._work()

    def close(self, reason: str) -> None:
        if self._transport is not None:
            log.warning("closing the connection of %s: %s", self._peer, reason)
        self.end()

    def end(self) -> None:
        """End the connection when what is written has left."""
        self._frames.clear()
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def is_idle(self) -> bool:
        return self._task is None

    def _work(self) -> None:
        """Answer what has come, until one answer has to wait or the client does not take them."""
        while self._frames and self._task is None and not self._is_full and self._transport is not None:
            self._serve(self._frames.popleft())
        if self._transport is not None:
            if len(self._frames) > MAX_WAITING_FRAMES:
                self._transport.pause_reading()
            elif not self._transport.is_reading():
                self._transport.resume_reading()

    def _serve(self, payload: bytes) -> None:
        try:
            response = self._dispatcher.answer(payload, self._session)
        except (Refused, MalformedMessage) as error:
            self.close(str(error))
        except Exception:
            log.exception("a request of %s failed", self._peer)
            self.close("an error of the server's own")
        else:
            self._respond(response)

    def _respond(self, response: bytes | Awaitable[bytes | None] | None) -> None:
        if isinstance(response, Awaitable):
            self._task = asyncio.ensure_future(self._respond_later(response))
        elif response is not None and self._transport is not None:
            self._transport.write(frame(response))

    async def _respond_later(self, awaitable: Awaitable[bytes | None]) -> None:
        try:
            response = await awaitable
        except asyncio.CancelledError:
            return
        except Refused as error:
            self.close(str(error))
            response = None
        except Exception:
            log.exception("a request of %s failed", self._peer)
            self.close("an error of the server's own")
            response = None
        self._task = None
        self._respond(response)
        self._work()
