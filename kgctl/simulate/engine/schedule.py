"""What begins each kind of event, and when: at a time, after another one, again and again, or by a nemesis; when all are over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError
from kgctl.simulate.engine.events import brokers, disruption, pods, rolling, rollout, topics
from kgctl.simulate.engine.events.event_run import Countdown, EventRun
from kgctl.simulate.scenario.event_kinds import EVENT_KINDS, Target
from kgctl.simulate.scenario.model import SECOND_US, Event, Nemesis
from kgctl.simulate.scenario.quantities import Distribution, Exponential, Uniform
from kgctl.simulate.scenario.vocabulary import NODE, Choice, Selector

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import Simulation


BEGIN: Mapping[str, Callable[[EventRun], None]] = {
    "start": pods.start,
    "stop": pods.stop,
    "crash": pods.crash,
    "restart": pods.restart,
    "rolling_restart": rolling.roll,
    "upgrade": rolling.roll,
    "rollout": rollout.rollout,
    "drain": disruption.drain,
    "spot_loss": disruption.spot_loss,
    "scale": pods.scale,
    "stall": pods.stall,
    "slow": pods.slow,
    "pause_process": pods.pause_process,
    "network": pods.network,
    "add_partitions": topics.add_partitions,
    "create_topic": topics.create_topic,
    "delete_topic": topics.delete_topic,
    "set_traffic": topics.set_traffic,
    "broker_down": brokers.broker_down,
    "coordinator_move": brokers.coordinator_move,
}
"""Kind -> what begins it, and sees to it that `EventRun.over` is called once."""

LAST = "last"
PREVIOUS = "previous"


class Schedule:
    """All events of a scenario, for all its groups. ``open`` counts beginnings that have not come to their end."""

    def __init__(self, groups: Sequence[Simulation]) -> None:
        self._groups = groups
        self._simulation = simulation = groups[0]
        self._events = simulation.scenario.events
        self._left = [max(event.times, 1) for event in self._events]
        self._followers: list[list[int]] = [[] for _ in self._events]
        self._waits_for: list[int] = [0] * len(self._events)
        self.open = sum(self._left)
        self.last_over_us = simulation.scenario.warmup_us

    def begin(self) -> None:
        """Put every event with a time of its own into the loop."""
        for position, event in enumerate(self._events):
            before = self._before(position, event)
            self._waits_for[position] = len(before)
            for index in before:
                self._followers[index].append(position)
            if not before:
                self._arm(position, self._simulation.scenario.warmup_us + event.at_us)

    def _before(self, position: int, event: Event) -> list[int]:
        if event.after is None:
            return []
        if event.after == PREVIOUS:
            return [position - 1] if position else []
        if event.after == LAST:
            return list(range(position))
        found = [index for index, other in enumerate(self._events) if other.name == event.after and index != position]
        if not found:
            raise UsageError(f"no event is named {event.after!r}")
        return found

    def _arm(self, position: int, at_us: int) -> None:
        event = self._events[position]
        for number in range(max(event.times, 1)):
            self._simulation.loop.at(max(at_us + number * event.every_us, self._simulation.loop.now_us), self._start, position)

    def _start(self, position: int) -> None:
        event = self._events[position]
        concerned = [group for group in self._groups if _concerns(event, group)]
        others = [group for group in self._groups if group not in concerned]
        if event.when is not None and not event.when.holds((concerned or self._groups)[0].metrics):
            self._log(self._groups, event, "is left out")
            self._over(position)
            return
        self._log(self._groups, event, "begins")

        def over() -> None:
            self._log(others, event, "ends")
            self._over(position)

        countdown = Countdown(len(concerned), over)
        for group in concerned:
            BEGIN[event.kind](EventRun(group, event, EVENT_KINDS[event.kind], countdown.one))

    def _log(self, groups: Sequence[Simulation], event: Event, what: str) -> None:
        for group in groups:
            group.log_event(event, what)

    def _over(self, position: int) -> None:
        now_us = self._simulation.loop.now_us
        self.open -= 1
        self._left[position] -= 1
        self.last_over_us = now_us
        for group in self._groups:
            group.has_changed = True
        if self._left[position]:
            return
        for follower in self._followers[position]:
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                self._arm(follower, now_us + self._events[follower].at_us)


def _concerns(event: Event, group: Simulation) -> bool:
    """Whether something happens to this group: to its pods, or to topics and brokers, which are everybody's."""
    if EVENT_KINDS[event.kind].target is Target.MEMBER_SET:
        return event.target in group.sets
    selector = event.selector
    if selector is None or selector.negated or selector.member_set is None:
        return True
    return selector.member_set in group.sets or selector.member_set == NODE


_LENGTHS: Mapping[str, Distribution] = {
    "crash": Uniform(0, 120 * SECOND_US),
    "stop": Uniform(0, 120 * SECOND_US),
    "restart": Uniform(0, 30 * SECOND_US),
    "stall": Uniform(5 * SECOND_US, 420 * SECOND_US),
    "slow": Uniform(10 * SECOND_US, 300 * SECOND_US),
    "pause_process": Uniform(SECOND_US, 90 * SECOND_US),
    "network": Uniform(SECOND_US, 90 * SECOND_US),
}
_MORE: Mapping[str, Mapping[str, Any]] = {"slow": {"factor": 10_000_000}, "network": {"partition": True}}


def unleash(groups: Sequence[Simulation], nemesis: Nemesis) -> None:
    """Put the faults into the loop, one after the other, at pods of any group. They end before ``until_us`` or are cut short."""
    simulation = groups[0]
    rng = simulation.randomness.stream("nemesis")
    gap = Exponential(nemesis.mean_interval_us)
    until_us = simulation.scenario.warmup_us + nemesis.until_us
    for group in groups:
        group.faults_until_us = until_us

    def strike(_: object) -> None:
        now_us = simulation.loop.now_us
        kind = nemesis.of[int(rng.random() * len(nemesis.of))]
        candidates = [pod for group in groups for pod in group.pods if pod.process is not None]
        if candidates:
            pod = candidates[int(rng.random() * len(candidates))]
            length_us = min(_LENGTHS[kind].sample(rng), until_us - now_us)
            selector = Selector(
                text=f"{pod.members.name}/{pod.index}",
                member_set=pod.members.name,
                choice=Choice.RANGE,
                first=pod.index,
                last=pod.index,
            )
            event = Event(
                kind=kind,
                target=selector.text,
                selector=selector,
                name=f"nemesis {kind}",
                parameters={"for": length_us, **_MORE.get(kind, {})},
            )
            pod.simulation.log_event(event, "begins")
            BEGIN[kind](EventRun(pod.simulation, event, EVENT_KINDS[kind], lambda: None))
        next_us = now_us + gap.sample(rng)
        if next_us < until_us:
            simulation.loop.at(next_us, strike)

    first_us = simulation.scenario.warmup_us + gap.sample(rng)
    if first_us < until_us:
        simulation.loop.at(first_us, strike)
