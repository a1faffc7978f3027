"""One connection: requests sent ahead, answers in order, every way in which a peer can fail."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kgctl.errors import TimedOutError, UnreachableError, UnsupportedError
from kgctl.serde.frames import frame
from kgctl.serde.messages import DecodedRequest, encode_response
from kgctl.wire.apis import LIST_GROUPS, METADATA, OFFSET_DELETE
from kgctl.wire.connection import Connection, Request
from kgctl.wire.deadline import Deadline
from kgctl.wire.handshake import open_connection
from kgctl.wire.settings import Address, WireSettings
from tests.support.fake_broker import CLOSE, SILENCE, FakeBroker, Handler
from tests.support.patience import PATIENCE_MS, SOON_S


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
        pytest.raises(UnsupportedError, match="does not serve OffsetDelete"),
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
        pytest.raises(UnreachableError, match=r"closed the connection at ListGroups.*want SASL\?"),
    ):
        connection.call(LIST_GROUPS, {}, Deadline(PATIENCE_MS))


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
