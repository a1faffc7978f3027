"""From a request's bytes to the bytes of its answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from kgctl.errors import StorageError
from kgctl.model.access import Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.serde.frames import UnsupportedVersion, frame
from kgctl.serde.messages import RequestHeader, ServerCodec, decode_header, encode_response, server_codec
from kgctl.server.operator import OPERATOR_PREFIX, Described, MalformedOperation, answer_operator
from kgctl.server.request_context import ApiSpec, ClientSession, Login, RequestContext
from kgctl.server.responses import REQUEST_LINE, HeartbeatHandler, Repeated, Response, response_of
from kgctl.server.runtime import Answer, Later, Values
from kgctl.server.security import AuthenticationFailed
from kgctl.server.traffic import finish

if TYPE_CHECKING:
    from kgctl.server.cluster import Broker
    from kgctl.server.request_context import Services

PRODUCE_KEY, API_VERSIONS_KEY = 0, 18
MAX_BYTES = 16 * 1024 * 1024
"""Of a request that is no Produce: its entries take many times that in memory."""
MAX_BYTES_BEFORE_LOGIN = 524_288
"""Kafka: sasl.server.max.receive.size."""
LARGE_BYTES = 16 * 1024
"""A request above this is decoded in a thread: some milliseconds of decoding."""

log = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - what happened to the request
    """The request cannot be answered; its connection is to be closed, with this as the reason."""


class Dispatcher:
    """Answers requests that come to one broker."""

    def __init__(self, services: Services, broker: Broker, describe: Described) -> None:
        self.broker = broker
        self._services = services
        self._describe = describe
        self._thread = services.data.codec
        self._known: dict[tuple[int, int], tuple[ApiSpec, ServerCodec]] = {}
        """APIs and versions that were asked for already."""

    def answer(self, payload: bytes, session: ClientSession) -> Response:
        """The response (no length prefix), an awaitable of it, or None where none is to be sent.

        Raises Refused where Kafka closes the connection (an API or version that is not served, anything before authentication),
        and MalformedMessage.
        """
        if not session.is_authenticated:
            if len(payload) > MAX_BYTES_BEFORE_LOGIN:
                raise Refused(f"a request of {len(payload)} bytes before authentication")
            if session.login is not None and session.login.is_raw:
                return _answer_raw_token(payload, session.login, session)
        if payload.startswith(OPERATOR_PREFIX):
            return self._answer_operator(payload, session)
        header, position = decode_header(payload)
        known = self._known.get((header.api_key, header.api_version))
        if known is not None and len(payload) <= LARGE_BYTES and (session.is_authenticated or known[0].before_authentication):
            spec, codec = known
            context = self._context(header, header.api_version, session, spec)
            body = codec.decode(payload, position)
            is_asked = self._services.access.is_asked
            if not is_asked and isinstance(spec.handler, HeartbeatHandler) and session.hears_again(payload):
                session.repeated = Repeated(payload, context, codec, spec.handler, body)
                return session.repeated.response(frame(payload))
            return self._handle(spec, context, codec, header.correlation_id, body)
        return self._answer_rare(header, payload, position, session)

    def _answer_rare(self, header: RequestHeader, payload: bytes, position: int, session: ClientSession) -> Response:
        """A large request, the first one of its API and version, or what is to be refused."""
        spec = self._services.registry.get(header.api_key)
        if spec is None:
            raise Refused(f"API key {header.api_key} is not served")
        if not session.is_authenticated and not spec.before_authentication:
            raise Refused(f"{spec.name} before authentication")
        if len(payload) > MAX_BYTES and spec.key != PRODUCE_KEY:
            raise Refused(f"a {spec.name} request of {len(payload)} bytes, at most {MAX_BYTES} are read")
        if not spec.serves(header.api_version):
            return self._unserved(spec, header, session)
        context = self._context(header, header.api_version, session, spec)
        return self._answer_slowly(spec, context, header, payload, position)

    def _answer_operator(self, payload: bytes, session: ClientSession) -> Response:
        if not session.is_authenticated:
            raise Refused("an operator's request before authentication")
        try:
            return answer_operator(payload, self._services, session.who, self._describe)
        except MalformedOperation as error:
            raise Refused(str(error)) from error

    def _handle(self, spec: ApiSpec, context: RequestContext, codec: ServerCodec, correlation_id: int, body: Any) -> Response:
        right = spec.right
        try:
            if right and context.version >= right.since and not context.may(right.operation, Resource.CLUSTER):
                text = f"Request {spec.name} needs {right.operation.name} permission."
                answer: Answer = right.refusal(context, body, (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text))
            elif spec.runs_in_thread is not None and spec.runs_in_thread(context, body):
                answer = _in_thread(spec, context, body)
            else:
                answer = self._answer_of(spec, context, body)
        except StorageError as error:
            answer = self._failure(spec, context, body, error)
        if not isinstance(answer, (dict, Later)) and isinstance(answer, Awaitable):  # a lost record is among its results
            answer = self._or_failure(spec, context, body, answer)
        return response_of(self._thread, codec, correlation_id, answer)

    def _answer_of(self, spec: ApiSpec, context: RequestContext, body: Any) -> Answer:
        answer = spec.handler(context, body)
        if isinstance(answer, dict) or not isinstance(answer, (GeneratorType, Generator)):  # most are the first, told sooner
            return answer
        driven = self._services.pieces.begin(answer)
        return driven if isinstance(driven, (dict, Later)) or not isinstance(driven, Awaitable) else _unfolded(driven)

    async def _or_failure(
        self, spec: ApiSpec, context: RequestContext, body: Any, answer: Awaitable[Values | None]
    ) -> Values | None:
        try:
            return await answer
        except StorageError as error:
            return self._failure(spec, context, body, error)

    def _failure(self, spec: ApiSpec, context: RequestContext, body: Any, error: StorageError) -> Values:
        """One line in the log, and the answer that says so to the client."""
        self._services.data.storage_failed(error)
        if spec.storage_failed is None:
            raise Refused(f"{spec.name}: {error.message}") from error
        return spec.storage_failed(context, body)

    async def _answer_slowly(
        self, spec: ApiSpec, context: RequestContext, header: RequestHeader, payload: bytes, position: int
    ) -> bytes | None:
        """A large request, and the first of its kind, which loads schemas, is decoded beside the event loop."""
        codec, body = await self._thread.run(_decoded, header, payload, position)
        self._known[header.api_key, header.api_version] = spec, codec
        response = self._handle(spec, context, codec, header.correlation_id, body)
        return await response if isinstance(response, Awaitable) else response

    def _context(self, header: RequestHeader, version: int, session: ClientSession, spec: ApiSpec) -> RequestContext:
        context = RequestContext(self._services, self.broker, session, header.api_key, version, header.client_id or "")
        if log.isEnabledFor(logging.DEBUG):
            log.debug(REQUEST_LINE, spec.name, version, session.client_host, context.client_id)
        return context

    def _unserved(self, spec: ApiSpec, header: RequestHeader, session: ClientSession) -> bytes:
        """Kafka answers an ApiVersions of the future in version 0, which every client reads, and closes on anything else."""
        if spec.key != API_VERSIONS_KEY:
            raise Refused(f"{spec.name} version {header.api_version} is not served")
        context = self._context(header, 0, session, spec)
        values = spec.handler(context, None)
        assert isinstance(values, dict)
        return encode_response(spec.key, 0, header.correlation_id, {**values, "error_code": ErrorCode.UNSUPPORTED_VERSION})


async def _in_thread(spec: ApiSpec, context: RequestContext, body: Any) -> Values | None:
    answer = await context.services.data.in_thread(_finished, spec, context, body)
    return await answer if isinstance(answer, Awaitable) else answer


def _finished(spec: ApiSpec, context: RequestContext, body: Any) -> Answer:
    answer = spec.handler(context, body)
    return finish(answer) if isinstance(answer, Generator) else answer


async def _unfolded(driven: Awaitable[Answer]) -> Values | None:
    answer = await driven
    return await answer if isinstance(answer, Awaitable) else answer


def _answer_raw_token(payload: bytes, login: Login, session: ClientSession) -> bytes:
    try:
        return login.answer(payload, session)
    except AuthenticationFailed as error:
        raise Refused(error.message) from error


def _decoded(header: RequestHeader, payload: bytes, position: int) -> tuple[ServerCodec, Any]:
    try:
        codec = server_codec(header.api_key, header.api_version)
    except UnsupportedVersion as error:
        raise Refused(str(error)) from error
    return codec, codec.decode(payload, position)
