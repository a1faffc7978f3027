"""A scenario whose brokers go away, played with Java consumers: brokers of Apache Kafka are killed and started again.

Who owns a partition is known by the callbacks; that nobody can read it, by its owner reading nothing from it though records wait
there. Where a broker that leads is killed, its records wait at the writer; where brokers are stopped in order, only those count
that a broker has: the writer is held up by all else that it has sent to the same one.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.cli.simulate.against import ClusterGroups
from kgctl.errors import KgctlError
from kgctl.model.values import partition_for
from kgctl.simulate.against.fleet import ClientLine, Fleet
from kgctl.simulate.against.play import ClusterPort, Play, processes_of
from kgctl.simulate.engine.coordination import Coordination
from kgctl.simulate.engine.run import complete
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.metrics.result import RunResult
from kgctl.simulate.scenario.checks import NO_FILTERS
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.kinds.cluster import BrokerDown
from kgctl.simulate.scenario.model import SECOND_US, Scenario
from kgctl.simulate.scenario.quantities import Constant, Distribution
from tests.calibration.cases import SILENT_US
from tests.calibration.figures import NAMES, Figures
from tests.calibration.kinds import kinds_of
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.cluster import ApartKafkaCluster
from tests.support.kafka.data import elect_preferred_leaders, wait_for_brokers, wait_until_coordinating

SETTINGS = {
    "group.initial.rebalance.delay.ms": "3000",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.append.linger.ms": "25",
}
"""Kafka's defaults, where those of the tests are others."""
AS_JAVA = {"reconnect.backoff.max.ms": "1000"}
"""Java's default, for the producer, too: it is librdkafka, which would wait for up to 10 s."""
Brokers = Sequence[KafkaBroker]
Span = tuple[int, int]
Read = tuple[int, int]
"""When records of a partition were read, and for how long the oldest of them had been there."""


def has_outage(scenario: Scenario) -> bool:
    """Whether something happens to a broker."""
    return any(event.moves_coordinator for event in scenario.events)


class RealBrokers(Coordination):
    """What an event about a broker does to the processes of a cluster."""

    def __init__(self, brokers: Brokers, leader: int) -> None:
        self._brokers = {broker.node_id: broker for broker in brokers}
        self.leader = leader
        self._died_s = 0.0
        self._ending: dict[int, threading.Thread] = {}
        self.away_s = 0.0
        """How long the last broker that was killed was away."""

    def fail(self, broker: int, detect_us: int | None, load: Distribution) -> None:  # the cluster's own
        """Kill the process; where the controller hears of it at once, stop it in order."""
        self._died_s = time.monotonic()
        is_orderly = detect_us == 0
        self._ending[broker] = threading.Thread(target=self._brokers[broker].stop, kwargs={"kill": not is_orderly}, daemon=True)
        self._ending[broker].start()

    def restore(self, broker: int) -> None:
        """Start it again; it leads its partitions some seconds later."""
        self._ending[broker].join()
        self._brokers[broker].start(wait=False)  # here: a process dies with the thread that has started it
        threading.Thread(target=self._wait_for, args=(self._brokers[broker],), daemon=True).start()

    def _wait_for(self, broker: KafkaBroker) -> None:
        broker.wait_for_port()
        client = AdminClient({"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": "100"})
        while not _leads(client):
            time.sleep(0.05)
        self.away_s = time.monotonic() - self._died_s


def _leads(client: AdminClient) -> bool:
    """Whether each partition of the cluster has a leader."""
    try:
        topics = client.list_topics(timeout=1).topics.values()
    except KafkaException:
        return False
    return all(partition.leader >= 0 for topic in topics for partition in topic.partitions.values())


class Outage(Play):
    """A play that may kill brokers, and notes when each partition was read."""

    def __init__(self, scenario: Scenario, number: int, fleet: Fleet, cluster: ClusterPort, brokers: Brokers) -> None:
        super().__init__(scenario, number, fleet, cluster, ())
        self._brokers = brokers
        self._real: RealBrokers | None = None
        self.reads: dict[str, list[Read]] = {}

    def coordination(self) -> RealBrokers:
        if self._real is None:
            self._real = RealBrokers(self._brokers, coordinator_of(self.group_id, self._brokers))
        return self._real

    def rename(self, number: int) -> None:
        """Be another group with topics of its own."""
        self.prefix = f"{self.prefix.rstrip('-')}{number}-"
        self.group_id = self.prefix + self.scenario.group_id

    def has_read(self, pod: int, line: ClientLine) -> None:
        super().has_read(pod, line)
        for text in line.rest:
            name, _, waits = text.split(":")
            longest_us = int(waits.partition("-")[2]) * 1000
            self.reads.setdefault(name.removeprefix(self.prefix), []).append((self.loop.now_us, longest_us))


def coordinator_of(group_id: str, brokers: Brokers) -> int:
    """Return the id of the broker that leads the group's partition of the offsets topic."""
    client = AdminClient({"bootstrap.servers": bootstrap_of(brokers)})
    partitions = client.list_topics("__consumer_offsets", timeout=30).topics["__consumer_offsets"].partitions
    return partitions[partition_for(group_id, len(partitions))].leader


def _find_a_name(stage: Outage, brokers: Brokers) -> None:
    """Look for a group whose coordinator is another broker than the one that the scenario names, where it names one."""
    targets = {event.target for event in stage.scenario.events if event.moves_coordinator}
    for number in range(1, 99):
        if len(brokers) == 1 or len(targets) > 1 or str(coordinator_of(stage.group_id, brokers)) not in targets:
            return
        stage.rename(number)
    raise AssertionError("no such group among many")


