"""An event under way: what `kgctl.simulate.scenario.event_port` asks for, done to the parts of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.recording.trace import PodChanged, Stepped
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.event_port import PodPort
from kgctl.simulate.scenario.expressions import MetricSource
from kgctl.simulate.scenario.model import Topic
from kgctl.simulate.scenario.quantities import Distribution
from kgctl.simulate.scenario.vocabulary import NODE, Choice, EventStage, PodChange, Selector


class EventRun:
    """One beginning of an event in one group, until it is over."""

    def __init__(self, simulation: Simulation, event: Event, on_over: Callable[[], None]) -> None:
        self._simulation = simulation
        self._event = event
        self._on_over = on_over
        self.nodes = simulation.nodes
        self.versions = simulation.versions
        self.deploys = simulation.deploys
        self.idle_and_new = simulation.idle_and_new
        self.replicas_of = simulation.replicas_of
        self.resize = simulation.resize
        self.grow_topic = simulation.topics.grow
        self.delete_topic = simulation.topics.delete
        self.rate = simulation.topics.rate
        self.set_rate = simulation.topics.set_rate
        self.poison = simulation.kind.poison_next
        self.brokers = simulation.coordination

    @property
    def now_us(self) -> int:
        return self._simulation.loop.now_us

    @property
    def metrics(self) -> MetricSource:
        return self._simulation.metrics

    @property
    def is_calm(self) -> bool:
        return self._simulation.history.calm.since_us is not None

    # --- its course

    def over(self, _: object = None) -> None:
        self._simulation.log_event(self._event, EventStage.ENDS, lifts=self._event.is_lasting)
        self._on_over()

    def next_step(self) -> None:
        self._simulation.emit(Stepped, self._event.title, self._event.target)

    def found_nothing(self) -> None:
        self._simulation.log_event(self._event, EventStage.NO_EFFECT)

    def abort(self) -> None:
        self._simulation.log_event(self._event, EventStage.ABORTED)

    def later(self, delay_us: int, task: Callable[[Any], None], argument: object = None) -> None:
        self._simulation.loop.at(self.now_us + delay_us, task, argument)

    def length(self, drawn: Distribution | None) -> int | None:
        if drawn is None:
            return None
        event = self._event
        return drawn.sample(self._simulation.randomness.stream("event", event.kind, event.target, str(self.now_us)))

    # --- what it is done to

    def pods(self, *, lacks_process: bool | None = None) -> list[Pod]:
        selector = self._event.selector
        found = [] if selector is None else select(self._simulation, selector, by_number=bool(lacks_process))
        if lacks_process is not None:
            found = [pod for pod in found if (pod.process is None) is lacks_process]
        if not found:
            self.found_nothing()
        return found

    def processes(self) -> list[tuple[Pod, Process]]:
        return [(pod, pod.process) for pod in self.pods(lacks_process=False) if pod.process is not None]

    def all_pods(self, member_set: str | None = None) -> list[Pod]:
        return self._simulation.pods if member_set is None else self._simulation.sets.get(member_set, [])

    def add_pod(self, member_set: str) -> Pod:
        return self._simulation.add_pod(self._simulation.members(member_set))

    def tell(self, pod: PodPort, what: PodChange) -> None:
        self._simulation.emit(PodChanged, pod.name, what)

    def partitions(self, topic: str) -> int:
        known = self._simulation.image.topics.get(topic)
        return 0 if known is None else known.partition_count

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        self._simulation.topics.create(Topic(name=name, partitions=partitions, replicas=replicas))


def select(simulation: Simulation, selector: Selector, *, by_number: bool = False) -> list[Pod]:
    """The pods that are meant now, in their order: of those that are to be there, or of all where none is. A share is drawn by
    the seed, each time anew.

    ``app/3`` is the fourth of the pods that the set is to have now; ``by_number``, or where it is to have fewer: the one that is
    numbered so, whether it is to be there or not.
    """
    pods = simulation.pods if selector.member_set is None else simulation.sets.get(selector.member_set, [])
    if selector.member_set == NODE and NODE not in simulation.sets:
        pods = [pod for pod in simulation.pods if selector.first <= pod.node <= selector.last]
        chosen = [pod for pod in pods if pod.is_wanted]
    else:
        chosen = _choose(simulation, selector, pods, by_number=by_number)
    if not selector.negated:
        return chosen
    return [pod for pod in _meant(simulation.pods, by_number=by_number) if pod not in chosen]


def _meant(pods: list[Pod], *, by_number: bool) -> list[Pod]:
    """Those that are to be there; all of them where a number says which, or none is to be."""
    return pods if by_number else [pod for pod in pods if pod.is_wanted] or pods


def _choose(simulation: Simulation, selector: Selector, pods: list[Pod], *, by_number: bool) -> list[Pod]:
    if selector.choice is Choice.RANGE:
        present = [] if by_number else _meant(pods, by_number=False)[selector.first : selector.last + 1]
        return present or [pod for pod in pods if selector.first <= pod.index <= selector.last]
    pods = _meant(pods, by_number=by_number)
    if selector.choice is Choice.SHARE:
        return _share(simulation, selector, pods)
    if selector.choice is Choice.OLDEST:
        started = [(simulation.history.pods[pod.number].running.since_us, pod.number, pod) for pod in pods]
        running = [(since, number, pod) for since, number, pod in started if since is not None]
        return [min(running, key=lambda entry: entry[:2])[2]] if running else []
    if selector.choice is Choice.LEADER:
        return [pod for pod in pods if pod is simulation.broker.observer.leader]
    return pods


def _share(simulation: Simulation, selector: Selector, pods: list[Pod]) -> list[Pod]:
    wanted = -(-len(pods) * selector.share_ppm // 1_000_000)
    rng = simulation.randomness.stream("share", selector.text, str(simulation.loop.now_us))
    order = sorted(pods, key=lambda pod: (rng.random(), pod.number))
    return sorted(order[:wanted], key=lambda pod: pod.number)
