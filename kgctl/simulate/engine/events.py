"""What events do to pods, topics and brokers: one function a kind, which gets the event's beginning as an `EventRun`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kgctl.simulate.engine.coordination import Coordination
from kgctl.simulate.engine.pods import FOREVER_US, LinkFault, Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.recording.recording import EventMark
from kgctl.simulate.recording.trace import PodChanged
from kgctl.simulate.scenario.event_kinds import Event, EventKind
from kgctl.simulate.scenario.model import Topic
from kgctl.simulate.scenario.quantities import Distribution
from kgctl.simulate.scenario.vocabulary import NODE, Choice, Selector

_LASTING = frozenset({"stall", "slow", "pause_process", "network"})
"""Faults that do something to pods until they are over."""


class EventRun:
    """One beginning of an event, until it is over. A kind's ``begin`` gets it and sees to it that `over` is called once."""

    def __init__(self, simulation: Simulation, event: Event, kind: EventKind, on_over: Callable[[], None]) -> None:
        self.simulation = simulation
        self.event = event
        self._kind = kind
        self._on_over = on_over

    def __getitem__(self, name: str) -> Any:
        value = self.event[name]
        if value is not None:
            return value
        return next(field.default for field in self._kind.fields if field.name == name)

    def over(self, _: object = None) -> None:
        """End the event, which has done all that it does; what comes ``after`` it may begin."""
        self.simulation.log_event(self.event, "ends")
        if self.event.kind in _LASTING:
            self.simulation.history.lifted.append(self.simulation.loop.now_us)
        self._on_over()

    def next_step(self) -> None:
        """A step of it begins: a batch, a pod's turn, a stage of a canary."""
        event, simulation = self.event, self.simulation
        simulation.history.steps.append(EventMark(simulation.loop.now_us, event.name or event.kind, "step", event.target))

    def found_nothing(self) -> None:
        """Log that there is nothing that the event could be done to."""
        self.simulation.log_event(self.event, "has no effect")

    def without_effect(self) -> None:
        """End the event, which has found nothing that it could do: the log says so."""
        self.found_nothing()
        self.over()


def select(simulation: Simulation, selector: Selector, *, by_number: bool = False) -> list[Pod]:
    """The pods that are meant now, in their order. A share is drawn by the seed, each time anew.

    ``app/3`` is the fourth of the pods that the set is to have now; ``by_number``, or where it is to have fewer: the one that is
    numbered so.
    """
    pods = simulation.pods if selector.member_set is None else simulation.sets.get(selector.member_set, [])
    if selector.member_set == NODE and NODE not in simulation.sets:
        pods = [pod for pod in simulation.pods if selector.first <= pod.node <= selector.last]
        chosen = [pod for pod in pods if pod.is_wanted]
    else:
        chosen = _choose(simulation, selector, list(pods), by_number=by_number)
    if not selector.negated:
        return chosen
    return [pod for pod in simulation.pods if pod not in chosen]


def _choose(simulation: Simulation, selector: Selector, pods: list[Pod], *, by_number: bool) -> list[Pod]:
    if selector.choice is Choice.RANGE:
        present = [] if by_number else [pod for pod in pods if pod.is_wanted][selector.first : selector.last + 1]
        return present or [pod for pod in pods if selector.first <= pod.index <= selector.last]
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


def pods_of(run: EventRun, *, lacks_process: bool | None = None) -> list[Pod]:
    """Return the pods that an event's selector means at this moment, and log it if there is none.

    ``lacks_process``: only those without a process, found by their numbers, or only those that have one.
    """
    selector = run.event.selector
    found = [] if selector is None else select(run.simulation, selector, by_number=bool(lacks_process))
    if lacks_process is not None:
        found = [pod for pod in found if (pod.process is None) is lacks_process]
    if not found:
        run.found_nothing()
    return found


def processes_of(run: EventRun) -> list[Process]:
    """Return the running processes of the pods that an event means."""
    return [pod.process for pod in pods_of(run, lacks_process=False) if pod.process is not None]


def duration_of(run: EventRun, name: str = "for") -> int | None:
    """A duration of this event, drawn where it is a distribution; None: not given."""
    value: Distribution | int | None = run[name]
    if value is None or isinstance(value, int):
        return value
    return value.sample(
        run.simulation.randomness.stream("event", run.event.kind, run.event.target, str(run.simulation.loop.now_us))
    )


