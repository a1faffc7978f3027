"""Heartbeat round trips over the wire, kgctl serve and Apache Kafka in turns in the same run.

The client sends bytes that are made before and reads no more of an answer than its size, so that it weighs as little as it can.
"""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from kgctl.serde.frames import frame
from kgctl.serde.messages import encode_request
from tests.benchmarks.clusters import CLUSTERS, scratch
from tests.benchmarks.measure import BenchmarkError
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.wire.classic_member import HEARTBEAT, ClassicMember
from tests.support.wire.raw_client import RawClient

CONNECTIONS = (1, 50, 1_000)
SMALL_CONNECTIONS = (1, 50)
SESSION_MS = 300_000
VERSION = 4


@dataclass
class Beating:
    """Members of one server, each alone in its group on a connection of its own, and what was measured of them."""

    name: str
    members: list[ClassicMember]
    rates: list[float] = field(default_factory=list)
    round_trips_s: list[float] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Every member beats again as soon as it has its answer."""
        beats = {member.raw.socket: _heartbeat(member) for member in self.members}
        sent: dict[socket.socket, float] = {}
        started = time.perf_counter()
        with selectors.DefaultSelector() as selector:
            for each, beat in beats.items():
                selector.register(each, selectors.EVENT_READ)
                sent[each] = time.perf_counter()
                each.sendall(beat)
            count = self._loop(selector, beats, sent, started + seconds)
        self.rates.append(count / (time.perf_counter() - started))

    def _loop(
        self, selector: selectors.BaseSelector, beats: dict[socket.socket, bytes], sent: dict[socket.socket, float], until: float
    ) -> int:
        count = 0
        while sent:
            for key, _ in selector.select():
                each = key.fileobj
                assert isinstance(each, socket.socket)
                _read_frame(each)
                now = time.perf_counter()
                self.round_trips_s.append(now - sent.pop(each))
                count += 1
                if now < until:
                    sent[each] = now
                    each.sendall(beats[each])
        return count

    def row(self) -> Row:
        """The best run, the median one, and half and nearly all round trips."""
        self.round_trips_s.sort()
        half, most = (self.round_trips_s[int(len(self.round_trips_s) * share)] * 1e6 for share in (0.5, 0.99))
        numbers = (f"{max(self.rates):,.0f}", f"{statistics.median(self.rates):,.0f}", f"{half:,.0f}", f"{most:,.0f}")
        return Row(f"{self.name}, {len(self.members)} connection{'s' if len(self.members) > 1 else ''}", numbers)

    def check(self) -> None:
        """Raises BenchmarkError when a member was thrown out."""
        errors = {member.heartbeat() for member in self.members}
        if errors != {0}:
            raise BenchmarkError(f"{self.name} answered heartbeats with {errors}")


def measure(clusters: Sequence[str], scale: Scale) -> Sequence[Row]:
    """All servers up at once, in turns: what else the machine does falls on all of them."""
    numbers = SMALL_CONNECTIONS if scale.small else CONNECTIONS
    with scratch() as folder, ExitStack() as stack:
        running = [stack.enter_context(CLUSTERS[name](folder / name)) for name in sorted(clusters, reverse=True)]
        beating = [Beating(cluster.name, joined(stack, cluster.bootstrap, number)) for number in numbers for cluster in running]
        for turn in range(scale.runs + 1):
            for each in beating:
                each.run(scale.seconds)
                if turn == 0:  # the first run of all warms up
                    each.rates.clear()
                    each.round_trips_s.clear()
        for each in beating:
            each.check()
        return [each.row() for each in beating]


def joined(stack: ExitStack, bootstrap: str, number: int) -> list[ClassicMember]:
    """So many members, each alone in its group on a connection of its own."""
    members = []
    for place in range(number):
        raw = stack.enter_context(RawClient(bootstrap))
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        member = ClassicMember(raw, f"beating-{number}-{place}", ["orders"], session_timeout_ms=SESSION_MS)
        member.join()
        members.append(member)
    return members


def _heartbeat(member: ClassicMember) -> bytes:
    values = {"group_id": member.group, "generation_id": member.generation_id, "member_id": member.member_id}
    return frame(encode_request(HEARTBEAT, VERSION, 1, "benchmark", values))


def _read_frame(connection: socket.socket) -> None:
    data = connection.recv(4096)
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        part = connection.recv(4096)
        if not part:
            raise BenchmarkError("the server closed a connection")
        data += part


RATES = Rates(
    "heartbeats",
    "Heartbeat round trips on loopback, one under way on each connection",
    ("a second, best", "median", "p50 us", "p99 us"),
    measure,
)
