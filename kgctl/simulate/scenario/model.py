"""A scenario as values: one variant, merged and checked, ready to run.

Times are whole microseconds (``*_us``); those of events and traffic count from the end of the warm-up. Rates are whole millionths
of a record a second (``*_uhz``), shares whole millionths (``*_ppm``): a run calculates with integers, so that the same file and
seed give the same bytes everywhere. Named things keep the order of the file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from kgctl.model.values import quick_enum
from kgctl.simulate.scenario.autoscale import Autoscale
from kgctl.simulate.scenario.quantities import ZERO, Constant, Distribution, Uniform, Wave
from kgctl.simulate.scenario.vocabulary import Selector

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
ONE_PER_SECOND_UHZ = 1_000_000

_ONE_MILLISECOND = Constant(1_000)
_FIVE_SECONDS = Constant(5 * SECOND_US)
_UP_TO_A_TENTH = Uniform(0, 100_000)
# Measured with Apache Kafka 4.3.1 and its Java client: what one generation costs beyond its messages (log append, flush, the
# purgatory's callbacks), and how long a new consumer takes to its first request.
_APPEND = Uniform(13_000, 28_000)
_CLIENT_START = Uniform(36_000, 114_000)


class MetricSource(Protocol):
    """The metrics of one run, so far or whole."""

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """Return the value; None where there is none."""
        ...


class Condition(Protocol):
    """An expression over a run so far (``when:``, ``abort_if:``)."""

    @property
    def text(self) -> str:
        """As the file has it."""
        ...

    def holds(self, metrics: MetricSource) -> bool:
        """Whether it is true now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a message meets on its way, in one direction; the other direction draws anew.

    A lost message is sent again as TCP does, after 200 ms, then twice as long each time: loss shows as delay.
    ``client`` is the way between a pod and a broker.
    """

    client: Distribution = _ONE_MILLISECOND
    broker: Distribution = _ONE_MILLISECOND
    loss_ppm: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """``append``: until a record of the group is written and its answers leave. ``config``: the brokers' settings by Kafka's
    names, values as in a properties file. ``nodes``: the machines that pods run on; 0: nothing is known of them."""

    brokers: int = 3
    nodes: int = 0
    racks: tuple[str, ...] = ()
    network: Network = Network()
    append: Distribution = _APPEND
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """``placement``: partition -> brokers (from 1) with a replica; where it says nothing they are spread over the brokers, as
    many as there are if those are fewer than ``replicas``.

    ``state_bytes``: what an application keeps for each partition and restores where it moves to, repeated if there are more
    partitions; empty: nothing is known of it.
    """

    name: str
    partitions: int = 12
    replicas: int = 3
    placement: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    state_bytes: tuple[int, ...] = ()


@quick_enum
class CommitMode(StrEnum):
    """When the application commits. AUTO: the client does, in poll() and before it gives up partitions; AFTER_BATCH where
    ``enable.auto.commit`` keeps it from that."""

    AUTO = "auto"
    AFTER_BATCH = "after-batch"
    BEFORE_BATCH = "before-batch"
    EVERY = "every"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """``interval_us`` is for EVERY."""

    mode: CommitMode = CommitMode.AUTO
    interval_us: int = 5 * SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """How long the application's rebalance callbacks take."""

    revoked: Distribution = ZERO
    assigned: Distribution = ZERO
    lost: Distribution = ZERO