def in_a_while(run: EventRun, delay_us: int, task: Callable[[object], None]) -> None:
    """Call ``task`` after a delay."""
    run.simulation.loop.at(run.simulation.loop.now_us + delay_us, task)


def end_after(run: EventRun, duration_us: int | None, end: Callable[[], None]) -> None:
    """What has begun ends after this time, and the event with it; None: it never ends, and the event is over now."""
    if duration_us is None:
        run.over()
        return

    def over(_: object) -> None:
        end()
        run.over()

    in_a_while(run, duration_us, over)


def bring_back(run: EventRun, pod: Pod, down_us: int | None, then: Callable[[], None]) -> None:
    """The pod is down: boot it after this time, or leave it (None); ``then`` when that is over."""
    pod.taken_away()
    if down_us is None:
        then()
    else:
        in_a_while(run, down_us, lambda _: pod.boot(then))


class Countdown:
    """Calls ``then`` when `one` has been called so many times; for none at once."""

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        self._left = number
        self._then = then
        if not number:
            then()

    def one(self, _: object = None) -> None:
        """Count one of the awaited things as happened."""
        self._left -= 1
        if self._left == 0:
            self._then()


def start(run: EventRun) -> None:
    pods = pods_of(run, lacks_process=True)
    countdown = Countdown(len(pods), run.over)
    for pod in pods:
        pod.configure(run["with"])
        pod.boot(countdown.one)


