"""One run of a scenario: the same scenario and seed give the same result, to the byte, in any process.

`Schedule` begins each event: at a time, after another one, again and again, or by a nemesis; and knows when all are over.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kgctl.errors import UsageError, UserCodeError
from kgctl.model.values import frozen
from kgctl.simulate.engine.context import Loop
from kgctl.simulate.engine.events import EventRun
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import Drawn, Observer
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.event_port import Countdown
from kgctl.simulate.scenario.events import EVENT_KINDS
from kgctl.simulate.scenario.expressions import MetricSource
from kgctl.simulate.scenario.fields import UNTIL_STABLE, changed
from kgctl.simulate.scenario.model import MINUTE_US, Nemesis, Scenario
from kgctl.simulate.scenario.quantities import Exponential, Wave, format_duration
from kgctl.simulate.scenario.vocabulary import EventStage, Identity

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
        self.last_over_us = simulation.warmup_us

    def begin(self) -> None:
        """Put every event with a time of its own into the loop."""
        for position, event in enumerate(self._events):
            before = self._before(position, event)
            self._waits_for[position] = len(before)
            for index in before:
                self._followers[index].append(position)
            if not before:
                self._arm(position, self._simulation.warmup_us + event.at_us)

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
        concerned = [group for group in self._groups if event.concerns(group.sets)]
        others = [group for group in self._groups if group not in concerned]
        if event.when is not None and not event.when.holds((concerned or self._groups)[0].metrics):
            self._log(self._groups, event, EventStage.LEFT_OUT)
            self._over(position)
            return
        self._log(self._groups, event, EventStage.BEGINS)

        def over() -> None:
            self._log(others, event, EventStage.ENDS)
            self._over(position)

        countdown = Countdown(len(concerned), over)
        for group in concerned:
            run = EventRun(group, event, countdown.one)
            if event.in_vain(group.scenario.cluster.network.usual):
                run.found_nothing()
            event.begin(run)

    def _log(self, groups: Sequence[Simulation], event: Event, what: EventStage) -> None:
        for group in groups:
            group.log_event(event, what)

    def _over(self, position: int) -> None:
        now_us = self._simulation.loop.now_us
        self.open -= 1
        self._left[position] -= 1
        self.last_over_us = now_us
        self._simulation.loop.has_changed = True
        if self._left[position]:
            return
        for follower in self._followers[position]:
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                self._arm(follower, now_us + self._events[follower].at_us)


def unleash(groups: Sequence[Simulation], nemesis: Nemesis) -> None:
    """Put the faults into the loop, one after the other, at pods of any group. They end before ``until_us`` or are cut short."""
    simulation = groups[0]
    rng = simulation.randomness.stream("nemesis")
    gap = Exponential(nemesis.mean_interval_us)
    until_us = simulation.warmup_us + nemesis.until_us
    for group in groups:
        group.faults_until_us = until_us

    def strike(_: object) -> None:
        now_us = simulation.loop.now_us
        kind = EVENT_KINDS[nemesis.of[int(rng.random() * len(nemesis.of))]]
        candidates = [(group, pod) for group in groups for pod in group.pods if pod.process is not None]
        if candidates:
            group, pod = candidates[int(rng.random() * len(candidates))]
            fault = kind.fault
            assert fault is not None
            length_us = min(fault.lengths.sample(rng), until_us - now_us)
            event = kind.drawn(f"{pod.members.name}/{pod.index}", length_us)
            group.log_event(event, EventStage.BEGINS)
            for each in groups:
                each.emit(Drawn, changed(event, at_us=now_us - simulation.warmup_us))
            event.begin(EventRun(group, event, lambda: None))
        next_us = now_us + gap.sample(rng)
        if next_us < until_us:
            simulation.loop.at(next_us, strike)

    first_us = simulation.warmup_us + gap.sample(rng)
    if first_us < until_us:
        simulation.loop.at(first_us, strike)


TIME_LIMIT = "the time limit"
"""Why a run ended that was under way when the time of the whole command was over."""
AFTER_STABLE_US = MINUTE_US
LOOK_EVERY_US = 1_000_000
_MOST_LOOKS = 3_600
ASK_EVERY = 1024
_COLLECT_EVERY = 200_000


@frozen
class RunLimits:
    """Where a run that does not end by itself is stopped. ``tail_us``: how long after its last event it may take to get stable.

    ``is_over``: asked now and then; once it is true, the run ends with what it knows (a person's patience has a clock).
    """

    tasks: int = 100_000_000
    virtual_us: int = 400 * 24 * 60 * MINUTE_US
    tail_us: int = 60 * MINUTE_US
    is_over: Callable[[], bool] | None = None


NO_LIMITS = RunLimits()


def run(
    scenario: Scenario,
    seed: int,
    *,
    observers: Sequence[Observer] = (),
    limits: RunLimits = NO_LIMITS,
    keeps_records: bool = False,
    keeps_all_commits: bool = False,
    identity: Identity = Identity.POD,
    read: Callable[[Recording], MetricSource] | None = None,
    others: dict[str, Recording] | None = None,
) -> Recording:
    """Run one variant, merged already, with one seed.

    ``observers`` see the log as it grows and each moment in which something changed. ``keeps_records``: the recording has the
    coordinator's records; ``keeps_all_commits``: with every commit of quiet times, not only the last. ``identity`` is what the
    metrics of movement go by; ``read`` makes what conditions and observers look at; ``others`` is given the recordings of the
    groups that run together with this one, by their ids. A run that reaches a limit is stopped, and
    says so in the recording's ending.

    Raises:
        UsageError: the scenario contradicts itself (settings, names). InvariantViolation: a bug, with the group's story.
        UserCodeError: an assignor of the user's own raised, or answered what it may not.
    """
    scenario = warmed_up(scenario, seed)
    loop, groups = Loop(), []
    for part in _parts(scenario):
        is_measured = part.group_id == scenario.group_id
        groups.append(
            Simulation(
                part,
                seed,
                observers if is_measured else (),
                keeps_records=keeps_records and is_measured,
                keeps_all_commits=keeps_all_commits and is_measured,
                identity=identity,
                read=read,
                loop=loop,
            )
        )
    with _timed(loop):
        measured = complete(groups, limits, measured=scenario.group_id)
    if others is not None:
        others |= {group.scenario.group_id: group.recording for group in groups if group.recording is not measured}
    return measured


@contextmanager
def _timed(loop: Loop) -> Iterator[None]:
    """What the user's own code does wrong says when it happened."""
    try:
        yield
    except UserCodeError as error:
        raise UserCodeError(f"at {loop.now_us / 1_000_000:.6f} s: {error.message}", group=error.group) from error.__cause__


_WAITS_US = 10 * MINUTE_US
"""So long a group may take to come together; one that never does is measured from then on."""


def warmed_up(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with a warm-up of so long as its groups take until all have been stable for a minute, where it says no time.

    Found by a run with this seed in which nothing else happens.
    """
    if scenario.warmup_us != UNTIL_STABLE:
        return scenario
    still: dict[str, Any] = {"warmup_us": 0, "duration_us": None, "events": (), "nemesis": None, "autoscale": None}
    parts = [changed(part, **still) for part in scenario.together or (scenario,)]
    loop = Loop()
    with _timed(loop):
        complete([Simulation(part, seed, loop=loop) for part in parts], RunLimits(tail_us=_WAITS_US))
    return changed(
        scenario, warmup_us=loop.now_us, together=tuple(changed(part, warmup_us=loop.now_us) for part in scenario.together)
    )


def _parts(scenario: Scenario) -> list[Scenario]:
    """Return the scenarios of all groups, with what is everybody's as this one has it."""
    if not scenario.together:
        return [scenario]
    return [
        changed(
            scenario if part.group_id == scenario.group_id else part,
            cluster=scenario.cluster,
            topics=scenario.topics,
            traffic=scenario.traffic,
            events=scenario.events,
            nemesis=scenario.nemesis,
        )
        for part in scenario.together
    ]


def complete(groups: Sequence[Simulation], limits: RunLimits = NO_LIMITS, *, measured: str = "") -> Recording:
    """Let groups that have just been made go to their end together, and return the recording of ``measured``, or the first."""
    schedule = Schedule(groups)
    for group in groups:
        _start(group)
    schedule.begin()
    if (nemesis := groups[0].scenario.nemesis) is not None:
        unleash(groups, nemesis)
    for group in groups:
        if group.scenario.autoscale is not None:
            from kgctl.simulate.engine.autoscale import AutoscaleLoop

            AutoscaleLoop(group, group.scenario.autoscale).begin()
    simulation = next((group for group in groups if group.scenario.group_id == measured), groups[0])
    with rare_collections():
        stopped = _Clockwork(simulation, groups, schedule, limits).run()
        recordings = [group.close(stopped) for group in groups]
    return recordings[groups.index(simulation)]


@contextmanager
def rare_collections() -> Iterator[None]:
    """A run makes much that lives long and hardly a cycle: looking for garbage all the time is a third of a large one's time."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _COLLECT_EVERY) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _start(simulation: Simulation) -> None:
    for topic in simulation.scenario.traffic:
        for at_us, rate_uhz in _steps(simulation, topic.steps):
            simulation.loop.at(at_us, lambda step: simulation.topics.set_rate(*step), (topic.topic, rate_uhz))
        if topic.wave is not None:
            _swing(simulation, topic.topic, topic.wave)
    for pod in simulation.pods:
        start = pod.members.start
        if start is not None:
            pod.want(is_wanted=True)
            start_us = start.sample(simulation.randomness.stream("start", pod.name))
            is_early = start_us < simulation.scenario.warmup_us
            lead_us = 0 if is_early else simulation.warmup_us - simulation.scenario.warmup_us
            simulation.loop.at(start_us + lead_us, lambda pod: pod.boot(), pod)


def _swing(simulation: Simulation, topic: str, wave: Wave) -> None:
    """One piece of the wave after the other, from the run's begin on."""

    def begin(number: int) -> None:
        simulation.topics.set_rate(topic, wave.rate_uhz(number))
        simulation.loop.at(simulation.warmup_us + wave.begin_us(number + 1), begin, number + 1)

    simulation.loop.at(0, begin, 0)


def _steps(simulation: Simulation, steps: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Times from the run's begin on; the first rate holds from there."""
    warmup_us = simulation.warmup_us
    return [(0 if not position else warmup_us + at_us, rate_uhz) for position, (at_us, rate_uhz) in enumerate(steps)]


class _Clockwork:
    """Runs the loop until the scenario's end."""

    def __init__(self, simulation: Simulation, groups: Sequence[Simulation], schedule: Schedule, limits: RunLimits) -> None:
        self._simulation = simulation
        self._groups = groups
        self._schedule = schedule
        self._limits = limits
        self._observers = simulation.observers
        needs_looks = any(getattr(observer, "needs_looks", False) for observer in self._observers)
        self._every_us = max(LOOK_EVERY_US, (simulation.scenario.duration_us or 0) // _MOST_LOOKS) if needs_looks else None

    def run(self) -> str:
        """Run until the end, and return the limit that stopped it, or ""."""
        simulation, loop, limits = self._simulation, self._simulation.loop, self._limits
        scenario = simulation.scenario
        end_us = None if scenario.duration_us is None else simulation.warmup_us + scenario.duration_us
        limit_us = min(self._end_us() if end_us is None else end_us, limits.virtual_us)
        moments, most, is_over, ask_at = loop.moments, limits.tasks, limits.is_over, loop.executed
        look_us = limits.virtual_us if self._every_us is None else simulation.warmup_us
        while True:
            if not moments or moments[0] > limit_us:
                limit_us = min(self._end_us() if end_us is None else end_us, limits.virtual_us)
                if not moments or moments[0] > limit_us:
                    return self._stop(limit_us, end_us)
            if loop.executed >= most:
                return f"{most} events"
            if is_over is None:
                ask_at = most
            elif loop.executed >= ask_at:
                ask_at = loop.executed + ASK_EVERY
                if is_over():
                    return TIME_LIMIT
            if moments[0] > look_us:
                loop.now_us, loop.looks = look_us, loop.looks + 1
                look_us += self._every_us or limits.virtual_us
                self._show()
                continue
            loop.run(min(limit_us, look_us), most, ask_at)
            if loop.has_changed:
                self._show()
                limit_us = min(self._end_us() if end_us is None else end_us, limits.virtual_us)

    def _end_us(self) -> int:
        """Without a duration: 60 s of calm after the last event, at most the tail."""
        schedule, simulation = self._schedule, self._simulation
        if schedule.open:
            return self._limits.virtual_us
        over_us = max(schedule.last_over_us, simulation.faults_until_us)
        if not self._is_calm():
            return over_us + self._limits.tail_us
        return max(over_us, *(group.history.calm.since_us or 0 for group in self._groups)) + AFTER_STABLE_US

    def _is_calm(self) -> bool:
        return all(group.history.calm.since_us is not None for group in self._groups)

    def _stop(self, limit_us: int, end_us: int | None) -> str:
        self._simulation.loop.now_us = max(limit_us, self._simulation.loop.now_us)
        for group in self._groups:
            group.changed()
        self._show()
        if end_us is not None and limit_us == end_us:
            return ""
        if limit_us == self._limits.virtual_us:
            return f"{format_duration(limit_us)} of virtual time"
        return "" if self._simulation.history.calm.since_us is not None else "not stable after its last event"

    def _show(self) -> None:
        simulation = self._simulation
        simulation.loop.has_changed = False
        for observer in self._observers:
            observer.on_step(simulation.context.log_time, simulation.metrics)
