"""A pod: a name that outlives its processes, and its connection to the coordinator.

A lost message is sent again after 200 ms, then after twice as long each time, as TCP does; so loss and short partitions show as
delay, and later messages of the connection wait behind. After 30 s the connection is taken as broken: the message never arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kgctl.errors import UsageError
from kgctl.member.api import MemberIdentity, Rng
from kgctl.member.config import HeartbeatDrift, MemberConfig
from kgctl.member.runtime import draw
from kgctl.model.values import frozen_in_order
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.recording.trace import Harmed, PodChanged, PodWanted
from kgctl.simulate.scenario.event_port import LinkFault
from kgctl.simulate.scenario.fields import RANDOM_DRIFT, changed_settings, client_id_of, member_config
from kgctl.simulate.scenario.model import SECOND_US, MemberSet, Network
from kgctl.simulate.scenario.quantities import Constant
from kgctl.simulate.scenario.vocabulary import PodChange

if TYPE_CHECKING:
    from kgctl.simulate.engine.process import Process


RETRANSMIT_US = 200_000
GIVE_UP_US = 30_000_000


class Link:
    """A pod's connection to its coordinator. Messages of one direction never overtake each other."""

    __slots__ = (
        "_arrived", "_constant_us", "_drawn_from", "_faults", "_latency", "_loss_ppm", "_network", "_new_rng",
        "_partitioned_until",
    )  # fmt: skip

    def __init__(self, network: Network, new_rng: Callable[[], Rng]) -> None:
        self._network = network
        self._new_rng = new_rng
        self._drawn_from: Rng | None = None
        self._faults: list[LinkFault] = []
        self._arrived = [0, 0]
        self._refresh()

    @property
    def is_clean(self) -> bool:
        return self._loss_ppm == 0 and self._partitioned_until == 0

    @property
    def is_partitioned(self) -> bool:
        return self._partitioned_until > 0

    @property
    def mean_us(self) -> int:
        return self._latency.mean_us

    def reconnect(self) -> None:
        """Open a new connection, for a new process."""
        self._arrived = [0, 0]

    def add(self, fault: LinkFault) -> None:
        """Put a fault on the link."""
        self._faults.append(fault)
        self._refresh()

    def remove(self, fault: LinkFault) -> None:
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


FIRST_BACK_OFF_US = 10 * SECOND_US
LONGEST_BACK_OFF_US = 300 * SECOND_US
FORGIVEN_AFTER_US = 600 * SECOND_US


TIGHT = HeartbeatDrift(constant_us=5_000, walk_us=5_000, jitter_us=5_000)
"""Of an application that calls poll() without a pause, which wakes Java's heartbeat thread when a beat is due: 3.00 to 3.01 s."""


class Nodes:
    """The machines that pods run on, numbered from 1; none: every pod is on node 0."""

    def __init__(self, count: int, pods: Sequence[Pod]) -> None:
        self._count = count
        self._pods = pods
        self.closed: dict[int, None] = {}
        """Nodes that get no pods: drained ones, and lost ones."""

    def place(self) -> int:
        """Return the open node with the fewest pods; of several, the first."""
        if not self._count:
            return 0
        load = dict.fromkeys((node for node in range(1, self._count + 1) if node not in self.closed), 0)
        for pod in self._pods:
            if pod.is_wanted and pod.node in load:
                load[pod.node] += 1
        return min(load, key=load.__getitem__, default=0)


@frozen_in_order
class PodHome:
    """What pods are made with. ``versions``: set of members -> the consumer settings that its new pods have.

    ``new_process`` makes a process of a pod that has not begun to boot; ``subscription_of`` tells what (topics, pattern) the
    consumers of a set subscribe to.
    """

    context: RunContext
    nodes: Nodes
    versions: Mapping[str, Mapping[str, str]]
    new_process: Callable[[Pod], Process]
    subscription_of: Callable[[MemberSet], tuple[tuple[str, ...], str | None]]