def stop(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for process in processes:
        process.stop(lambda pod=process.pod: back(pod))  # type: ignore[misc]


def crash(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)
    for process in processes:
        process.die("crash")
        process.pod.configure(run["with"])
        bring_back(run, process.pod, down_us, countdown.one)


def restart(run: EventRun) -> None:
    pods = pods_of(run)
    countdown = Countdown(len(pods), run.over)
    down_us = duration_of(run) or 0

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for pod in pods:
        if pod.process is None:
            back(pod)
        else:
            pod.process.stop(lambda pod=pod: back(pod))  # type: ignore[misc]


def scale(run: EventRun) -> None:
    pods = run.simulation.sets[run.event.target]
    present = [pod for pod in pods if pod.is_wanted]
    wanted = run["to"] if run["to"] is not None else max(len(present) + run["by"], 0)
    changes = _to_start(run, present, wanted) if wanted > len(present) else present[wanted:][::-1]
    countdown = Countdown(len(changes), run.over)
    for number, pod in enumerate(changes):
        pod.want(is_wanted=wanted > len(present))
        _change(run, pod, run["over"] * number // len(changes), countdown)


def _to_start(run: EventRun, present: list[Pod], wanted: int) -> list[Pod]:
    """Those with the lowest numbers that are not there, then new ones."""
    pods = run.simulation.sets[run.event.target]
    idle = [pod for pod in pods if not pod.is_wanted][: wanted - len(present)]
    members = run.simulation.members(run.event.target)
    return idle + [run.simulation.add_pod(members) for _ in range(wanted - len(present) - len(idle))]


def _change(run: EventRun, pod: Pod, delay_us: int, countdown: Countdown) -> None:
    def change(_: object) -> None:
        if pod.is_wanted:
            pod.boot(countdown.one)
        elif pod.process is None:
            countdown.one()
        else:
            pod.process.stop(countdown.one)

    in_a_while(run, delay_us, change)


def stall(run: EventRun) -> None:
    duration_us = duration_of(run) or 0
    for process in processes_of(run):
        run.simulation.log(PodChanged(run.simulation.log_time, process.pod.name, "stall"))
        process.stall(run.simulation.loop.now_us + duration_us)
    in_a_while(run, duration_us, run.over)


USUAL_PPM = 1_000_000


def slow(run: EventRun) -> None:
    pods = pods_of(run)
    for pod in pods:
        _set(pod, pod.factor_ppm * run["factor"] // USUAL_PPM)
        run.simulation.log(PodChanged(run.simulation.log_time, pod.name, "slow"))
    end_after(run, duration_of(run), lambda: _end_slow(run, pods))


def _end_slow(run: EventRun, pods: list[Pod]) -> None:
    for pod in pods:
        _set(pod, max(pod.factor_ppm * USUAL_PPM // run["factor"], 1))
        run.simulation.log(PodChanged(run.simulation.log_time, pod.name, "unslow"))


def _set(pod: Pod, factor_ppm: int) -> None:
    pod.factor_ppm = factor_ppm
    if pod.process is not None:
        pod.process.slow()


def pause_process(run: EventRun) -> None:
    processes = processes_of(run)
    for process in processes:
        process.suspend()
    in_a_while(run, duration_of(run) or 0, lambda _: _end_pause(run, processes))


def _end_pause(run: EventRun, processes: list[Process]) -> None:
    for process in processes:
        process.resume()
    run.over()


def network(run: EventRun) -> None:
    pods = pods_of(run)
    duration_us = duration_of(run)
    until_us = FOREVER_US if duration_us is None else run.simulation.loop.now_us + duration_us
    fault = LinkFault(latency=run["latency"], loss_ppm=run["loss"], is_partition=bool(run["partition"]), until_us=until_us)
    for pod in pods:
        if pod.process is not None:
            pod.process.catch_up()
            run.simulation.ownership.settle_unseen(pod.process)
        pod.link.add(fault)
        run.simulation.history.pods[pod.number].latency_us = pod.link.mean_us
        if fault.is_partition and pod.process is not None:
            pod.process.cut_off()
    end_after(run, duration_us, lambda: _end_fault(pods, fault))


def _end_fault(pods: list[Pod], fault: LinkFault) -> None:
    for pod in pods:
        pod.link.remove(fault)
        pod.context.history.pods[pod.number].latency_us = pod.link.mean_us
        if pod.process is not None and not pod.link.is_partitioned:
            pod.process.connect_again()


def add_partitions(run: EventRun) -> None:
    simulation, name = run.simulation, run.event.target
    present = simulation.image.topics[name].partition_count if name in simulation.image.topics else 0
    wanted = run["to"] if run["to"] is not None else present + run["by"]
    if not present or wanted <= present:  # Kafka refuses it
        run.without_effect()
        return
    simulation.topics.grow(name, wanted)
    run.over()


def set_traffic(run: EventRun) -> None:
    follow(run, run["rate"])


def follow(run: EventRun, steps: Sequence[tuple[int, int]]) -> None:
    """The topic of the event has these rates (time from now, rate); with the last one the event is over."""
    simulation, topic = run.simulation, run.event.target
    countdown = Countdown(len(steps), run.over)

    def step(rate_uhz: int) -> None:
        simulation.topics.set_rate(topic, rate_uhz)
        countdown.one()

    for after_us, rate_uhz in steps:
        if after_us:
            simulation.loop.at(simulation.loop.now_us + after_us, step, rate_uhz)
        else:
            step(rate_uhz)


def create_topic(run: EventRun) -> None:
    if run.event.target in run.simulation.image.topics:
        run.without_effect()
        return
    run.simulation.topics.create(Topic(name=run.event.target, partitions=run["partitions"], replicas=run["replicas"]))
    follow(run, run["rate"] or ())


def delete_topic(run: EventRun) -> None:
    if run.event.target not in run.simulation.image.topics:
        run.without_effect()
        return
    run.simulation.topics.delete(run.event.target)
    run.over()


COORDINATOR = "coordinator"


def coordination_of(run: EventRun) -> Coordination:
    """The run's brokers, which nobody has looked at before the first such event."""
    return run.simulation.coordination()


def broker_of(run: EventRun) -> int | None:
    """The broker that is meant at this moment; None: the coordinator's, and there is none."""
    target = run.event.target
    return coordination_of(run).leader if target == COORDINATOR else int(target)


def broker_down(run: EventRun) -> None:
    coordination, broker = coordination_of(run), broker_of(run)
    if broker is None:
        run.without_effect()
        return
    coordination.fail(broker, duration_of(run, "detect"), run["load"])
    end_after(run, duration_of(run), lambda: coordination.restore(broker))


def coordinator_move(run: EventRun) -> None:
    coordination = coordination_of(run)
    before = coordination.leader
    target = coordination.another() if run.event.target == COORDINATOR else int(run.event.target)
    if target is None or not coordination.move(target, run["load"]):
        run.without_effect()
        return

    def back() -> None:
        if before is not None:
            coordination.move(before, run["load"])

    end_after(run, duration_of(run), back)
