"""The listeners of a broker: where each is, what clients that came in by it are told, and by which protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgctl.errors import UsageError, did_you_mean
from kgctl.model.values import frozen_in_order

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PROTOCOL_MAP = "listener.security.protocol.map"
Address = tuple[str, int]
"""Host and port; the port 0 is one that is not known yet."""


@frozen_in_order
class BrokerListener:
    """One that every broker of a cluster has: the first broker at ``port``, the next one at ``port + 1``.

    ``port`` 0 picks free ones. ``advertised`` is what clients are told, where they find it elsewhere: its port rises in the same
    way, and its port 0 stands for the one that is listened on.
    """

    name: str = "PLAINTEXT"
    protocol: str = "PLAINTEXT"
    host: str = "127.0.0.1"
    port: int = 0
    advertised: Address | None = None

    def of_broker(self, index: int) -> Endpoint:
        """That of the broker that stands at this place."""
        told = self.advertised and (self.advertised[0], _raised(self.advertised[1], index))
        return Endpoint(self, _raised(self.port, index), told)


def _raised(port: int, index: int) -> int:
    return port + index if port else 0


@dataclass(slots=True)
class Endpoint:
    """A listener of one broker. ``port`` is 0 until it listens, where it was to pick one."""

    listener: BrokerListener
    port: int
    advertised: Address | None = None

    @property
    def address(self) -> str:
        """``HOST:PORT`` where it listens, as clients take it: IPv6 in brackets."""
        return host_and_port(self.listener.host, self.port)

    @property
    def told(self) -> Address:
        """Host and port that clients are told."""
        if self.advertised is None:
            return self.listener.host, self.port
        return self.advertised[0], self.advertised[1] or self.port


def host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_host_and_port(text: str, what: str) -> Address:
    """``HOST:PORT``, IPv6 in brackets. Raises `UsageError`, which begins with ``what``."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port[:6]) > 65_535:
        raise UsageError(f"{what}: {text!r} is not HOST:PORT")
    return host, int(port)


def split_name(text: str) -> tuple[str, str]:
    """``[NAME://]HOST:PORT``, as Kafka's ``listeners`` has it, in two; without a name the first is empty."""
    name, _, address = text.rpartition("://")
    return name.upper(), address


def protocol_of(name: str, config: Mapping[str, str], what: str) -> str:
    """The protocol of a listener: its name, or what `PROTOCOL_MAP` says of it. Raises `UsageError`."""
    pairs = [pair.strip().partition(":") for pair in config.get(PROTOCOL_MAP, "").split(",") if pair.strip()]
    known = {protocol: protocol for protocol in PROTOCOLS} | {each.strip().upper(): word.strip() for each, _, word in pairs}
    if name not in known:
        raise UsageError(f"{what}: {name!r} is none of {', '.join(known)}; {PROTOCOL_MAP} names others")
    if known[name] not in PROTOCOLS:
        raise UsageError(f"setting {PROTOCOL_MAP!r}: {known[name]!r} is none of {', '.join(PROTOCOLS)}")
    return known[name]


def check_listeners(listeners: Sequence[BrokerListener], brokers: int) -> None:
    """Raises `UsageError` where two have one name, or brokers would have one port twice."""
    names = [listener.name for listener in listeners]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"there are two listeners {twice[0]!r}: {PROTOCOL_MAP} names them apart")
    taken: dict[int, str] = {}
    for listener in listeners:
        for port in range(listener.port, listener.port + brokers) if listener.port else ():
            if port in taken:
                raise UsageError(f"port {port} would be one of listener {taken[port]} and of {listener.name}: {brokers} brokers")
            taken[port] = listener.name


def listener_named(name: str, listeners: Sequence[BrokerListener]) -> BrokerListener:
    """Raises `UsageError` where there is none."""
    found = next((listener for listener in listeners if listener.name == name.upper()), None)
    if found is None:
        names = [listener.name for listener in listeners]
        raise UsageError(f"there is no listener {name!r}{did_you_mean(name, names)}: there are {', '.join(names)}")
    return found
