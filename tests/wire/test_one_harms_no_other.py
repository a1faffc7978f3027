"""What one client does wrong, or in masses, is its own affair."""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.errors import InvariantViolation, StorageError
from kgctl.serde.messages import encode_request
from kgctl.serde.record_batch import HEADER_BYTES, Record, build_batch
from kgctl.server.background import BackgroundServer
from tests.support.wire.raw_client import ConnectionClosed, RawClient

PRODUCE, FETCH, LIST_OFFSETS, HEARTBEAT, LIST_GROUPS = 0, 1, 2, 12, 16
UNKNOWN_SERVER_ERROR, KAFKA_STORAGE_ERROR, MESSAGE_TOO_LARGE, INVALID_RECORD = -1, 56, 10, 87
BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    with BackgroundServer(topics={"t": 1}) as running:
        yield running


def produce(raw: RawClient, batch: bytes) -> int:
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    body = raw.call(PRODUCE, 9, {"transactional_id": None, "acks": -1, "timeout_ms": 1_000, "topic_data": data})
    return int(body.responses[0].partition_responses[0].error_code)


def fetch_and_wait(raw: RawClient) -> None:
    """Park a request on this connection."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]
    topics = [{"topic": "t", "partitions": partitions}]
    raw.send(
        FETCH,
        4,
        {"replica_id": -1, "max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": 1_000, "isolation_level": 0, "topics": topics},
    )


def test_a_client_that_only_sends_is_not_read_from(server: BackgroundServer) -> None:
    size = 8 << 20
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        fetch_and_wait(raw)
        raw.socket.settimeout(1)
        sent = send_until_nobody_reads(raw.socket, [struct.pack(">i", size), *[bytes(1 << 16)] * (size >> 16)] * 16)

        assert sent < 2 * size + (8 << 20)  # one request under way, the rest in the buffers of the two sockets
        assert server.server.host.budget.used <= size + 4
        assert other.call(LIST_GROUPS, 4).error_code == 0


def send_until_nobody_reads(connection: socket.socket, parts: list[bytes]) -> int:
    """How many bytes went out."""
    sent = 0
    for part in parts:
        try:
            connection.sendall(part)
        except TimeoutError:
            return sent
        sent += len(part)
    return sent


def test_large_requests_share_the_room_and_all_are_answered() -> None:
    with BackgroundServer(topics={"t": 1}, config={"queued.max.request.bytes": "1000000"}) as server:
        clients = [RawClient(server.bootstrap) for _ in range(4)]
        batch = build_batch([Record(0, 1, None, bytes(900_000))])
        data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
        values = {"transactional_id": None, "acks": -1, "timeout_ms": 1_000, "topic_data": data}
        for raw in clients:
            raw.send_payload(encode_request(PRODUCE, 9, 1, "raw", values))
        for raw in clients:
            assert raw.receive()
            raw.close()

        assert server.server.host.budget.used == 0


def test_max_connections() -> None:
    with (
        BackgroundServer(config={"max.connections": "2"}) as server,
        RawClient(server.bootstrap) as raw,
        RawClient(server.bootstrap),
    ):
        assert raw.call(LIST_GROUPS, 4).error_code == 0
        with RawClient(server.bootstrap) as second:
            assert second.is_closed()
        assert raw.call(LIST_GROUPS, 4).error_code == 0


def test_a_failing_timer_reaches_nobody_elses_connection(
    server: BackgroundServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = server.server.services.runtime

    def fail(now_ms: int) -> Any:
        raise InvariantViolation("broken", group="bad")

    async def expire() -> None:
        runtime._expire()

    monkeypatch.setattr(runtime.core, "expire", fail)
    with RawClient(server.bootstrap) as raw:
        server.run(expire())
        monkeypatch.undo()

        assert raw.call(HEARTBEAT, 4, BEAT).error_code == 25
    assert "a timer of group bad failed: broken" in caplog.text


def test_a_failing_handler_answers_whom_it_concerns(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    core = server.server.services.runtime.core
    handle = core.handle

    def fail(request: Any, now_ms: int) -> Any:
        if getattr(request, "group_id", None) == "bad":
            raise InvariantViolation("broken", group="bad")
        return handle(request, now_ms)

    monkeypatch.setattr(core, "handle", fail)
    with RawClient(server.bootstrap) as raw:
        assert raw.call(HEARTBEAT, 4, {**BEAT, "group_id": "bad"}).error_code == UNKNOWN_SERVER_ERROR
        assert raw.call(HEARTBEAT, 4, BEAT).error_code == 25


def test_the_same_protocol_twice_closes_no_connection() -> None:
    with BackgroundServer(config={"group.initial.rebalance.delay.ms": "0"}) as server, RawClient(server.bootstrap) as raw:
        protocols = [{"name": "range", "metadata": b""}] * 2
        values = {
            "group_id": "bad",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 100,
            "member_id": "",
            "protocol_type": "consumer",
        }
        raw.send(11, 3, {**values, "protocols": protocols})
        with RawClient(server.bootstrap) as other:
            for _ in range(20):
                assert other.call(HEARTBEAT, 4, BEAT).error_code == 25


def compressed(payload: bytes, count: int) -> bytes:
    """A gzip batch that says that this is ``count`` records."""
    plain = bytearray(build_batch([Record(0, 1, None, b"")]))
    plain[HEADER_BYTES:] = gzip.compress(payload)
    plain[8:12] = struct.pack(">i", len(plain) - 12)
    plain[21:23] = struct.pack(">h", 1)
    plain[23:27] = struct.pack(">i", count - 1)
    plain[57:61] = struct.pack(">i", count)
    from google_crc32c import value as crc32c

    plain[17:21] = struct.pack(">I", crc32c(bytes(plain[21:])))
    return bytes(plain)


def varint(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_a_small_batch_that_unpacks_to_much_is_refused(server: BackgroundServer) -> None:
    size = 200_000_000
    inner = b"\0\0\0" + b"\x01" + varint(size)
    bomb = compressed(varint(len(inner) + size + 1) + inner + bytes(size) + b"\0", 1)

    assert len(bomb) < 300_000
    with RawClient(server.bootstrap) as raw:
        assert produce(raw, bomb) == MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    "batch",
    [
        compressed(b"\0" * 50, 1),
        compressed(b"no records", 3),
        compressed(build_batch([Record(0, 1, b"k", b"v")])[HEADER_BYTES:] + b"more", 1),
        compressed(build_batch([Record(0, 1, b"k", b"v")])[HEADER_BYTES:], 2),
        build_batch([Record(0, 1, b"k", b"v")])[:HEADER_BYTES],
    ],
    ids=["zeros", "text", "more than records", "fewer than it says", "cut off"],
)
def test_what_is_no_records_is_refused_at_produce(server: BackgroundServer, batch: bytes) -> None:
    with RawClient(server.bootstrap) as raw:
        assert produce(raw, batch) == INVALID_RECORD
        assert produce(raw, compressed(build_batch([Record(0, 1, b"k", b"v")])[HEADER_BYTES:], 1)) == 0


def test_a_full_disk_is_an_answer_and_one_line(
    server: BackgroundServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise StorageError("topics.db: cannot write: the disk is full")

    batch = build_batch([Record(0, 1, b"k", b"v")])
    with RawClient(server.bootstrap) as raw:
        with monkeypatch.context() as full:
            full.setattr(server.server.services.data._topics, "append_batch", fail)
            assert [produce(raw, batch) for _ in range(5)] == [KAFKA_STORAGE_ERROR] * 5
        assert [record.getMessage() for record in caplog.records] == ["topics.db: cannot write: the disk is full"]
        assert produce(raw, batch) == 0


def test_a_frame_that_is_too_large_ends_its_connection_only(server: BackgroundServer) -> None:
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        raw.socket.sendall(struct.pack(">i", 2**31 - 1))
        with pytest.raises((ConnectionClosed, ConnectionResetError)):
            raw.receive()
        assert other.call(LIST_GROUPS, 4).error_code == 0
    with socket.create_connection(("127.0.0.1", int(server.bootstrap.rpartition(":")[2]))) as again:
        assert again is not None
