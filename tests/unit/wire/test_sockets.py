"""TCP connections: names looked up and addresses tried, all within the time."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from kgctl.errors import TimedOutError, UnreachableError
from kgctl.wire.deadline import Deadline
from kgctl.wire.settings import Address, WireSettings
from kgctl.wire.sockets import open_socket
from tests.support.patience import PATIENCE_MS, PATIENCE_S, SOON_S

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


def test_an_ipv6_server_is_reached() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on this machine's loopback")
    with listener, opened("::1", listener.getsockname()[1]) as sock:
        assert sock.family is socket.AF_INET6
