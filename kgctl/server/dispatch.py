"""From a request's bytes to the bytes of its answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.frames import UnsupportedVersion
from kgctl.serde.messages import RequestHeader, decode_header, decode_request, encode_response
from kgctl.server.request_context import ApiSpec, ClientSession, RequestContext
from kgctl.server.runtime import Values

if TYPE_CHECKING:
    from kgctl.server.cluster import Broker
    from kgctl.server.request_context import Services

API_VERSIONS_KEY = 18

log = logging.getLogger(__name__)

Response = bytes | Awaitable[bytes | None] | None


class Refused(Exception):  # noqa: N818 - what happened to the request
    """The request cannot be answered; its connection is to be closed, with this as the reason."""


class Dispatcher:
    """Answers requests that come to one broker."""

    def __init__(self, services: Services, broker: Broker) -> None:
        self._services = services
        self._broker = broker

    def answer(self, payload: bytes, session: ClientSession) -> Response:
        """The response (no length prefix), an awaitable of it, or None where none is to be sent.

        Raises Refused where Kafka closes the connection (an API or version that is not served, anything before authentication),
        and MalformedMessage.
        """
        header, _ = decode_header(payload)
        spec = self._services.registry.get(header.api_key)
        if spec is None:
            raise Refused(f"API key {header.api_key} is not served")
        if not session.is_authenticated and not spec.before_authentication:
            raise Refused(f"{spec.name} before authentication")
        if not spec.serves(header.api_version):
            return self._unserved(spec, header, session)
        try:
            request = decode_request(payload)
        except UnsupportedVersion as error:
            raise Refused(str(error)) from error
        context = RequestContext(
            self._services, self._broker, session, header.api_key, header.api_version, header.client_id or ""
        )
        log.debug("%s v%d from %s (%s)", spec.name, context.version, session.client_host, context.client_id)
        answer = spec.handler(context, request.body)
        if answer is None:
            return None
        if isinstance(answer, Awaitable):
            return _encoded_later(context, header, answer)
        return encode_response(header.api_key, header.api_version, header.correlation_id, answer)

    def _context(self, header: RequestHeader, version: int, session: ClientSession) -> RequestContext:
        return RequestContext(self._services, self._broker, session, header.api_key, version, header.client_id or "")

    def _unserved(self, spec: ApiSpec, header: RequestHeader, session: ClientSession) -> bytes:
        """Kafka answers an ApiVersions of the future in version 0, which every client reads, and closes on anything else."""
        if spec.key != API_VERSIONS_KEY:
            raise Refused(f"{spec.name} version {header.api_version} is not served")
        context = self._context(header, 0, session)
        values = spec.handler(context, None)
        assert isinstance(values, dict)
        return encode_response(spec.key, 0, header.correlation_id, {**values, "error_code": ErrorCode.UNSUPPORTED_VERSION})


async def _encoded_later(context: RequestContext, header: RequestHeader, answer: Awaitable[Values | None]) -> bytes | None:
    values = await answer
    if values is None:
        return None
    client = f"{context.session.client_host} ({context.client_id})"
    log.debug("request %d of API %d answered to %s", header.correlation_id, context.api_key, client)
    return encode_response(header.api_key, header.api_version, header.correlation_id, values)
