"""One connection: requests sent ahead, answers in order, every way in which a peer can fail."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scramp import ScramMechanism

from kgctl.errors import AuthError, TimedOutError, UnreachableError, UnsupportedError, UsageError
from kgctl.serde.frames import frame
from kgctl.serde.messages import DecodedRequest, encode_response
from kgctl.wire import Deadline
from kgctl.wire.connection import (
    API_VERSIONS,
    LIST_GROUPS,
    METADATA,
    OFFSET_DELETE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Connection,
    Request,
    open_connection,
    open_socket,
)
from kgctl.wire.settings import Address, SaslSettings, TlsSettings, WireSettings
from tests.support.fake_broker import CLOSE, SILENCE, FakeBroker, Handler
from tests.support.patience import PATIENCE_MS, PATIENCE_S, SOON_S


@contextmanager
def connected(broker: FakeBroker, **settings: Any) -> Iterator[Connection]:
    address = Address("127.0.0.1", broker.port)
    connection = open_connection(address, WireSettings((address,), **settings), Deadline(PATIENCE_MS))
    try:
        yield connection
    finally:
        connection.close()


def group_named_by_the_filter(request: DecodedRequest) -> dict[str, Any]:
    return {"groups": [{"group_id": state} for state in request.body.states_filter]}


def test_answers_come_in_the_order_of_the_requests() -> None:
    with FakeBroker({LIST_GROUPS: group_named_by_the_filter}) as broker, connected(broker) as connection:
        requests = [Request(LIST_GROUPS, 5, {"states_filter": [f"g{number}"]}) for number in range(20)]
        answers = connection.call_all(requests, Deadline(PATIENCE_MS))

    assert [answer.groups[0].group_id for answer in answers] == [f"g{number}" for number in range(20)]


def test_the_client_id_is_sent() -> None:
    with FakeBroker({LIST_GROUPS: lambda _: {}}) as broker, connected(broker, client_id="me") as connection:
        connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))

        assert [request.client_id for request in broker.requests] == ["me", "me"]


def test_the_highest_common_version_is_used() -> None:
    with FakeBroker({LIST_GROUPS: lambda _: {}}, versions={LIST_GROUPS: (0, 3)}) as broker, connected(broker) as connection:
        connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))

        assert broker.requests[-1].api_version == 3


def test_an_api_that_the_broker_lacks_is_unsupported() -> None:
    with (
        FakeBroker() as broker,
        connected(broker) as connection,
        pytest.raises(UnsupportedError, match=r"too old for OffsetDelete, which needs Kafka 2\.4"),
    ):
        connection.call(OFFSET_DELETE, {}, Deadline(PATIENCE_MS))


def test_versions_without_overlap_are_unsupported() -> None:
    with FakeBroker(versions={LIST_GROUPS: (6, 9)}) as broker, connected(broker) as connection:
        assert not connection.versions.has(LIST_GROUPS)
        with pytest.raises(UnsupportedError):
            connection.version(LIST_GROUPS)


def test_a_broker_that_is_silent_times_out_within_the_time() -> None:
    with FakeBroker({LIST_GROUPS: lambda _: SILENCE}) as broker, connected(broker) as connection:
        started = time.monotonic()
        with pytest.raises(TimedOutError, match=r"did not answer within 0\.1 s"):
            connection.call(LIST_GROUPS, {}, Deadline(100))

        assert time.monotonic() - started < SOON_S
        assert connection.is_closed


def test_a_broker_that_hangs_up_is_unreachable() -> None:
    with (
        FakeBroker({LIST_GROUPS: lambda _: CLOSE}) as broker,
        connected(broker) as connection,
        pytest.raises(UnreachableError, match=r"closed the connection at ListGroups$") as caught,
    ):
        connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))
    assert (caught.value.is_lost, caught.value.may_want_login, caught.value.is_lasting) == (True, True, False)


def broken_answer(request: DecodedRequest) -> bytes:
    """An array of two thousand million groups in an answer of twenty bytes: it must not reach the codec."""
    return frame(encode_response(LIST_GROUPS.key, 5, request.correlation_id, {})[:-2] + b"\xff\xff\xff\xff\x7f")


def answer_to_another_request(request: DecodedRequest) -> bytes:
    return frame(encode_response(LIST_GROUPS.key, 5, request.correlation_id + 1, {}))


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (broken_answer, "bytes that cannot be read"),
        (answer_to_another_request, "out of order"),
        (lambda _: b"\x7f\xff\xff\xff", "speaks no Kafka"),
        (lambda _: b"\x15\x03\x03\x00\x02\x02\x50", "speaks TLS: set security.protocol"),
    ],
)
def test_bytes_that_are_no_answer_are_unreachable(handler: Handler, message: str) -> None:
    with FakeBroker({LIST_GROUPS: handler}) as broker, connected(broker) as connection:
        with pytest.raises(UnreachableError, match=message):
            connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))

        assert connection.is_closed


def test_an_answer_longer_than_the_limit_is_refused() -> None:
    answer = {"groups": [{"group_id": "g" * 200}]}
    with (
        FakeBroker({LIST_GROUPS: lambda _: answer}) as broker,
        connected(broker, max_frame_bytes=150) as connection,
        pytest.raises(UnreachableError, match="limit is 150"),
    ):
        connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))


def test_a_dead_port_is_unreachable_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
    started = time.monotonic()

    with pytest.raises(UnreachableError, match=r"cannot connect to .*refused"):
        open_connection(address, WireSettings((address,)), Deadline(PATIENCE_MS))
    assert time.monotonic() - started < SOON_S


def test_a_host_without_an_address_is_unreachable() -> None:
    address = Address("nosuch.invalid", 9092)

    with pytest.raises(UnreachableError, match=r"cannot resolve nosuch\.invalid"):
        open_connection(address, WireSettings((address,)), Deadline(PATIENCE_MS))


def test_a_name_outside_ascii_is_looked_up_as_text() -> None:
    address = Address("nöt-there.invalid", 9092)

    with pytest.raises(UnreachableError, match="cannot resolve nöt-there"):
        open_connection(address, WireSettings((address,)), Deadline(PATIENCE_MS))


def test_close_can_be_called_twice() -> None:
    with FakeBroker() as broker, connected(broker) as connection:
        connection.call(METADATA, {"topics": []}, Deadline(PATIENCE_MS))
        connection.close()
        connection.close()

        assert connection.is_closed


def open_to(broker: FakeBroker, **settings: Any) -> None:
    address = Address("127.0.0.1", broker.port)
    connection = open_connection(address, WireSettings((address,), **settings), Deadline(PATIENCE_MS))
    try:
        connection.call(METADATA, {"topics": []}, Deadline(PATIENCE_MS))
    finally:
        connection.close()


def too_new(request: DecodedRequest, ranges: bytes) -> bytes:
    """The answer to a version that is not known: version 0, whatever was asked, with error 35."""
    payload = request.correlation_id.to_bytes(4, "big") + b"\0\x23" + ranges
    return frame(payload)


def test_a_broker_that_only_says_that_the_version_is_too_new_is_asked_again() -> None:
    def handler(request: DecodedRequest) -> Any:
        if request.api_version == 0:
            return {"api_keys": [{"api_key": METADATA.key, "min_version": 0, "max_version": 1}]}
        return too_new(request, b"\0\0\0\0")

    with FakeBroker({API_VERSIONS: handler}) as broker:
        open_to(broker)

        assert [(request.api_key, request.api_version) for request in broker.requests] == [(18, 3), (18, 0), (3, 1)]


def test_the_list_that_comes_with_that_answer_is_used() -> None:
    def handler(request: DecodedRequest) -> bytes:
        return too_new(request, b"\0\0\0\x01" + b"\0\x03\0\0\0\x02")

    with FakeBroker({API_VERSIONS: handler}) as broker:
        open_to(broker)

        assert [(request.api_key, request.api_version) for request in broker.requests] == [(18, 3), (3, 2)]


def test_a_peer_that_is_no_broker_is_unreachable() -> None:
    with (
        FakeBroker({API_VERSIONS: lambda _: frame(b"HTTP/1.1 400 Bad Request")}) as broker,
        pytest.raises(UnreachableError, match="does not answer as a Kafka broker"),
    ):
        open_to(broker)


def test_a_broker_that_refuses_its_versions_is_unreachable() -> None:
    with (
        FakeBroker({API_VERSIONS: lambda _: {"error_code": 42}}) as broker,
        pytest.raises(UnreachableError, match="INVALID_REQUEST"),
    ):
        open_to(broker)


def plain_login(password: str) -> Handler:
    def handler(request: DecodedRequest) -> dict[str, Any]:
        if bytes(request.body.auth_bytes) == f"\0alice\0{password}".encode():
            return {}
        return {"error_code": 58, "error_message": "Invalid username or password"}

    return handler


def sasl(mechanism: str = "PLAIN", password: str = "secret") -> SaslSettings:
    return SaslSettings(mechanism, "alice", password)


def test_plain_sends_name_and_password() -> None:
    handlers = {SASL_HANDSHAKE: lambda _: {}, SASL_AUTHENTICATE: plain_login("secret")}
    with FakeBroker(handlers) as broker:
        open_to(broker, sasl=sasl())

        assert [request.api_key for request in broker.requests] == [18, 17, 36, 3]
        assert broker.asked(SASL_HANDSHAKE)[0].mechanism == "PLAIN"


@pytest.mark.parametrize(("lifetime_ms", "is_usable"), [(0, True), (60_000, False)])
def test_a_login_that_ends_makes_its_connection_unusable(
    monkeypatch: pytest.MonkeyPatch, lifetime_ms: int, is_usable: bool
) -> None:
    """KIP-368: a broker hangs up on who goes on after that."""
    monkeypatch.setattr("kgctl.wire.connection.LOGIN_SHARE", 0.0)
    handlers = {SASL_HANDSHAKE: lambda _: {}, SASL_AUTHENTICATE: lambda _: {"session_lifetime_ms": lifetime_ms}}
    with FakeBroker(handlers) as broker:
        address = Address("127.0.0.1", broker.port)
        with contextlib.closing(open_connection(address, WireSettings((address,), sasl=sasl()), Deadline(PATIENCE_MS))) as made:
            assert made.is_usable is is_usable


def test_a_refused_login_says_what_the_broker_said() -> None:
    handlers = {SASL_HANDSHAKE: lambda _: {}, SASL_AUTHENTICATE: plain_login("other")}
    with (
        FakeBroker(handlers) as broker,
        pytest.raises(AuthError, match="refused the login of 'alice': Invalid username or password") as caught,
    ):
        open_to(broker, sasl=sasl())

    assert caught.value.code == "SASL_AUTHENTICATION_FAILED"
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_proves_the_password_without_sending_it(mechanism: str) -> None:
    with FakeBroker({SASL_HANDSHAKE: lambda _: {}, SASL_AUTHENTICATE: scram_login(mechanism)}) as broker:
        open_to(broker, sasl=sasl(mechanism))

        sent = b"".join(bytes(body.auth_bytes) for body in broker.asked(SASL_AUTHENTICATE))
        assert b"n=alice" in sent
        assert b"secret" not in sent


def test_a_broker_that_cannot_prove_itself_is_refused() -> None:
    def forged(request: DecodedRequest) -> dict[str, Any]:
        answer: dict[str, Any] = honest(request)
        if answer["auth_bytes"].startswith(b"v="):
            answer["auth_bytes"] = b"v=" + b"A" * 43 + b"="
        return answer

    honest = scram_login("SCRAM-SHA-256")
    with (
        FakeBroker({SASL_HANDSHAKE: lambda _: {}, SASL_AUTHENTICATE: forged}) as broker,
        pytest.raises(AuthError, match="SCRAM-SHA-256 answer is wrong"),
    ):
        open_to(broker, sasl=sasl("SCRAM-SHA-256"))


def scram_login(mechanism: str) -> Any:
    server_side = ScramMechanism(mechanism)
    salt, stored_key, server_key, iterations = server_side.make_auth_info("secret", iteration_count=4096)
    server = server_side.make_server(lambda _: (salt, stored_key, server_key, iterations))

    def handler(request: DecodedRequest) -> dict[str, Any]:
        token = bytes(request.body.auth_bytes).decode()
        if token.startswith("n,"):
            server.set_client_first(token)
            return {"auth_bytes": server.get_server_first().encode()}
        server.set_client_final(token)
        return {"auth_bytes": server.get_server_final().encode()}

    return handler


def test_a_mechanism_that_the_broker_lacks_names_those_that_it_has() -> None:
    answer = {"error_code": 33, "mechanisms": ["SCRAM-SHA-512", "GSSAPI"]}
    with (
        FakeBroker({SASL_HANDSHAKE: lambda _: answer}) as broker,
        pytest.raises(AuthError, match="does not take the SASL mechanism PLAIN; it takes SCRAM-SHA-512, GSSAPI"),
    ):
        open_to(broker, sasl=sasl())


def test_a_listener_without_sasl_is_an_authentication_error() -> None:
    with (
        FakeBroker({SASL_HANDSHAKE: lambda _: {"error_code": 34}}) as broker,
        pytest.raises(AuthError, match=r"ILLEGAL_SASL_STATE \(does this listener use SASL\?\)"),
    ):
        open_to(broker, sasl=sasl())


def test_a_listener_that_hangs_up_at_the_login_is_unreachable() -> None:
    with (
        FakeBroker({SASL_HANDSHAKE: lambda _: CLOSE}) as broker,
        pytest.raises(UnreachableError, match=r"does this listener use SASL\?"),
    ):
        open_to(broker, sasl=sasl())


def test_a_listener_that_does_not_speak_tls_is_unreachable() -> None:
    """Kafka takes a TLS greeting for a request that is too long, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = Address("127.0.0.1", listener.getsockname()[1])
        peer = threading.Thread(target=hang_up_at_once, args=(listener,))
        peer.start()
        with pytest.raises(UnreachableError, match="TLS handshake failed"):
            open_connection(address, WireSettings((address,), tls=TlsSettings()), Deadline(PATIENCE_MS))
        peer.join()