class Pod:
    """One of the scenario's members. ``settings`` are those that its next process starts with."""

    __slots__ = (
        "_booted_us", "_failures", "_home", "_rngs", "_waiting", "context", "factor_ppm",
        "index", "instance_id", "is_wanted", "link", "member_rng", "members", "name", "node", "number", "poll_rng", "process",
        "rack", "ready_from_us", "settings", "zone",
    )  # fmt: skip

    def __init__(self, home: PodHome, members: MemberSet, index: int, number: int) -> None:
        context = home.context
        self._home = home
        self.context = context
        self.members = members
        self.index = index
        self.number = number
        self.name = f"{members.name}-{index}"
        self.instance_id = None if members.instance_id is None else members.instance_id.replace("$name", self.name)
        racks = context.scenario.cluster.racks
        self.rack = _rack(members.rack, index, racks)
        self.zone = self.rack or (_rack("spread", index, racks) if racks else None)
        """The rack that it runs in, whether it tells the brokers (``rack``) or not."""
        self.settings = dict(home.versions[members.name])
        self.link = Link(context.scenario.cluster.network, partial(context.randomness.stream, "link", self.name))
        self.poll_rng = context.randomness.stream("poll", self.name)
        self.member_rng = context.randomness.stream("member", self.name)
        self.process: Process | None = None
        self._rngs: dict[str, Rng] = {}
        self._booted_us = 0
        self._failures = 0
        self._waiting: list[Callable[[], None]] = []
        self.node = home.nodes.place()
        self.ready_from_us = 0
        """When its readiness probe succeeds, if its consumer runs by then."""
        self.is_wanted = members.start is not None
        """Whether it counts as one of the set's pods, running or not."""
        self.factor_ppm = 1_000_000
        """How much longer processing takes than usual."""

    def __str__(self) -> str:
        return self.name

    @property
    def member_set(self) -> str:
        return self.members.name

    @property
    def takes_time(self) -> bool:
        """Whether there are records that it takes time to process."""
        return self.members.rate_uhz is not None and self.context.has_traffic

    def rng(self, purpose: str) -> Rng:
        """Of what is drawn for this alone; made when it is needed, as few scenarios draw any."""
        if purpose not in self._rngs:
            self._rngs[purpose] = self.context.randomness.stream(purpose, self.name)
        return self._rngs[purpose]

    @property
    def is_ready(self) -> bool:
        """Whether it consumes, its probe succeeds, and nobody has told it to end."""
        process = self.process
        return process is not None and process.is_up and self.context.loop.now_us >= self.ready_from_us

    def boot(self, then: Callable[[], None] | None = None) -> None:
        """Start a process, unless one is there; ``then``: when it has subscribed, or the one after it, if it ends before."""
        if self.process is not None:
            if then is not None:
                then()
            return
        if then is not None:
            self._waiting.append(then)
        self.want(is_wanted=True)
        self.link.reconnect()
        self._booted_us = self.context.loop.now_us
        self.process = self._home.new_process(self)
        self.process.boot()

    def start(self, then: Callable[[], None] = lambda: None) -> None:
        """Be wanted, and run: at once, or when a process that is about to end is gone; ``then``: as `boot` has it."""
        self.want(is_wanted=True)
        if self.process is not None and self.process.is_told_to_end:
            self.process.on_closed.append(lambda: self.boot(then) if self.is_wanted else then())
        else:
            self.boot(then)

    def tell(self, what: PodChange, detail: str = "") -> None:
        """Something has become of its process."""
        self.context.emit(PodChanged, self.name, what, detail)

    def ready(self) -> None:
        """Its consumer has subscribed."""
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def made_us(self, between_us: tuple[int, int]) -> int:
        """Return how long the application takes to make its consumer."""
        least_us, most_us = between_us
        return least_us + draw(self.rng("client made"), most_us - least_us)

    def made(self, process: object) -> None:
        """The application of this process has its consumer, unless it has ended: whoever waits for the pod goes on."""
        if self.process is process:
            self.ready()

    def boot_after_failure(self) -> None:
        """Start a process as Kubernetes does when one has failed: at once, then 10 s later, 20 s, up to 5 minutes.

        A process that has run for 10 minutes makes it forget the failures before.
        """
        loop = self.context.loop
        if loop.now_us - self._booted_us >= FORGIVEN_AFTER_US:
            self._failures = 0
        wait_us = min(FIRST_BACK_OFF_US << self._failures - 1, LONGEST_BACK_OFF_US) if self._failures else 0
        self._failures += 1
        loop.at(loop.now_us + wait_us, lambda _: self.boot() if self.is_wanted else None)

    def taken_away(self) -> None:
        """An event of the scenario says how long it is down."""
        self.context.history.pods[self.number].is_booted = False

    def want(self, *, is_wanted: bool) -> None:
        self.is_wanted = is_wanted
        if not is_wanted:
            self.ready()  # nobody is to wait for it any more
        self.context.emit(PodWanted, self.name, is_wanted)

    def harm(self, fault: LinkFault) -> None:
        """Its network has this fault until `heal`."""
        process = self.process
        if process is not None:
            process.settle()
        self.link.add(fault)
        self.context.emit(Harmed, self.name, fault.until_us, fault.event)
        self._note_latency()
        if fault.is_partition and process is not None:
            process.cut_off()

    def heal(self, fault: LinkFault) -> None:
        self.link.remove(fault)
        self._note_latency()
        if self.process is not None and not self.link.is_partitioned:
            self.process.connect_again()

    def _note_latency(self) -> None:
        self.context.history.pods[self.number].latency_us = self.link.mean_us

    def configure(self, settings: Mapping[str, str | None]) -> None:
        self.become(changed_settings(self.settings, settings))

    def become(self, settings: Mapping[str, str]) -> None:
        after = dict(settings)
        self.settings.clear()  # the pod's history has the same mapping
        self.settings.update(after)

    def member_config(self) -> MemberConfig:
        """The settings of a process that starts now. Raises `UsageError`."""
        config = member_config(self.members, self.settings)
        if self.context.has_traffic:  # close() waits for no fetch where records come all the time
            config = replace(config, behaviour=replace(config.behaviour, close_lag_us=0))
        return with_drift(self.members, config)

    def identity(self) -> MemberIdentity:
        """Who a process of this pod is to the coordinator."""
        topics, pattern = self._home.subscription_of(self.members)
        return MemberIdentity(
            name=self.name,
            group_id=self.context.scenario.group_id,
            client_id=client_id_of(self.members, self.context.scenario.group_id, self.name, self.instance_id),
            topics=topics,
            pattern=pattern,
            matches_pattern=self.members.matches_pattern,
            group_instance_id=self.instance_id,
            rack_id=self.rack,
        )


