"""What happens to brokers and topics."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.event import (
    BROKER,
    NEW_TOPIC,
    PODS,
    RACK,
    TOPIC,
    Count,
    Doubt,
    Event,
    EventSurroundings,
    Rates,
    TargetType,
)
from kgctl.simulate.scenario.event_port import Countdown, EventPort, PodPort, bring_back, end_after, without_effect
from kgctl.simulate.scenario.fields import key
from kgctl.simulate.scenario.quantities import Constant, RateSteps
from kgctl.simulate.scenario.vocabulary import PodChange

COORDINATOR = "coordinator"


class _OfBrokers(Event):
    target_type: ClassVar[TargetType] = BROKER
    moves_coordinator = True
    may_stay = True

    load: fields.Varying = key("how long the new coordinator reads its log, 100 ms if not given", Constant(100_000))


class BrokerDown(_OfBrokers):
    """A broker's process dies. If it was the group's coordinator, another one reads the group's records and goes on."""

    kind = "broker_down"
    kills_broker = True
    also = ("broker_crash", "broker_failure", "broker_restart", "outage")

    length: fields.Varying | None = key("until it is there again; without it, it stays away", None, of="for")
    detect: fields.Varying | None = key(
        "until the controller has noticed; if not given as with Kafka's broker.session.timeout.ms, some 7 to 10 s", None
    )

    def begin(self, run: EventPort) -> None:
        brokers = run.brokers()
        broker = brokers.leader if self.target == COORDINATOR else int(self.target)
        if broker is None:
            without_effect(run)
            return
        brokers.fail(broker, run.length(self.detect), self.load)
        end_after(run, run.length(self.length), lambda: brokers.restore(broker))

    def doubts(self, counts: Mapping[str, int], coordinators: tuple[int, ...]) -> Iterator[Doubt]:  # noqa: ARG002
        """A stopped coordinator without a replica on another broker."""
        leader, *others = coordinators
        if not others and self.target in (COORDINATOR, str(leader)):
            until = "until it is back" if self.length is not None else "for the rest of the run"
            text = f"no other broker has the group's records: there is no coordinator {until}"
            yield Doubt("no-other-broker", "", text)


class _Outage(_OfBrokers):
    """Pods and brokers die at the same moment: no callbacks, no commit, no LeaveGroup."""

    kills_broker = True

    length: fields.Varying | None = key("until all of it is there again and pods boot; without it, it stays away", None, of="for")
    detect: fields.Varying | None = key("until the controller has noticed a dead broker; as with broker_down", None)

    @abstractmethod
    def pods_of(self, run: EventPort) -> Sequence[PodPort]: ...

    @abstractmethod
    def brokers_of(self, run: EventPort) -> Sequence[int]: ...

    def begin(self, run: EventPort) -> None:
        pods = [pod for pod in self.pods_of(run) if pod.is_wanted]
        brokers = self.brokers_of(run)
        if not pods and not brokers:
            without_effect(run)
            return
        down_us, ended = run.length(self.length), Countdown(len(pods) + 1, run.over)
        for broker in brokers:
            run.brokers().fail(broker, run.length(self.detect), self.load)
        for pod in pods:
            if pod.process is not None:
                pod.process.die(PodChange.CRASH, is_silent=True)
            bring_back(run, pod, down_us, ended.one)

        def back(_: object = None) -> None:
            for broker in brokers:
                run.brokers().restore(broker)
            ended.one()

        if down_us is None:
            ended.one()
        else:
            run.later(down_us, back)


class ZoneDown(_Outage):
    """A zone is away: the pods of this rack and its brokers die, and come back with it. A set without rack is spread, too."""

    kind = "zone_down"
    target_type = RACK
    also = ("zone_outage", "zone_failure", "az_down", "az_outage", "az_failure", "rack_down", "outage")

    def pods_of(self, run: EventPort) -> Sequence[PodPort]:
        return [pod for pod in run.all_pods() if pod.zone == self.target]

    def brokers_of(self, run: EventPort) -> Sequence[int]:
        return run.brokers().in_rack(self.target)


class NodeDown(_Outage):
    """A machine is away: its pods (node/2) die, and the broker that runs there; they come back with it."""

    kind = "node_down"
    target_type = PODS
    also = ("node_crash", "node_failure", "node_outage", "machine_down", "outage")

    broker: Count | None = key("the broker that runs there; without it, none does", None)

    def pods_of(self, run: EventPort) -> Sequence[PodPort]:
        return run.pods()

    def brokers_of(self, run: EventPort) -> Sequence[int]:  # noqa: ARG002  # the file says which
        return () if self.broker is None else (self.broker,)

    def contradictions(self, around: EventSurroundings) -> Iterator[tuple[str, str]]:
        if self.broker is not None and self.broker > around.brokers:
            yield "broker", f"there is no broker {self.broker}; the cluster has {around.brokers}"