def hang_up_at_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.recv(1)
    connection.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TlsSettings(ca_location="/nosuch/ca.pem"), r"ssl\.ca\.location: cannot use /nosuch/ca\.pem: No such file"),
        (TlsSettings(ca_pem="no certificate"), r"ssl\.ca\.pem: cannot use the given text"),
        (TlsSettings(crl_location="/nosuch/crl"), r"ssl\.crl\.location: cannot use /nosuch/crl"),
        (TlsSettings(ciphers="NOSUCH"), r"ssl\.cipher\.suites: cannot use NOSUCH"),
        (TlsSettings(certificate_location="/nosuch/c"), r"ssl\.certificate\.location: cannot use /nosuch/c"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_a_usage_error_before_anything_is_contacted(
    settings: TlsSettings, message: str
) -> None:
    with FakeBroker() as broker:
        with pytest.raises(UsageError, match=message):
            open_to(broker, tls=settings)

        assert broker.requests == []


def test_only_the_given_authorities_are_trusted(tmp_path: Path) -> None:
    import trustme

    from kgctl.wire.security import tls_context

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = tls_context(TlsSettings(ca_location=str(tmp_path / "ca.pem")))

    assert context.cert_store_stats()["x509_ca"] == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_verification_can_be_switched_off() -> None:
    from kgctl.wire.security import tls_context

    context = tls_context(TlsSettings(verify=False))

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_a_certificate_and_key_can_be_given_as_text() -> None:
    import trustme

    from kgctl.wire.security import tls_context

    client = trustme.CA().issue_cert("me@localhost")
    certificate, key = client.cert_chain_pems[0].bytes().decode(), client.private_key_pem.bytes().decode()

    context = tls_context(TlsSettings(certificate_pem=certificate, key_pem=key.replace("\n", "\\n")))

    assert context.verify_mode is ssl.CERT_REQUIRED


V4 = (socket.AF_INET, socket.SOCK_STREAM, 6, "")


def opened(host: str, port: int, deadline: Deadline | None = None, family: str = "any") -> socket.socket:
    address = Address(host, port)
    return open_socket(address, WireSettings((address,), address_family=family), deadline or Deadline(PATIENCE_MS))


def test_each_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:
        dead_target = dead.getsockname()
    with socket.create_server(("127.0.0.1", 0)) as alive:
        answer = [(*V4, dead_target), (*V4, alive.getsockname())]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answer)
        with opened("both.example", 1) as sock:
            assert sock.getpeername() == alive.getsockname()


def test_a_name_server_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: done.wait(PATIENCE_S) and [])
    started = time.monotonic()
    with pytest.raises(TimedOutError, match=r"the name server, asked for slow\.example, did not answer within 0\.1 s"):
        opened("slow.example", 1, Deadline(100))
    done.set()

    assert time.monotonic() - started < SOON_S


@pytest.mark.parametrize(("family", "expected"), [("v4", socket.AF_INET), ("v6", socket.AF_INET6), ("any", socket.AF_UNSPEC)])
def test_the_address_family_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, family: str, expected: int) -> None:
    asked: list[Any] = []

    def getaddrinfo(*arguments: Any) -> list[Any]:
        asked.append(arguments)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(UnreachableError, match="no address"):
        opened("127.0.0.1", 1, family=family)
    assert asked == [(b"127.0.0.1", 1, expected, socket.SOCK_STREAM)]


@pytest.mark.needs("ipv6")
def test_an_ipv6_server_is_reached() -> None:
    listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    with listener, opened("::1", listener.getsockname()[1]) as sock:
        assert sock.family is socket.AF_INET6
