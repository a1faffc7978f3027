"""One connection to one broker: opened, made secure, logged in, and asked."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kgctl.errors import UnreachableError
from kgctl.model.groups import Node
from kgctl.serde.errors import MalformedMessage
from kgctl.serde.frames import FrameReader, frame
from kgctl.serde.messages import decode_response, encode_request
from kgctl.wire.apis import Api, BrokerVersions
from kgctl.wire.deadline import Deadline
from kgctl.wire.settings import Address, WireSettings

if TYPE_CHECKING:
    import ssl

_CHUNK = 262_144
_MAX_IN_FLIGHT = 4
"""Requests sent ahead of their answers: enough that a broker is never idle while an answer is read, few enough that neither
side's buffers fill up while the other waits."""

IDLE_S = 5.0
"""A connection that was not used for so long is looked at before it is used again."""

_FIRST_REQUESTS = 3
"""A broker that wants a login answers ApiVersions, and closes the connection at the request after it."""


class Request(NamedTuple):
    """One request; ``version`` is what `Connection.version` answered for the API."""

    api: Api
    version: int
    values: Mapping[str, Any]


class Connection:
    """Blocking, for one thread at a time. After any error it is closed and of no more use.

    `kgctl.wire.handshake.open_connection` makes one that is ready. ``node`` is the broker, once it is known which one it is.
    """

    def __init__(self, sock: socket.socket, address: Address, settings: WireSettings) -> None:
        self.address = address
        self.versions = BrokerVersions({}, str(address))
        self.node: Node | None = None
        self.is_closed = False
        self._socket = sock
        self._client_id = settings.client_id
        self._is_logged_in = settings.sasl is not None
        self._reader = FrameReader(settings.max_frame_bytes)
        self._frames: list[bytes] = []
        self._correlation_id = 0
        self._last_used_s = time.monotonic()

    @property
    def is_usable(self) -> bool:
        """Whether it can still be asked, as far as can be told: after a pause the broker may have hung up (idle, restarted)."""
        if self.is_closed or time.monotonic() - self._last_used_s < IDLE_S:
            return not self.is_closed
        has_news, _, _ = select.select([self._socket], [], [], 0)
        return not has_news

    def version(self, api: Api) -> int:
        """The version to use; raises `kgctl.errors.UnsupportedError` when the broker has none that kgctl knows."""
        return self.versions.pick(api)

    def call(self, api: Api, values: Mapping[str, Any], deadline: Deadline, *, version: int | None = None) -> Any:
        """One request and kio's entity of its response.

        Raises `kgctl.errors.TimedOutError`, `kgctl.errors.UnreachableError`, `kgctl.errors.UnsupportedError`.
        """
        (answer,) = self.call_all([Request(api, self.version(api) if version is None else version, values)], deadline)
        return answer

    def call_all(self, requests: Sequence[Request], deadline: Deadline) -> list[Any]:
        """Several requests, some sent ahead; the answers in the order of the requests. Raises as `call`."""
        return list(self.stream(requests, deadline))

    def call_raw(self, request: Request, deadline: Deadline) -> bytes:
        """The response as it came, its header included. Raises as `call`."""
        with self._closing_on_error():
            self._send(request, deadline)
            return self._next_frame(request.api, deadline)

    def stream(self, requests: Sequence[Request], deadline: Deadline) -> Iterator[Any]:
        """As `call_all`, each answer as soon as it is there. The caller takes all of them."""
        with self._closing_on_error():
            sent: list[tuple[Request, int]] = []
            for request in requests:
                if len(sent) >= _MAX_IN_FLIGHT:
                    yield self._receive(*sent.pop(0), deadline)
                sent.append((request, self._send(request, deadline)))
            for request, correlation_id in sent:
                yield self._receive(request, correlation_id, deadline)

    def start_tls(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        """Go on encrypted; only before the first request. Raises ssl.SSLError, OSError."""
        self._socket.settimeout(deadline.seconds_left(f"{self.address} (TLS handshake)"))
        self._socket = context.wrap_socket(self._socket, server_hostname=self.address.host)

    def close(self) -> None:
        """Safe to call twice."""
        self.is_closed = True
        with suppress(OSError):
            self._socket.close()

    def _send(self, request: Request, deadline: Deadline) -> int:
        self._correlation_id += 1
        payload = encode_request(request.api.key, request.version, self._correlation_id, self._client_id, request.values)
        self._socket.settimeout(deadline.seconds_left(str(self.address)))
        try:
            self._socket.sendall(frame(payload))
        except TimeoutError:
            raise deadline.timed_out(str(self.address)) from None
        except OSError as error:
            raise self._lost(request.api, error) from None
        return self._correlation_id

    def _receive(self, request: Request, correlation_id: int, deadline: Deadline) -> Any:
        payload = self._next_frame(request.api, deadline)
        try:
            echoed, body = decode_response(request.api.key, request.version, payload)
        except MalformedMessage as error:
            raise UnreachableError(
                f"{self.address} answered {request.api.name} with bytes that cannot be read: {error}"
            ) from None
        if echoed != correlation_id:
            raise UnreachableError(f"{self.address} answered out of order: {echoed}, expected {correlation_id}")
        return body

    def _next_frame(self, api: Api, deadline: Deadline) -> bytes:
        while not self._frames:
            self._socket.settimeout(deadline.seconds_left(str(self.address)))
            try:
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                raise deadline.timed_out(str(self.address)) from None
            except OSError as error:
                raise self._lost(api, error) from None
            if not data:
                raise self._lost(api, None)
            self._frames = self._cut(data)
        self._last_used_s = time.monotonic()
        return self._frames.pop(0)

    def _cut(self, data: bytes) -> list[bytes]:
        try:
            return self._reader.receive(data)
        except MalformedMessage as error:
            is_tls_alert = data[:2] == b"\x15\x03"
            what = "TLS: set security.protocol to SSL or SASL_SSL" if is_tls_alert else f"no Kafka ({error})"
            raise UnreachableError(f"{self.address} speaks {what}") from None

    def _lost(self, api: Api, error: OSError | None) -> UnreachableError:
        why = f": {error.strerror or error}" if error else ""
        if not self._is_logged_in and self._correlation_id <= _FIRST_REQUESTS:
            why += " (does this listener want SASL? set security.protocol)"
        return UnreachableError(f"{self.address} closed the connection at {api.name}{why}")

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """What is still on its way would be taken for the answer to the next request."""
        try:
            yield
        except BaseException:
            self.close()
            raise
