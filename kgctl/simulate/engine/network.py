"""How long messages are under way.

A lost message is sent again after 200 ms, then after twice as long each time, as TCP does; so loss and short partitions show as
delay, and later messages of the connection wait behind. After 30 s the connection is taken as broken: the message never arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kgctl.member.api import Rng
from kgctl.simulate.scenario.model import Network
from kgctl.simulate.scenario.quantities import Constant, Distribution

RETRANSMIT_US = 200_000
GIVE_UP_US = 30_000_000
FOREVER_US = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFault:
    """Something wrong with a pod's network until ``until_us``. None: as it is otherwise."""

    latency: Distribution | None = None
    loss_ppm: int | None = None
    is_partition: bool = False
    until_us: int = FOREVER_US


class Link:
    """A pod's connection to its coordinator. Messages of one direction never overtake each other."""

    __slots__ = (
        "_arrived",
        "_constant_us",
        "_drawn_from",
        "_faults",
        "_latency",
        "_loss_ppm",
        "_network",
        "_new_rng",
        "_partitioned_until",
    )

    def __init__(self, network: Network, new_rng: Callable[[], Rng]) -> None:
        self._network = network
        self._new_rng = new_rng
        self._drawn_from: Rng | None = None
        self._faults: list[LinkFault] = []
        self._arrived = [0, 0]
        self._refresh()

    @property
    def is_clean(self) -> bool:
        """Return whether the link loses no messages."""
        return self._loss_ppm == 0 and self._partitioned_until == 0

    @property
    def is_partitioned(self) -> bool:
        """Whether a fault keeps everything from coming through."""
        return self._partitioned_until > 0

    @property
    def mean_us(self) -> int:
        """Return the mean latency of one direction."""
        return self._latency.mean_us

    def reconnect(self) -> None:
        """Open a new connection, for a new process."""
        self._arrived = [0, 0]

    def add(self, fault: LinkFault) -> None:
        """Put a fault on the link."""
        self._faults.append(fault)
        self._refresh()

    def remove(self, fault: LinkFault) -> None:
        """Take a fault off the link."""
        self._faults.remove(fault)
        self._refresh()

    def arrival_us(self, now_us: int, direction: int) -> int | None:
        """When a message that is sent now arrives; None: never. ``direction``: 0 to the broker, 1 from it."""
        arrival_us = now_us + self._constant_us if self._constant_us >= 0 else self._travel(now_us)
        if arrival_us is None:
            return None
        if arrival_us < self._arrived[direction]:
            return self._arrived[direction]
        self._arrived[direction] = arrival_us
        return arrival_us

    @property
    def _rng(self) -> Rng:
        """Made when something is drawn: most links always take the same time."""
        if self._drawn_from is None:
            self._drawn_from = self._new_rng()
        return self._drawn_from

    def _travel(self, now_us: int) -> int | None:
        sent_us, wait_us = now_us, RETRANSMIT_US
        while sent_us - now_us <= GIVE_UP_US:
            is_lost = sent_us < self._partitioned_until
            if not is_lost and self._loss_ppm:
                is_lost = self._rng.random() * 1_000_000 < self._loss_ppm
            if not is_lost:
                return sent_us + self._latency.sample(self._rng)
            sent_us += wait_us
            wait_us *= 2
        return None

    def _refresh(self) -> None:
        """The newest fault that says something about a thing counts."""
        self._latency = self._network.client
        self._loss_ppm = self._network.loss_ppm
        self._partitioned_until = 0
        for fault in self._faults:
            self._latency = fault.latency or self._latency
            self._loss_ppm = self._loss_ppm if fault.loss_ppm is None else fault.loss_ppm
            if fault.is_partition:
                self._partitioned_until = max(self._partitioned_until, fault.until_us)
        is_constant = isinstance(self._latency, Constant) and self.is_clean
        self._constant_us = self._latency.mean_us if is_constant else -1