def _shortened(scenario: Scenario, start_us: int) -> Scenario:
    """Return the scenario whose brokers are started again so much earlier as they take to be there; more or less, as it says."""
    events: list[Event] = []
    for event in scenario.events:
        if isinstance(event, BrokerDown) and event.length is not None:
            shorter = Constant(max(event.length.mean_us - start_us, 0))
            events.append(changed(event, length=shorter))
        else:
            events.append(event)
    return changed(scenario, events=tuple(events))


_TIMES = {False: {}, True: {"log.message.timestamp.type": "LogAppendTime"}}


def is_orderly(scenario: Scenario) -> bool:
    """Whether brokers are only stopped such that the controller hears of it."""
    downs = [event for event in scenario.events if event.moves_coordinator]
    return all(isinstance(event, BrokerDown) and event.detect is not None and not event.detect.mean_us for event in downs)


@contextmanager
def _running(scenario: Scenario) -> Iterator[Brokers]:
    """As many brokers as the scenario has, one or three, with its settings."""
    overrides = {**SETTINGS, **_TIMES[is_orderly(scenario)], **scenario.cluster.config}
    with tempfile.TemporaryDirectory() as folder:
        if scenario.cluster.brokers == 1:
            single = KafkaBroker(Path(folder), overrides=overrides)
            try:
                single.start()
                yield [single]
            finally:
                single.stop()
            return
        cluster = ApartKafkaCluster(Path(folder), overrides)
        try:
            cluster.start()
            yield cluster.brokers
        finally:
            cluster.stop()


def _restart_us(brokers: Brokers) -> int:
    """Return how long a broker that was killed takes to answer again, in microseconds; all is as before afterwards."""
    bootstrap = bootstrap_of(brokers)
    brokers[-1].stop(kill=True)
    begin_s = time.monotonic()
    brokers[-1].start()
    length_us = int((time.monotonic() - begin_s) * SECOND_US)
    wait_for_brokers(bootstrap, len(brokers))
    if len(brokers) > 1:
        elect_preferred_leaders(bootstrap)
    wait_until_coordinating(bootstrap, partitions=len(brokers))
    return length_us


def bootstrap_of(brokers: Brokers) -> str:
    """Return the addresses of all."""
    return ",".join(broker.bootstrap for broker in brokers)


def played(scenario: Scenario, times: int) -> Iterator[Figures]:
    """Measure the metrics of `NAMES`, each time with a new cluster."""
    for _ in range(times):
        with _running(scenario) as brokers:
            wait_until_coordinating(bootstrap_of(brokers), partitions=len(brokers))
            yield _once(_shortened(scenario, _restart_us(brokers)), brokers, _planned_us(scenario))


def _planned_us(scenario: Scenario) -> int:
    """Return how long the scenario's brokers are away."""
    return max(event.length.mean_us for event in scenario.events if isinstance(event, BrokerDown) and event.length)


def _once(scenario: Scenario, brokers: Brokers, planned_us: int) -> Figures:
    bootstrap = bootstrap_of(brokers)
    with connect(ConnectionSettings(bootstrap=bootstrap)) as admin, kinds_of(scenario) as kinds:
        fleet = Fleet(kinds, {"bootstrap.servers": bootstrap, **AS_JAVA})
        try:
            fleet.prepare(partial(processes_of, scenario))
            stage = Outage(scenario, 1, fleet, ClusterGroups(admin), brokers)
            _find_a_name(stage, brokers)
            try:
                stage.begin()
                recording = complete([stage])
            finally:
                for left in stage.end():
                    print(f"left on the cluster: {left}")
        except KgctlError as problem:
            raise AssertionError(f"not played: {problem}") from problem
        finally:
            fleet.close()
    result = RunResult(recording)
    found = {name: float(result.metric(name) or 0) for name in NAMES}
    unread = list(_unread(stage, result))
    found["unavailable"] = sum(last - first for first, last in unread) / SECOND_US
    found["max_gap"] = max((last - first for first, last in unread), default=0) / SECOND_US
    if len(brokers) == 1:  # all wait for it: by how much longer it was away than the scenario says is no merit of the group
        longer_s = stage.coordination().away_s - planned_us / SECOND_US
        found["unavailable"] -= longer_s * len(recording.partitions)
        found["max_gap"] -= longer_s
    return {name: round(value, 6) for name, value in found.items()}


def _unread(stage: Outage, result: RunResult) -> Iterator[Span]:
    """Yield the times in which a partition had no owner, or its owner could not read it."""
    recording = result.recording
    gaps: dict[str, list[Span]] = {}
    for gap in Measured(recording).gaps(NO_FILTERS):
        topic, partition = recording.partitions.names[gap.partition]
        gaps.setdefault(f"{topic}-{partition}", []).append((gap.from_us, gap.to_us))
    for name, reads in stage.reads.items():
        seen = [read for read in reads if read[0] >= recording.start_us]
        yield from merged([*gaps.get(name, ()), *silences(seen, recording.end_us)])


def silences(reads: Sequence[Read], end_us: int) -> Iterator[Span]:
    """Yield the times in which records waited and were not read. To the end of the run it is taken that some do."""
    for (before_us, _), (at_us, longest_us) in pairwise([*reads, (end_us, end_us)]):
        since_us = max(before_us, at_us - longest_us)
        if at_us - since_us > SILENT_US:
            yield since_us, at_us


def merged(spans: Sequence[Span]) -> Iterator[Span]:
    """Yield what the spans cover together, in order."""
    current: Span | None = None
    for first, last in sorted(spans):
        if current is not None and first <= current[1]:
            current = (current[0], max(current[1], last))
            continue
        if current is not None:
            yield current
        current = (first, last)
    if current is not None:
        yield current
