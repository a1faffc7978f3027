"""What a kind of event is: its fields, declared once for the engine, the schema and the manual, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgctl.simulate.engine.pods import Pod, select
from kgctl.simulate.engine.process import Process
from kgctl.simulate.scenario.event_kinds import EventKind
from kgctl.simulate.scenario.model import Event
from kgctl.simulate.scenario.quantities import Distribution

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import Simulation


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
        """A field's value, or its default."""
        value = self.event[name]
        if value is not None:
            return value
        return next(field.default for field in self._kind.fields if field.name == name)

    def over(self, _: object = None) -> None:
        """It has done all that it does; what comes ``after`` it may begin."""
        self.simulation.log_event(self.event, "ends")
        if self.event.kind in _LASTING:
            self.simulation.history.lifted.append(self.simulation.loop.now_us)
        self._on_over()

    def without_effect(self) -> None:
        """It is over, and has found nothing that it could do: the log says so."""
        self.simulation.log_event(self.event, "has no effect")
        self.over()


def pods_of(run: EventRun) -> list[Pod]:
    """The pods that are meant at this moment."""
    selector = run.event.selector
    return [] if selector is None else select(run.simulation, selector)


def processes_of(run: EventRun) -> list[Process]:
    """Their processes, of those that run."""
    return [pod.process for pod in pods_of(run) if pod.process is not None]


def duration_of(run: EventRun, name: str = "for") -> int | None:
    """A duration of this event, drawn where it is a distribution; None: not given."""
    value: Distribution | int | None = run[name]
    if value is None or isinstance(value, int):
        return value
    return value.sample(
        run.simulation.randomness.stream("event", run.event.kind, run.event.target, str(run.simulation.loop.now_us))
    )


def in_a_while(run: EventRun, delay_us: int, task: Callable[[object], None]) -> None:
    """Call this so much later."""
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
        """One of them has happened."""
        self._left -= 1
        if self._left == 0:
            self._then()
