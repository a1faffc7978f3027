"""From an address to a TCP connection: names looked up and addresses tried, all within the time."""

from __future__ import annotations

import socket
import threading
from typing import Any

from kgctl.errors import UnreachableError
from kgctl.wire.deadline import Deadline
from kgctl.wire.settings import Address, WireSettings

_FAMILIES = {"v4": socket.AF_INET, "v6": socket.AF_INET6}


def open_socket(address: Address, settings: WireSettings, deadline: Deadline) -> socket.socket:
    """A TCP connection to the first of the host's addresses that takes one. Raises `UnreachableError`, `TimedOutError`."""
    found = _look_up(address, _FAMILIES.get(settings.address_family, socket.AF_UNSPEC), deadline)
    failure: OSError | None = None
    for position, (kind, _, protocol, _, target) in enumerate(found):
        sock = socket.socket(kind, socket.SOCK_STREAM, protocol)
        sock.settimeout(deadline.seconds_left(str(address)) / (len(found) - position))
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
        raise UnreachableError(f"cannot resolve {address.host}: {getattr(error, 'strerror', None) or error}") from None


def _encoded(host: str) -> str | bytes:
    """Bytes where they are plain ASCII: text would load the tables of international names, some 5 ms."""
    return host.encode() if host.isascii() else host