SHUTDOWN_US = 2_000_000
"""So long at least is between SIGTERM and SIGKILL, whatever preStop took (kubelet: minimumGracePeriodInSeconds)."""


class PreStop:
    """The preStop of a container: it runs on until the hook returns, or its grace period is over, and gets SIGTERM only then."""

    __slots__ = ("_is_over", "is_begun")

    def __init__(self) -> None:
        self.is_begun = False
        self._is_over = False

    def waits(self, pod: Pod, grace_us: int, then: Callable[[int], None]) -> bool:
        """Whether it goes on; the first to ask begins it. ``then``: SIGTERM, with what is left of the grace period."""
        if self._is_over or not pod.members.pre_stop_us:
            return False
        if not self.is_begun:
            self.is_begun = True
            length_us = min(pod.members.pre_stop_us, grace_us)
            pod.context.loop.at(pod.context.loop.now_us + length_us, self._over, (max(grace_us - length_us, SHUTDOWN_US), then))
        return True

    def _over(self, rest: tuple[int, Callable[[int], None]]) -> None:
        self._is_over = True
        left_us, then = rest
        then(left_us)


def with_drift(members: MemberSet, config: MemberConfig) -> MemberConfig:
    """Return the config with the set's own drift of heartbeats, or with what its poll loop makes of the client's."""
    if members.heartbeat_drift_us is None:
        is_tight = members.poll.upper_us == 0 and config.behaviour.reads_every_us
        return replace(config, behaviour=replace(config.behaviour, classic_drift=TIGHT)) if is_tight else config
    drift = drift_of(members.heartbeat_drift_us)
    if drift.phase_locked:
        drift = replace(drift, goes_on=config.behaviour.classic_drift.goes_on)
    return replace(config, behaviour=replace(config.behaviour, classic_drift=drift, consumer_drift=drift))


def drift_of(drift_us: int) -> HeartbeatDrift:
    """Beats that are late by anything up to this, which adds up; `RANDOM_DRIFT`: anywhere in the interval from the start on."""
    if drift_us == RANDOM_DRIFT:
        return HeartbeatDrift(phase_locked=False)
    return HeartbeatDrift(constant_us=drift_us // 2, walk_us=drift_us // 2)


def _rack(rack: str | None, index: int, racks: tuple[str, ...]) -> str | None:
    if rack != "spread":
        return rack
    if not racks:
        raise UsageError("rack: spread needs cluster.racks")
    return racks[index % len(racks)]
