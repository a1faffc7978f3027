"""Raw bytes on sockets: what one client does must not matter to another."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.messages import decode_response, encode_request
from kgctl.server.background import BackgroundServer
from kgctl.server.service import default_registry
from tests.support.members import wait_until
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import ConnectionClosed, RawClient

API_VERSIONS, METADATA, HEARTBEAT, LIST_GROUPS, FETCH, PRODUCE = 18, 3, 12, 16, 1, 0
FORGED_COUNT = bytes.fromhex("ffffffff7f0000")


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    config = {"group.initial.rebalance.delay.ms": "0", "socket.request.max.bytes": "100000"}
    with BackgroundServer(topics={"t": 2}, config=config) as running:
        yield running


@pytest.fixture
def raw(server: BackgroundServer) -> Iterator[RawClient]:
    with RawClient(server.bootstrap) as client:
        yield client


def header(api_key: int, version: int, correlation_id: int = 1) -> bytes:
    flexible = b"\x00" if (api_key, version) in ((LIST_GROUPS, 5), (HEARTBEAT, 4)) else b""
    return struct.pack(">hhih", api_key, version, correlation_id, 0) + flexible


HOSTILE = {
    "a forged array length": (header(LIST_GROUPS, 5) + FORGED_COUNT, "an array of 34359738366 elements"),
    "a body cut off": (header(HEARTBEAT, 3) + b"\x00\x05ab", "a value of 5 bytes where 2 are left"),
    "no body": (header(HEARTBEAT, 3), "ends too early"),
    "no header": (b"\x00\x12", "no room for a header"),
    "an empty frame": (b"", "no room for a header"),
    "an API that is not served": (header(7, 0), "API key 7 is not served"),
    "a version of the future": (header(METADATA, 99), "Metadata version 99 is not served"),
    "a version of the past": (header(FETCH, 2), "Fetch version 2 is not served"),
    "a negative version": (header(API_VERSIONS + 1, -1), "CreateTopics version -1 is not served"),
}


@pytest.mark.parametrize(("payload", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_read_closes_its_own_connection_and_no_other(
    payload: bytes, reason: str, server: BackgroundServer, raw: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    bystander = ClassicMember(raw, "bystanders", ["t"])
    bystander.join()
    with RawClient(server.bootstrap) as hostile, caplog.at_level(logging.WARNING, "kgctl.server"):
        hostile.send_payload(payload)

        assert hostile.is_closed()

    assert any("closing the connection of 127.0.0.1:" in line and reason in line for line in caplog.messages)
    assert bystander.heartbeat() == 0
    assert bystander.leave() == 0


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [(b"\x00\x01\x86\xa1", "a frame of 100001 bytes, the limit is 100000"), (b"\xff\xff\xff\xff", "-1 bytes")],
)
def test_a_frame_too_large_closes_the_connection_before_it_is_read(
    prefix: bytes, reason: str, server: BackgroundServer, caplog: pytest.LogCaptureFixture
) -> None:
    with RawClient(server.bootstrap) as hostile, caplog.at_level(logging.WARNING, "kgctl.server"):
        hostile.socket.sendall(prefix)

        assert hostile.is_closed()

    assert any(reason in line for line in caplog.messages)


def test_text_of_another_protocol_closes_the_connection(server: BackgroundServer) -> None:
    with RawClient(server.bootstrap) as hostile:
        hostile.socket.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

        assert hostile.is_closed()


def test_requests_before_a_bad_one_are_answered(raw: RawClient) -> None:
    raw.send(METADATA, 9, {"topics": None})
    raw.send_payload(header(METADATA, 99))

    assert raw.receive()

    with pytest.raises(ConnectionClosed):
        raw.receive()


def test_api_versions_of_the_future_is_answered_in_version_0_with_its_own_range(raw: RawClient) -> None:
    raw.send_payload(header(API_VERSIONS, 77, 5) + b"\x00")
    correlation_id, body = decode_response(API_VERSIONS, 0, raw.receive())

    assert (correlation_id, int(body.error_code)) == (5, ErrorCode.UNSUPPORTED_VERSION)
    assert [(entry.api_key, entry.min_version, entry.max_version) for entry in body.api_keys] == [(18, 0, 4)]
    assert int(raw.call(API_VERSIONS, 0).error_code) == 0


def test_api_versions_is_derived_from_the_registry(raw: RawClient) -> None:
    body = raw.call(API_VERSIONS, 4, {"client_software_name": "kgctl", "client_software_version": "1"})
    advertised = {entry.api_key: (entry.min_version, entry.max_version) for entry in body.api_keys}

    assert advertised == {
        spec.key: (spec.min_version if spec.advertised_min is None else spec.advertised_min, spec.max_version)
        for spec in default_registry().specs()
    }
    assert advertised[PRODUCE] == (0, 13)


@pytest.mark.parametrize("name", ["", "-kgctl", "kg ctl", "kgctl."])
def test_a_client_software_name_that_is_none_is_an_invalid_request(name: str, raw: RawClient) -> None:
    body = raw.call(API_VERSIONS, 3, {"client_software_name": name, "client_software_version": "1"})

    assert (int(body.error_code), body.api_keys) == (ErrorCode.INVALID_REQUEST, ())


def test_unknown_tagged_fields_and_bytes_after_the_end_are_tolerated(raw: RawClient) -> None:
    payload = encode_request(HEARTBEAT, 4, 3, "c", {"group_id": "nosuch", "generation_id": 1, "member_id": "m"})
    raw.send_payload(payload[:-1] + b"\x01\x63\x03abc" + b"trailing")

    assert int(decode_response(HEARTBEAT, 4, raw.receive())[1].error_code) == ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_in_one_packet_are_answered_in_their_order(raw: RawClient) -> None:
    """Also behind a fetch that waits: Kafka looks at the next request when the one before it is answered."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    fetch = {"max_wait_ms": 150, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [partition]}]}
    requests: list[tuple[int, int, dict[str, Any]]] = [
        (FETCH, 11, fetch),
        (LIST_GROUPS, 3, {}),
        (API_VERSIONS, 0, {}),
        (FETCH, 11, fetch),
        (METADATA, 1, {"topics": []}),
    ]
    frames = [encode_request(key, version, number, "c", values) for number, (key, version, values) in enumerate(requests)]
    raw.socket.sendall(b"".join(struct.pack(">i", len(data)) + data for data in frames))

    assert [struct.unpack(">i", raw.receive()[:4])[0] for _ in requests] == [0, 1, 2, 3, 4]