RANDOM_DRIFT = -1
"""As ``heartbeat_drift_us``: phases are random in every generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSet:
    """``count`` pods ``<name>-0`` and so on, all alike.

    ``start`` None: only an event starts them; else when each starts, counted from the beginning of the warm-up. ``topics`` and
    ``pattern`` both empty: all topics. ``instance_id``: a template in which ``$name`` stands for the pod's name; None: dynamic.
    ``rack``: a rack, or "spread" over the cluster's. ``client``: a profile of `kgctl.member.config`. ``config``: consumer
    settings by Kafka's names, those of the group included. ``poll``: from the return of a poll() to the next one.
    ``poll_timeout_us``: how long a poll() waits for records; None: as long as there are none. ``client_id``: a template as
    ``instance_id`` is; None: the client's own default. ``client_start``: from the end of the boot to the first request.
    ``rate_uhz`` None: as fast as records come. ``leaves_on_stop``: a clean stop calls close(), which leaves the group
    (a static member's does not). ``restarts_on_failure``: a process whose poll() throws what it does not get over ends, and is
    started again as Kubernetes does it; otherwise it stays and does nothing. ``heartbeat_drift_us``: each beat is late by up to
    this much; None: as measured for the client; `RANDOM_DRIFT`.
    """

    name: str
    count: int = 1
    start: Distribution | None = ZERO
    boot: Distribution = _FIVE_SECONDS
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    instance_id: str | None = None
    rack: str | None = None
    client: str = "java"
    config: Mapping[str, str] = field(default_factory=dict)
    client_id: str | None = None
    client_start: Distribution = _CLIENT_START
    poll: Distribution = _UP_TO_A_TENTH
    poll_timeout_us: int | None = None
    rate_uhz: int | None = None
    commit: Commit = Commit()
    leaves_on_stop: bool = True
    restarts_on_failure: bool = False
    callbacks: Callbacks = Callbacks()
    heartbeat_drift_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignTime:
    """How long a leader's assignor computes: ``base + per_partition * partitions + per_member * members``, in nanoseconds."""

    base_ns: int = 5_000_000
    per_partition_ns: int = 2_000
    per_member_ns: int = 10_000

    def duration_us(self, partitions: int, members: int) -> int:
        """For a group of this size."""
        return (self.base_ns + self.per_partition_ns * partitions + self.per_member_ns * members) // 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Records written to a topic: ``steps`` are (from, rate of the whole topic), in order; the first counts from the beginning.

    ``weights``: the partitions' shares, repeated if there are more partitions; empty: even. ``wave``: instead of steps; before
    time 0 it is at its first rate.
    """

    topic: str
    steps: tuple[tuple[int, int], ...] = ()
    weights: tuple[int, ...] = ()
    wave: Wave | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that is made to happen. ``kind`` is a key of `kgctl.simulate.scenario.event_kinds.EVENT_KINDS`.

    ``target``: a selector's, a set of members', or a topic's name, as the kind wants it (``selector`` is set for the first).
    It begins at ``at_us``, or when the event named ``after`` is over ("previous": the one before it in the list; "last": all
    before it), ``at_us`` later. ``times`` above 1: again ``every_us`` after each beginning. ``parameters`` are the kind's other
    fields, under their names, as values: microseconds for durations, `Distribution`, rates in uHz, numbers, texts, mappings.
    """

    kind: str
    target: str
    selector: Selector | None = None
    name: str = ""
    at_us: int = 0
    after: str | None = None
    every_us: int = 0
    times: int = 1
    when: Condition | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """A parameter; None when it is not given."""
        return self.parameters.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nemesis:
    """Faults drawn by the seed: kinds of ``of`` at random pods, ``mean_interval_us`` apart in the mean, until ``until_us``."""

    mean_interval_us: int
    of: tuple[str, ...] = ("crash", "stall", "network")
    until_us: int = 30 * MINUTE_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One run's whole description, but for the seed. ``duration_us`` None: last event + time to stable + 60 s.

    ``together``: where the file has several groups, those that run on the same topics at the same time, this one among them.
    """

    name: str
    question: str = ""
    warmup_us: int = 0
    duration_us: int | None = None
    cluster: Cluster = Cluster()
    topics: tuple[Topic, ...] = ()
    group_id: str = "group"
    members: tuple[MemberSet, ...] = ()
    assign_time: AssignTime = AssignTime()
    traffic: tuple[Traffic, ...] = ()
    events: tuple[Event, ...] = ()
    nemesis: Nemesis | None = None
    autoscale: Autoscale | None = None
    together: tuple[Scenario, ...] = ()
