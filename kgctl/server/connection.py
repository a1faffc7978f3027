"""One client's connection: frames in, answers out, one request at a time, as Kafka's own network layer has it.

The next request is looked at when the one before it is answered (Kafka mutes the channel), so answers leave in the order of the
requests. What a client had sent before it left is still done, its last words being LeaveGroup most often; only the answers go
nowhere. Reading stops while more waits than `MAX_WAITING_BYTES`, and a large request is read only when there is room for it
among all connections: a client that only sends cannot fill the memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from functools import partial
from time import monotonic
from typing import Any, cast

from kgctl.model.requests import Result
from kgctl.serde.frames import FrameReader, MalformedMessage, frame
from kgctl.server.dispatch import Dispatcher, Refused
from kgctl.server.request_context import ClientSession
from kgctl.server.responses import Repeated, Response
from kgctl.server.runtime import Later
from kgctl.server.security import distinguished_name
from kgctl.server.traffic import UNDER_WAY, Held, Host, TooMuchWorkError

log = logging.getLogger(__name__)

MAX_WAITING_FRAMES = 64
MAX_WAITING_BYTES = 256 * 1024
"""Above this nothing more is read, and a single request takes room in the common budget before it is read."""
LENGTH_BYTES = 4
STALLED_S = 30.0
LINGER_S = 5.0
"""How long a request waits for something (others that join, new records) when its client is gone and another one is behind it."""
AFTER_A_WRONG_LOGIN_S = 0.1
"""Kafka: connection.failed.authentication.delay.ms. A client that finds the end behind the answer may miss the answer."""
WAITED_IN_VAIN = "a request of %s waited for something when the connection had ended"
_HEARTBEATS = (b"\x00\x0c", b"\x00\x44", b"\x00\x4c")
"""How the frames of Heartbeat, ConsumerGroupHeartbeat and ShareGroupHeartbeat begin."""


class ClientConnection(asyncio.BufferedProtocol):
    """One client's connection; its listener creates it.

    What arrives is read into memory that all connections of the loop share and is copied from there at once. `asyncio.Protocol`
    makes a new object of 256 KiB for each read, which takes the system longer than a heartbeat takes altogether.
    """

    __slots__ = (
        *("_closing", "_dispatcher", "_frames", "_has_turn", "_host", "_is_full", "_is_gone", "_is_in_line", "_limit", "_reader"),
        *("_repeated", "_room", "_session", "_task", "_transport", "_waiting_bytes", "last_active_s", "node_id", "__weakref__"),
    )

    def __init__(self, dispatcher: Dispatcher, host: Host, session: ClientSession, node_id: int) -> None:
        self.node_id = node_id
        self._dispatcher = dispatcher
        self._host = host
        self._reader = FrameReader(host.max_frame_bytes)
        self._session = session
        self._repeated: Repeated | None = None
        """What is looked up when it comes next: None while anything else is not answered yet."""
        self._transport: asyncio.Transport | None = None
        self._closing: asyncio.Transport | None = None
        self._frames: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._room = 0
        self._is_in_line = False
        self._has_turn = False
        self._task: asyncio.Future[Any] | None = None
        self._is_gone = False
        self._limit: asyncio.TimerHandle | None = None
        self._is_full = False
        self.last_active_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        if self._host.is_closing or not self._dispatcher.broker.is_up or not self._host.admit(self):
            transport.abort()
            return
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self._session.client_host, self._session.peer = f"/{peer[0]}", f"{peer[0]}:{peer[1]}"
        if certificate := transport.get_extra_info("peercert"):
            self._session.user = distinguished_name(certificate)
        self.last_active_s = monotonic()
        log.debug("%s connected", self._session.peer)

    def connection_lost(self, exc: Exception | None) -> None:
        log.debug("%s disconnected%s", self._session.peer, f": {exc}" if exc else "")
        self._transport = self._closing = None
        self._is_gone, self._is_full, self._repeated = True, False, None
        if self._session.share_connection is not None:
            self._session.share_connection.gone()
        if self._is_in_line:
            self._host.budget.forget(self._let_in)
        self._give_room_back()
        if self._host.is_closing or self._session.is_refused:
            self._frames.clear()
        self._work()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as asyncio calls it
        return self._host.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active_s = now_s = monotonic()
        data = self._host.receive_buffer[:nbytes]
        repeated = self._repeated
        if repeated is not None and nbytes == repeated.size:
            whole = bytes(data)
            if repeated.is_in(whole):
                self._serve(whole, now_s, repeated)
                return
        try:
            frames = self._reader.receive(data)
        except MalformedMessage as error:
            self.close(str(error))
            return
        self._waiting_bytes += sum(map(len, frames))
        if len(frames) == 1 and not self._frames and frames[0].startswith(_HEARTBEATS) and self._is_free():
            self._serve(frames[0], now_s)
            if self._is_at_rest() and not self._room:
                self._repeated = self._session.repeated
                return  # what nearly all requests are: answered, and nothing else has come
        else:
            self._frames.extend(frames)
        self._work()

    def pause_writing(self) -> None:
        self._is_full, self._repeated = True, None

    def resume_writing(self) -> None:
        self._is_full = False
        self._work()

    def close(self, reason: str) -> None:
        """End the connection, and log the reason."""
        if self._transport is not None:
            log.warning("closing the connection of %s: %s", self._session.peer, reason)
        self.end()

    def end(self) -> None:
        """End the connection when what is written has left."""
        self._frames.clear()
        if self._transport is not None:
            self._transport.close()
            self._transport, self._closing, self._repeated = None, self._transport, None
        elif self._task is not None and self._is_gone:
            self._task.cancel()

    def abort(self) -> None:
        """End the connection now, whatever is still to be written."""
        if self._closing is not None:
            self._closing.abort()

    def is_idle(self) -> bool:
        """Return whether no request is being answered."""
        return self._task is None

    def is_stalled(self, now_s: float) -> bool:
        """Whether the client holds room for a large request and does not go on with it."""
        return self._room > 0 and self._task is None and not self._frames and now_s - self.last_active_s > STALLED_S

    def _is_at_rest(self) -> bool:
        """Whether nothing has come that is not answered yet."""
        return self._is_free() and not self._frames and self._transport is not None and not self._reader.pending_bytes

    def _can_serve(self) -> bool:
        return bool(self._frames) and self._is_free()

    def _is_free(self) -> bool:
        return (
            not self._session.is_refused
            and self._task is None
            and not self._is_full
            and (self._transport is not None or self._is_gone)
        )

    def _work(self) -> None:
        """Answer heartbeats that have come; anything else waits for its turn among the connections."""
        while self._can_serve() and self._frames[0].startswith(_HEARTBEATS):
            self._serve(self._frames.popleft(), monotonic())
        if self._can_serve() and not self._has_turn:
            self._has_turn = True
            self._host.turns.add(self._take_turn)
        if self._is_gone:
            self._see_to_the_end()
        else:
            self._read_on()
            self._repeated = self._session.repeated if self._is_at_rest() else None

    def _see_to_the_end(self) -> None:
        """Leave the server when everything is done that the client had sent."""
        if self._task is None and not self._frames:
            self._host.left(self)
        elif self._task is not None and self._limit is None:
            # Not at once: a task that is ended before it began leaves coroutines that nobody awaits.
            limit_s = LINGER_S if self._frames or not self._host.is_closing else 0.0
            self._limit = asyncio.get_running_loop().call_later(limit_s, self._task.cancel)

    def _take_turn(self) -> None:
        self._has_turn = False
        if self._can_serve():
            self._serve(self._frames.popleft(), monotonic())
        if self._task is None or self._is_gone:  # otherwise there is nothing to do before its end
            self._work()

    def _read_on(self) -> None:
        """Read more, or wait: for what has come to be answered, or for room for a large request."""
        if self._transport is None:
            return
        expected = self._reader.expected_bytes
        if expected > MAX_WAITING_BYTES + LENGTH_BYTES and not self._room and not self._is_in_line:
            self._is_in_line = not self._host.budget.take(expected, self._let_in)
            self._room = 0 if self._is_in_line else expected
        waits = self._is_in_line or (len(self._frames) > MAX_WAITING_FRAMES or self._waiting_bytes > MAX_WAITING_BYTES)
        if waits:
            self._transport.pause_reading()
        elif not self._transport.is_reading():
            self._transport.resume_reading()

    def _let_in(self) -> None:
        """Start the waiting request, as there is room for it now."""
        self._is_in_line = False
        self._room = self._reader.expected_bytes
        self.last_active_s = monotonic()
        self._read_on()

    def _give_room_back(self) -> None:
        room, self._room = self._room, 0
        if room:
            self._host.budget.give_back(room)

    def _serve(self, payload: bytes, now_s: float, repeated: Repeated | None = None) -> None:
        """Answer a request, or begin to. What is ``repeated`` comes as a whole frame and has not waited."""
        if repeated is None:
            held, waited_bytes = Held(int.from_bytes(payload[:2], "big"), len(payload), self._session.peer), len(payload)
        else:
            held, waited_bytes = repeated.held, 0
        watch = self._host.watch
        watch.begin(held, now_s)
        response: Response = None
        try:
            response = self._dispatcher.answer(payload, self._session) if repeated is None else repeated.look_up(payload)
        except Exception as error:  # noqa: BLE001 - told, and of this connection alone
            self._close_for(error)
        if response is None or isinstance(response, bytes):
            self._respond(response, waited_bytes)
        elif isinstance(response, Later):
            self._task, self._repeated = response.result, None
            response.result.add_done_callback(partial(self._result_came, response, waited_bytes))
        else:
            UNDER_WAY.set(held)  # for the task, whose context begins as a copy of this one
            self._task = asyncio.ensure_future(self._respond_later(response, waited_bytes))
            self._repeated = None
        watch.end(held)

    def _close_for(self, error: Exception) -> None:
        if isinstance(error, (Refused, MalformedMessage, TooMuchWorkError)):
            self.close(str(error))
            return
        log.error("a request of %s failed", self._session.peer, exc_info=error)
        self.close("an error of the server's own")

    def _respond(self, response: bytes | None, request_bytes: int) -> None:
        self._waiting_bytes -= request_bytes
        if request_bytes > MAX_WAITING_BYTES:
            self._give_room_back()
        if response is not None and self._transport is not None:
            self._transport.write(frame(response))
        if self._session.is_refused:
            asyncio.get_running_loop().call_later(AFTER_A_WRONG_LOGIN_S, self.end)

    def _result_came(self, later: Later[bytes | None], request_bytes: int, result: asyncio.Future[Result]) -> None:
        response: Response = None
        try:
            response = later.make(result.result())
        except asyncio.CancelledError:
            log.debug(WAITED_IN_VAIN, self._session.peer)
        except Exception as error:  # noqa: BLE001 - told, and of this connection alone
            self._close_for(error)
        if response is None or isinstance(response, bytes):
            self._ended(response, request_bytes)
        else:
            self._task = asyncio.ensure_future(self._respond_later(response, request_bytes))

    async def _respond_later(self, awaitable: Awaitable[bytes | None], request_bytes: int) -> None:
        response = None
        try:
            response = await awaitable
        except asyncio.CancelledError:
            log.debug(WAITED_IN_VAIN, self._session.peer)
        except Exception as error:  # noqa: BLE001 - told, and of this connection alone
            self._close_for(error)
        self._ended(response, request_bytes)

    def _ended(self, response: bytes | None, request_bytes: int) -> None:
        self._task = None
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        self._respond(response, request_bytes)
        self._work()