def test_a_client_that_leaves_while_it_waits_is_forgotten(server: BackgroundServer, raw: RawClient) -> None:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    for _ in range(5):
        with RawClient(server.bootstrap) as waiting:
            waiting.send(
                FETCH, 11, {"max_wait_ms": 60_000, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [partition]}]}
            )
            waiting.socket.shutdown(socket.SHUT_RDWR)
    raw.call(API_VERSIONS, 0)
    wait_until(lambda: len(server.server.host.connections) == 1, "only the connection of this test is left")
    wait_until(lambda: not server.server.services.data.signal.is_watched, "nobody waits for data any more")


def test_a_client_that_only_sends_is_read_no_further(server: BackgroundServer, raw: RawClient) -> None:
    """A join that is parked, and then requests without end behind it: they stay in the client's own socket."""
    waiting = encode_request(
        FETCH,
        11,
        1,
        "c",
        {"max_wait_ms": 60_000, "min_bytes": 1, "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0}]}]},
    )
    request = encode_request(LIST_GROUPS, 3, 1, "c" * 1_000, {})
    with RawClient(server.bootstrap) as greedy:
        greedy.socket.setblocking(False)
        greedy.socket.send(struct.pack(">i", len(waiting)) + waiting)
        burst = (struct.pack(">i", len(request)) + request) * 1_000
        sent = 0
        try:
            while sent < 200_000_000:
                sent += greedy.socket.send(burst)
        except BlockingIOError:
            pass

        assert sent < 100_000_000
        assert raw.call(LIST_GROUPS, 3) is not None


def test_many_that_come_at_once_are_let_in_a_few_a_turn() -> None:
    async def growth() -> list[int]:
        found: list[int] = []
        while sum(found) < len(clients):
            before = len(running.server.host.connections)
            await asyncio.sleep(0)
            found.append(len(running.server.host.connections) - before)
        return found

    async def hold() -> list[int]:
        clients.extend(socket.create_connection((host, int(port))) for _ in range(300))
        return await growth()

    clients: list[socket.socket] = []
    with BackgroundServer() as running:
        host, port = running.bootstrap.split(":")
        grown = running.run(hold())
        for client in clients:
            client.close()

    assert (sum(grown), max(grown) <= 65) == (300, True)  # 64, and one more from Python 3.14 on
