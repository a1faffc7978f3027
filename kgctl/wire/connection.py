"""One connection to one broker: name look-up, TCP, TLS, versions, login; then requests and their answers, all in time."""

from __future__ import annotations

import math
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kgctl.errors import AuthError, UnreachableError, UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node
from kgctl.serde.frames import FrameReader, MalformedMessage, frame
from kgctl.serde.messages import decode_response, encode_request
from kgctl.wire import Deadline
from kgctl.wire.settings import Address, SaslSettings, WireSettings

if TYPE_CHECKING:
    import ssl


R = TypeVar("R")


class Api(NamedTuple):
    """An API key and the lowest and highest version in use here. Brokers have the lowest ``since`` that Kafka; "": all do."""

    key: int
    name: str
    lowest: int
    highest: int
    since: str = ""


FETCH = Api(1, "Fetch", 4, 12)  # from version 13 on topics have ids, no names
LIST_OFFSETS = Api(2, "ListOffsets", 1, 9)
METADATA = Api(3, "Metadata", 1, 12)
OFFSET_COMMIT = Api(8, "OffsetCommit", 2, 9)  # from version 10 on topics have ids, no names
OFFSET_FETCH = Api(9, "OffsetFetch", 2, 9)  # null for all topics since version 2; ids from 10 on
FIND_COORDINATOR = Api(10, "FindCoordinator", 0, 6)
JOIN_GROUP = Api(11, "JoinGroup", 0, 9)
HEARTBEAT = Api(12, "Heartbeat", 0, 4)
LEAVE_GROUP = Api(13, "LeaveGroup", 3, 5, "2.4")  # several members since version 3
SYNC_GROUP = Api(14, "SyncGroup", 0, 5)
DESCRIBE_GROUPS = Api(15, "DescribeGroups", 0, 6)
LIST_GROUPS = Api(16, "ListGroups", 0, 5)
SASL_HANDSHAKE = Api(17, "SaslHandshake", 1, 1)
API_VERSIONS = Api(18, "ApiVersions", 0, 3)
SASL_AUTHENTICATE = Api(36, "SaslAuthenticate", 0, 2)
DELETE_TOPICS = Api(20, "DeleteTopics", 1, 5)  # topics may have ids from version 6 on
DELETE_GROUPS = Api(42, "DeleteGroups", 0, 2, "1.1")
OFFSET_DELETE = Api(47, "OffsetDelete", 0, 0, "2.4")
DESCRIBE_CLUSTER = Api(60, "DescribeCluster", 0, 2)
CONSUMER_GROUP_HEARTBEAT = Api(68, "ConsumerGroupHeartbeat", 0, 1)
CONSUMER_GROUP_DESCRIBE = Api(69, "ConsumerGroupDescribe", 0, 1)
SHARE_GROUP_DESCRIBE = Api(77, "ShareGroupDescribe", 1, 1, "4.1")
STREAMS_GROUP_DESCRIBE = Api(89, "StreamsGroupDescribe", 0, 0, "4.2")
DESCRIBE_SHARE_GROUP_OFFSETS = Api(90, "DescribeShareGroupOffsets", 0, 1, "4.1")
ALTER_SHARE_GROUP_OFFSETS = Api(91, "AlterShareGroupOffsets", 0, 0, "4.1")
DELETE_SHARE_GROUP_OFFSETS = Api(92, "DeleteShareGroupOffsets", 0, 0, "4.1")


class BrokerVersions:
    """What a broker said it serves."""

    def __init__(self, ranges: dict[int, tuple[int, int]], broker: str) -> None:
        self._ranges = ranges
        self._broker = broker

    def has(self, api: Api) -> bool:
        """Whether there is a version that both sides know."""
        return self._common(api) is not None

    def pick(self, api: Api) -> int:
        """The highest version that both sides know; raises `UnsupportedError`."""
        version = self._common(api)
        if version is None:
            is_too_old = api.since and self._ranges.get(api.key, (0, -1))[1] < api.lowest
            why = f"is too old for {api.name}, which needs Kafka {api.since}"
            unknown = f"does not serve {api.name} in a version that kgctl knows"
            raise UnsupportedError(f"{self._broker} {why if is_too_old else unknown}", code="UNSUPPORTED_VERSION")
        return version

    def _common(self, api: Api) -> int | None:
        lowest, highest = self._ranges.get(api.key, (0, -1))
        version = min(highest, api.highest)
        return version if version >= max(lowest, api.lowest) else None


