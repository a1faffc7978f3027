"""The bytes of an answer: written from its values, beside the event loop where they are many, or looked up.

A member's heartbeats differ in their correlation id alone, and so do the answers for as long as nothing happens in its group.
From the second one in a row on the connection keeps both (`Repeated`), so that neither is read nor written anew. The
coordinator is asked each time, and only what it says decides whether the kept answer is given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, Heartbeat, Result
from kgctl.model.share_requests import ShareGroupHeartbeat
from kgctl.model.streams_requests import StreamsGroupHeartbeat
from kgctl.serde.frames import frame
from kgctl.serde.messages import ServerCodec
from kgctl.server.partition_data import Worker
from kgctl.server.request_context import RequestContext
from kgctl.server.runtime import Answer, Later, Values, rendered
from kgctl.server.traffic import Held

LARGE_ITEMS = 400
"""An answer with more entries than this is encoded in a thread."""
REQUEST_LINE = "%s v%d from %s (%s)"
"""What is logged of each request: its API and version, where it comes from, the client id."""
_ID_AT, _ID_END = 8, 12
"""Where the correlation id stands in a frame: behind the length and the API's key and version."""

log = logging.getLogger(__name__)


Response = bytes | Awaitable[bytes | None] | None
"""A response without the length before it; None where none is to be sent."""


def response_of(thread: Worker, codec: ServerCodec, correlation_id: int, answer: Answer) -> Response:
    """Return the response, or an awaitable of it where the answer is not there yet or has many entries."""
    if answer is None:
        return None
    if isinstance(answer, Later):
        return Later(answer.result, partial(_made, thread, codec, correlation_id, answer.make))
    if not isinstance(answer, dict):
        return _later(thread, codec, correlation_id, answer)
    return thread.run(codec.encode, correlation_id, answer) if is_large(answer) else codec.encode(correlation_id, answer)


def _made(thread: Worker, codec: ServerCodec, correlation_id: int, make: Callable[[Result], Answer], result: Result) -> Response:
    return response_of(thread, codec, correlation_id, make(result))


async def _later(thread: Worker, codec: ServerCodec, correlation_id: int, answer: Awaitable[Values | None]) -> bytes | None:
    response = response_of(thread, codec, correlation_id, await answer)
    return await response if isinstance(response, Awaitable) else response


def is_large(values: Values) -> bool:
    """Whether it takes long to encode: whether all its lists together have more than `LARGE_ITEMS` entries."""
    left = LARGE_ITEMS
    open_values = [value for value in values.values() if isinstance(value, (list, tuple))]
    while open_values:
        entries = open_values.pop()
        left -= len(entries)
        if left < 0:
            return True
        for entry in entries:
            if isinstance(entry, (dict, Mapping)):  # a dict is told sooner
                open_values += [value for value in entry.values() if isinstance(value, (list, tuple))]
    return False


AnyHeartbeat = Heartbeat | ConsumerGroupHeartbeat | ShareGroupHeartbeat | StreamsGroupHeartbeat


class HeartbeatHandler:
    """Answers a heartbeat of any protocol: one question to the coordinator of the group."""

    def __init__(
        self,
        question: Callable[[RequestContext, Any], AnyHeartbeat],
        render: Callable[[Any], Values],
        refusal: Callable[[RequestContext, Any], Values | None] = lambda *_: None,
    ) -> None:
        """``refusal``: the answer where something else than the group is not the member's, or is wrong; or None."""
        self.question = question
        self._render = render
        self._refusal = refusal

    def __call__(self, context: RequestContext, body: Any) -> Answer:
        if error := context.group_error(AclOperation.READ, body.group_id):
            return {"error_code": error}
        refused = self._refusal(context, body)
        return refused or context.ask(self.question(context, body), self.rendering(context, body))

    def rendering(self, _context: RequestContext, _body: Any) -> Callable[[Any], Values]:
        """Return what makes the answer of what the coordinator says."""
        return self._render

    def is_kept(self, _result: Any) -> bool:
        """Whether the same answer will do for as long as the coordinator says this."""
        return True


class Repeated:
    """A heartbeat that its connection repeats, the question that it is, and what was answered last.

    Every time the question bears the same request id: a connection has one request under way, and the coordinator is done with
    the id of a heartbeat when it has answered.
    """

    __slots__ = ("_answer", "_begin", "_broker", "_codec", "_end", "_is_kept", "_render", "_request", "_result", "_services",
                 "held", "size")  # fmt: skip

    def __init__(self, payload: bytes, context: RequestContext, codec: ServerCodec, handler: HeartbeatHandler, body: Any) -> None:
        whole = frame(payload)
        self.size = len(whole)
        self.held = Held(context.api_key, len(payload), context.session.peer)
        self._begin, self._end = _shared(whole[:_ID_AT]), whole[_ID_END:]
        self._services, self._broker = context.services, context.broker
        self._request = handler.question(context, body)
        self._codec, self._render, self._is_kept = codec, handler.rendering(context, body), handler.is_kept
        self._result: Result | ErrorCode | None = None
        self._answer = b""
        """What follows the correlation id, where the result is this one."""

    def is_in(self, whole: bytes) -> bool:
        """Whether a frame is this request, byte for byte but for its correlation id."""
        return whole[_ID_END:] == self._end and whole[:_ID_AT] == self._begin

    def look_up(self, whole: bytes) -> Response:
        """As `response`, for a frame that was not read: it is logged here."""
        request = self._request
        if log.isEnabledFor(logging.DEBUG):
            log.debug(REQUEST_LINE, type(request).__name__, request.api_version, request.client_host, request.client_id)
        return self.response(whole)

    def response(self, whole: bytes) -> Response:
        """Ask the coordinator, and return the response to a frame that is this request."""
        request, services = self._request, self._services
        if not services.cluster.is_coordinator(self._broker, request.group_id or ""):
            return self._anew(whole, ErrorCode.NOT_COORDINATOR)
        result = services.runtime.result(request)
        if result is not self._result and result != self._result:
            return self._anew(whole, result)
        return whole[_ID_AT:_ID_END] + self._answer

    def _anew(self, whole: bytes, result: Result | asyncio.Future[Result] | ErrorCode) -> Response:
        answer = {"error_code": result} if isinstance(result, ErrorCode) else rendered(result, self._render)
        correlation_id = int.from_bytes(whole[_ID_AT:_ID_END], "big", signed=True)
        response = response_of(self._services.data.codec, self._codec, correlation_id, answer)
        if isinstance(response, bytes) and not isinstance(result, asyncio.Future) and self._is_kept(result):
            self._result, self._answer = result, response[4:]
        return response


@lru_cache
def _shared(begin: bytes) -> bytes:
    """Return the bytes that frames of the same kind and size begin with, one object for all connections."""
    return begin