class CoordinatorMove(_OfBrokers):
    """The group's coordinator moves to this broker, or (coordinator) to another one, which reads the group's records."""

    kind: ClassVar[str] = "coordinator_move"
    also = ("failover",)

    length: fields.Varying | None = key("until it moves back; without it, it stays there", None, of="for")

    def begin(self, run: EventPort) -> None:
        brokers = run.brokers()
        before = brokers.leader
        target = brokers.another() if self.target == COORDINATOR else int(self.target)
        if target is None or not brokers.move(target, self.load):
            without_effect(run)
            return

        def back() -> None:
            if before is not None:
                brokers.move(before, self.load)

        end_after(run, run.length(self.length), back)


class _OfTopics(Event):
    target_type: ClassVar[TargetType] = TOPIC
    is_playable = True
    may_kill = False


class _Writes(_OfTopics):
    writes = True

    rate: Rates

    @property
    def rates(self) -> RateSteps:
        return self.rate

    def follow(self, run: EventPort) -> None:
        """The topic has these rates (time from now, rate); with the last one the event is over."""
        countdown = Countdown(len(self.rate), run.over)

        def step(rate_uhz: int) -> None:
            run.set_rate(self.target, rate_uhz)
            countdown.one()

        for after_us, rate_uhz in self.rate:
            if after_us:
                run.later(after_us, step, rate_uhz)
            else:
                step(rate_uhz)


class AddPartitions(_OfTopics):
    """The topic has more partitions from now on; its traffic is shared out anew. No effect where it has as many already."""

    kind = "add_partitions"
    one_of = ("to", "by")
    is_planned = adds_partitions = changes_sources = True
    also = ("expand_topic",)

    to: Count | None = key("so many partitions", None)
    by: Count | None = key("so many more", None)

    def begin(self, run: EventPort) -> None:
        present = run.partitions(self.target)
        wanted = self.to if self.to is not None else present + (self.by or 0)
        if not present or wanted <= present:  # Kafka refuses it
            without_effect(run)
            return
        run.grow_topic(self.target, wanted)
        run.over()

    def contradictions(self, around: EventSurroundings) -> Iterator[tuple[str, str]]:
        """A topic never shrinks: Kafka refuses as many partitions as there are, or fewer."""
        there = around.topics.get(self.target, 0)
        if self.to is not None and self.to <= there:
            yield "to", f"{self.target!r} has {there} partitions: to add some, write more than that"


class CreateTopic(_Writes):
    """A topic that was not there."""

    kind = "create_topic"
    target_type = NEW_TOPIC
    is_planned = creates_topic = adds_partitions = True

    partitions: Count = key("how many partitions", 12)
    replicas: Count = key("how many replicas", 3)
    rate: Rates = key("records written to it", ())

    def begin(self, run: EventPort) -> None:
        if run.partitions(self.target):
            without_effect(run)
            return
        run.create_topic(self.target, self.partitions, self.replicas)
        self.follow(run)


class DeleteTopic(_OfTopics):
    """The topic is gone, and its offsets with it."""

    kind = "delete_topic"
    changes_sources = True

    def begin(self, run: EventPort) -> None:
        if not run.partitions(self.target):
            without_effect(run)
            return
        run.delete_topic(self.target)
        run.over()

    def contradictions(self, around: EventSurroundings) -> Iterator[tuple[str, str]]:
        around.deleted.add(self.target)
        around.topics[self.target] = 0
        yield from ()


class PoisonRecords(_OfTopics):
    """The next records that are written to the topic are ones that no application of a share group can process."""

    kind = "poison"
    also = ("poison_pill", "bad_records", "poison_message")
    is_playable = False

    records: Count = key("how many", 1)

    def begin(self, run: EventPort) -> None:
        if run.poison(self.target, self.records):
            run.over()
        else:
            without_effect(run)


class SetTraffic(_Writes):
    """So many records are written to the topic from now on."""

    kind = "set_traffic"
    is_planned = True

    rate: Rates = key("records of the whole topic")

    def begin(self, run: EventPort) -> None:
        if not run.partitions(self.target) or self.rate == ((0, run.rate(self.target)),):
            run.found_nothing()
        self.follow(run)