_CHUNK = 262_144
_MAX_IN_FLIGHT = 4
"""Requests sent ahead of their answers: enough that a broker is never idle while an answer is read, few enough that neither
side's buffers fill up while the other waits."""

IDLE_S = 5.0
"""A connection that was not used for so long is looked at before it is used again."""

MOST_IDLE_S = 120.0
"""A connection that was not used for longer is not used again: a NAT or a load balancer may have dropped it without a word."""

LOGIN_SHARE = 0.85
"""How much of a login's time is used. Kafka: SaslClientAuthenticator#setAuthenticationEndAndSessionReauthenticationTimes takes
85 to 95 percent."""

_EXACT_S = 0.02
"""How far from its deadline a call may be given up."""

_FIRST_REQUESTS = 3
"""A broker that wants a login answers ApiVersions, and closes the connection at the request after it."""


class Request(NamedTuple):
    """One request; ``version`` is what `Connection.version` answered for the API."""

    api: Api
    version: int
    values: Mapping[str, Any]


Decode = Callable[[int, int, bytes], tuple[int, Any]]
"""Reads a response, as `decode_response`: the API's key, the version, the bytes; the correlation id and what it says."""


class Peer:
    """What a connection knows of its broker, whoever moves its bytes. ``node`` is the broker, once it is known which one."""

    def __init__(self, address: Address, settings: WireSettings) -> None:
        self.address = address
        self.versions = BrokerVersions({}, str(address))
        self.node: Node | None = None
        self.is_closed = False
        self._client_id = settings.client_id
        self._is_logged_in = settings.sasl is not None
        self._reader = FrameReader(settings.max_frame_bytes)
        self._frames: list[bytes] = []
        self._correlation_id = 0
        self._last_used_s = time.monotonic()
        self._ends_s = math.inf
        self._name = str(address)

    def end_after(self, lifetime_ms: int) -> None:
        """Note that the login holds for so long from now on; 0: for ever."""
        if lifetime_ms > 0:
            self._ends_s = time.monotonic() + LOGIN_SHARE * lifetime_ms / 1000

    @property
    def _may_be_asked(self) -> bool:
        return not self.is_closed and time.monotonic() < min(self._ends_s, self._last_used_s + MOST_IDLE_S)

    @property
    def _is_fresh(self) -> bool:
        """Whether it was used so lately that nobody looks whether the broker has hung up."""
        return time.monotonic() < self._last_used_s + IDLE_S

    def version(self, api: Api) -> int:
        """The version to use; raises `kgctl.errors.UnsupportedError` when the broker has none that kgctl knows."""
        return self.versions.pick(api)

    def _payload(self, request: Request) -> bytes:
        self._correlation_id += 1
        return encode_request(request.api.key, request.version, self._correlation_id, self._client_id, request.values)

    def _body(self, request: Request, correlation_id: int, payload: bytes, decode: Decode = decode_response) -> Any:
        try:
            echoed, body = decode(request.api.key, request.version, payload)
        except MalformedMessage as error:
            raise _lasting(f"{self.address} answered {request.api.name} with bytes that cannot be read: {error}") from None
        if echoed != correlation_id:
            raise _lasting(f"{self.address} answered out of order: {echoed}, expected {correlation_id}")
        return body

    def _cut(self, data: bytes) -> list[bytes]:
        try:
            return self._reader.receive(data)
        except MalformedMessage as error:
            what = f"no Kafka ({error})"
            if data[:2] == b"\x15\x03":  # an alert
                what = "TLS: set security.protocol to SSL or SASL_SSL"
            elif data[:5] == b"HTTP/":
                what = "HTTP, not Kafka: this is the port of a web server (a REST proxy, metrics, a user interface)"
            raise _lasting(f"{self.address} speaks {what}") from None

    def _lost(self, api: Api | None, error: OSError | None) -> UnreachableError:
        why = f": {error.strerror or error}" if error else ""
        lost = UnreachableError(f"{self.address} closed the connection{f' at {api.name}' if api is not None else ''}{why}")
        lost.is_lost = True
        lost.may_want_login = not self._is_logged_in and self._correlation_id <= _FIRST_REQUESTS
        return lost


class Connection(Peer):
    """Blocking, for one thread at a time. After any error it is closed and of no more use.

    `kgctl.wire.connection.open_connection` makes one that is ready.
    """

    def __init__(self, sock: socket.socket, address: Address, settings: WireSettings) -> None:
        super().__init__(address, settings)
        self._socket = sock
        self._limit_s = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether what is sent is not encrypted."""
        return type(self._socket) is socket.socket

    @property
    def is_usable(self) -> bool:
        """Whether it can still be asked, as far as can be told: after a pause the broker may have hung up (idle, restarted).

        A login that ends (KIP-368) makes it unusable before the broker hangs up: another connection logs in anew.
        """
        return self._may_be_asked and (self._is_fresh or not select.select([self._socket], [], [], 0)[0])

    def call(self, api: Api, values: Mapping[str, Any], deadline: Deadline, *, version: int | None = None) -> Any:
        """Return the body of the response to one request.

        Raises `kgctl.errors.TimedOutError`, `kgctl.errors.UnreachableError`, `kgctl.errors.UnsupportedError`.
        """
        request = Request(api, self.version(api) if version is None else version, values)
        try:  # `stream` for one, whose generators cost as much as the rest: a live member calls for every heartbeat and commit
            return self._receive(request, self._send(request, deadline), deadline)
        except BaseException:
            self.close()
            raise

    def send(self, request: Request, deadline: Deadline) -> int:
        """Send one request and return the number of its answer, which `receive` takes. Raises as `call`."""
        with self._closing_on_error():
            return self._send(request, deadline)

    def has_answer(self, within_s: float) -> bool:
        """Whether a whole answer is there, or comes in this time. Raises as `call`."""
        with self._closing_on_error():
            until_s = time.monotonic() + within_s
            while not self._frames and (left_s := until_s - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                self._limit_s = left_s
                with suppress(TimeoutError):
                    self._read(None)
            return bool(self._frames)

    def receive(self, request: Request, number: int, deadline: Deadline) -> Any:
        """Return the body of the answer to what `send` sent. Raises as `call`."""
        with self._closing_on_error():
            return self._receive(request, number, deadline)

    def call_all(self, requests: Sequence[Request], deadline: Deadline) -> list[Any]:
        """Several requests, some sent ahead; the answers in the order of the requests. Raises as `call`."""
        return list(self.stream(requests, deadline))

    def call_raw(self, request: Request, deadline: Deadline) -> bytes:
        """The response as it came, its header included. Raises as `call`."""
        with self._closing_on_error():
            self._send(request, deadline)
            return self._next_frame(request.api, deadline)

    def exchange(self, payload: bytes, deadline: Deadline) -> bytes:
        """A payload of the caller's own, header included, and the response as it came. Raises as `call`."""
        with self._closing_on_error():
            try:
                self._limit(deadline)
                self._socket.sendall(frame(payload))
            except TimeoutError:
                raise deadline.timed_out(self._name) from None
            except OSError as error:
                raise self._lost(API_VERSIONS, error) from None
            return self._next_frame(API_VERSIONS, deadline)

    def stream(
        self,
        requests: Iterable[Request],
        deadline: Deadline,
        decode: Callable[[int, int, bytes], tuple[int, Any]] = decode_response,
    ) -> Iterator[Any]:
        """As `call_all`, each answer as soon as it is there, as ``decode`` reads it. The caller takes all of them.

        A request is taken of ``requests`` when it is sent.
        """
        with self._closing_on_error():
            sent: list[tuple[Request, int]] = []
            for request in requests:
                if len(sent) >= _MAX_IN_FLIGHT:
                    yield self._receive(*sent.pop(0), deadline, decode)
                sent.append((request, self._send(request, deadline)))
            for request, correlation_id in sent:
                yield self._receive(request, correlation_id, deadline, decode)

    def start_tls(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        """Go on encrypted; only before the first request. Raises ssl.SSLError, OSError."""
        self._limit_s = 0.0
        self._socket.settimeout(deadline.seconds_left(f"{self.address} (TLS handshake)"))
        self._socket = context.wrap_socket(self._socket, server_hostname=self.address.host)

    def shut_down(self) -> None:
        """Break the connection from another thread: a call that waits for its answer raises `UnreachableError` at once."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self.is_closed = True
        with suppress(OSError):
            self._socket.close()

    def _limit(self, deadline: Deadline) -> None:
        """Give the socket what is left of the time: a call of the system, left out where it has that nearly."""
        left_s = deadline.seconds_left(self._name)
        if abs(left_s - self._limit_s) > _EXACT_S:
            self._socket.settimeout(left_s)
            self._limit_s = left_s

    def _send(self, request: Request, deadline: Deadline) -> int:
        payload = self._payload(request)
        self._limit(deadline)
        try:
            self._socket.sendall(frame(payload))
        except TimeoutError:
            raise deadline.timed_out(self._name) from None
        except OSError as error:
            raise self._lost(request.api, error) from None
        return self._correlation_id

    def _receive(self, request: Request, correlation_id: int, deadline: Deadline, decode: Decode = decode_response) -> Any:
        return self._body(request, correlation_id, self._next_frame(request.api, deadline), decode)

    def _next_frame(self, api: Api, deadline: Deadline) -> bytes:
        while not self._frames:
            self._limit(deadline)
            try:
                self._read(api)
            except TimeoutError:
                raise deadline.timed_out(self._name) from None
        self._last_used_s = time.monotonic()
        return self._frames.pop(0)

    def _read(self, api: Api | None) -> None:
        """Read what is there into ``_frames``. Raises TimeoutError within the socket's limit, and `UnreachableError`."""
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError:
            raise
        except OSError as error:
            raise self._lost(api, error) from None
        if not data:
            raise self._lost(api, None)
        self._frames = self._cut(data)

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """What is still on its way would be taken for the answer to the next request."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def _lasting(message: str) -> UnreachableError:
    """The error of a server that will say the same again."""
    error = UnreachableError(message)
    error.is_lasting = True
    return error


_FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}


def open_socket(address: Address, settings: WireSettings, deadline: Deadline) -> socket.socket:
    """A TCP connection to the first of the host's addresses that takes one. Raises `UnreachableError`, `TimedOutError`."""
    found = _look_up(address, _FAMILIES.get(settings.address_family, socket.AF_UNSPEC), deadline)
    failure: OSError | None = None
    for position, (kind, _, protocol, _, target) in enumerate(found):
        timeout_s = deadline.seconds_left(str(address)) / (len(found) - position)
        sock = socket.socket(kind, socket.SOCK_STREAM, protocol)
        sock.settimeout(timeout_s)
        try:
            sock.connect(target)
        except OSError as error:
            sock.close()
            failure = error
            continue
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    if isinstance(failure, TimeoutError):
        raise deadline.timed_out(str(address))
    raise UnreachableError(f"cannot connect to {address}: {failure.strerror if failure else 'no address'}")


def _look_up(address: Address, family: int, deadline: Deadline) -> list[Any]:
    """The system's resolver knows no deadline: names are looked up in a thread, which is left behind when time is up."""
    if address.host.replace(".", "").isdigit() or ":" in address.host:
        return _resolve(address, family)
    results: list[list[Any] | UnreachableError] = []

    def run() -> None:
        try:
            results.append(_resolve(address, family))
        except UnreachableError as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(deadline.seconds_left(str(address)))
    if not results:
        raise deadline.timed_out(f"the name server, asked for {address.host},")
    (result,) = results
    if isinstance(result, UnreachableError):
        raise result
    return result


def _resolve(address: Address, family: int) -> list[Any]:
    try:
        return socket.getaddrinfo(_encoded(address.host), address.port, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _lasting(f"cannot resolve {address.host}: {getattr(error, 'strerror', None) or error}") from None


def _encoded(host: str) -> str | bytes:
    """Bytes where they are plain ASCII: text would load the tables of international names, some 5 ms."""
    return host.encode() if host.isascii() else host


_SOFTWARE = {"client_software_name": "kgctl", "client_software_version": "1"}


def open_connection(address: Address, settings: WireSettings, deadline: Deadline) -> Connection:
    """A connection ready for any request; the caller closes it.

    Raises `kgctl.errors.UnreachableError` (`kgctl.errors.TimedOutError`), `kgctl.errors.AuthError`, and
    `kgctl.errors.UsageError` for certificate files that cannot be used.
    """
    context = tls_context_of(settings)
    connection = Connection(open_socket(address, settings, deadline), address, settings)
    try:
        if context:
            _start_tls(connection, context, deadline)
        _greet(connection, greeting(connection, settings, deadline), deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def tls_context_of(settings: WireSettings) -> ssl.SSLContext | None:
    if not settings.tls:
        return None
    from kgctl.wire.security import tls_context

    return tls_context(settings.tls)


def given_up(address: Address) -> UnreachableError:
    """Say that whoever wanted this connection has closed it meanwhile, for good."""
    return UnreachableError(f"{address}: the connection was given up")


def tls_failure(address: Address, error: OSError) -> UnreachableError:
    """Say why a handshake failed."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return _lasting(f"{address}: its certificate is not trusted: {error.verify_message}")
    reason = (getattr(error, "reason", None) or error.strerror or "the connection was closed").replace("_", " ").lower()
    hint = "does it speak TLS, and does it want a client certificate?"
    lost = UnreachableError(f"{address}: TLS handshake failed: {reason} ({hint})")
    lost.is_lost = True
    return lost


def _start_tls(connection: Connection, context: ssl.SSLContext, deadline: Deadline) -> None:
    try:
        connection.start_tls(context, deadline)
    except TimeoutError:
        raise deadline.timed_out(f"{connection.address} (TLS handshake)") from None
    except OSError as error:
        raise tls_failure(connection.address, error) from None


Steps = Generator[Request, bytes, R]
"""Yields requests and is sent the answers as they came, or thrown what happened instead: the same over any kind of socket."""


def greeting(peer: Peer, settings: WireSettings, deadline: Deadline) -> Steps[None]:
    """What is said before the first request: which versions there are, and who this is."""
    peer.versions = yield from _negotiate(peer)
    if settings.sasl:
        yield from _log_in(peer, settings.sasl, deadline)


def _greet(connection: Connection, steps: Steps[None], deadline: Deadline) -> None:
    with suppress(StopIteration):
        request = next(steps)
        while True:
            try:
                payload = connection.call_raw(request, deadline)
            except UnreachableError as error:
                request = steps.throw(error)
            else:
                request = steps.send(payload)


def _negotiate(peer: Peer) -> Steps[BrokerVersions]:
    """KIP-35: a broker that does not know the version asked for answers in version 0, whatever was asked, with error 35.

    Since KIP-511 that answer has the list all the same; older brokers are asked again.
    """
    request = Request(API_VERSIONS, API_VERSIONS.highest, _SOFTWARE)
    payload = yield request
    is_too_new = payload[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    answer = _decode_versions(peer, payload, 0 if is_too_new else request.version)
    if is_too_new and not answer.api_keys:
        answer = _decode_versions(peer, (yield Request(API_VERSIONS, 0, {})), 0)
    elif answer.error_code and not is_too_new:
        raise _lasting(f"{peer.address} refused to tell its versions: {ErrorCode(answer.error_code).name}")
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    return BrokerVersions(ranges, str(peer.address))


def _decode_versions(peer: Peer, payload: bytes, version: int) -> Any:
    try:
        _, body = decode_response(API_VERSIONS.key, version, payload)
    except MalformedMessage as error:
        raise _lasting(f"{peer.address} does not answer as a Kafka broker: {error}") from None
    return body


def _asked(peer: Peer, api: Api, values: Mapping[str, Any]) -> Steps[Any]:
    request = Request(api, peer.version(api), values)
    payload = yield request
    return peer._body(request, int.from_bytes(payload[:4], "big", signed=True), payload)


def _log_in(peer: Peer, sasl: SaslSettings, deadline: Deadline) -> Steps[None]:
    from kgctl.wire.security import conversation

    yield from _choose_mechanism(peer, sasl.mechanism)
    talk = conversation(sasl, deadline)
    token = next(talk)
    while True:
        answer = yield from _asked(peer, SASL_AUTHENTICATE, {"auth_bytes": token})
        if answer.error_code:
            detail = answer.error_message or ErrorCode(answer.error_code).name
            raise AuthError(
                f"{peer.address} refused the login of '{sasl.username}': {detail}",
                code=ErrorCode(answer.error_code).name,
            )
        try:
            token = talk.send(answer.auth_bytes)
        except StopIteration:
            peer.end_after(getattr(answer, "session_lifetime_ms", 0))
            return


def _choose_mechanism(peer: Peer, mechanism: str) -> Steps[None]:
    """A listener without SASL closes the connection or answers ILLEGAL_SASL_STATE."""
    try:
        answer = yield from _asked(peer, SASL_HANDSHAKE, {"mechanism": mechanism})
    except UnreachableError as error:
        error.message += " (does this listener use SASL?)"
        error.args = (error.message,)
        raise
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms)
        raise AuthError(
            f"{peer.address} does not take the SASL mechanism {mechanism}; it takes {offered}",
            code="UNSUPPORTED_SASL_MECHANISM",
        )
    if answer.error_code:
        name = ErrorCode(answer.error_code).name
        raise AuthError(f"{peer.address} refused SASL: {name} (does this listener use SASL?)", code=name)
