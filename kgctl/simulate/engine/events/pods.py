"""What the kinds that act on pods share."""

from __future__ import annotations

from collections.abc import Callable

from kgctl.simulate.engine.events.kind import EventRun
from kgctl.simulate.engine.pods.pod import Pod
from kgctl.simulate.engine.pods.process import Process
from kgctl.simulate.engine.selection import select
from kgctl.simulate.scenario.distributions import Distribution


def pods_of(run: EventRun) -> list[Pod]:
    """The pods that are meant at this moment."""
    selector = run.event.selector
    return [] if selector is None else select(run.world, selector)


def processes_of(run: EventRun) -> list[Process]:
    """Their processes, of those that run."""
    return [pod.process for pod in pods_of(run) if pod.process is not None]


def duration_of(run: EventRun, name: str = "for") -> int | None:
    """A duration of this event, drawn where it is a distribution; None: not given."""
    value: Distribution | int | None = run[name]
    if value is None or isinstance(value, int):
        return value
    return value.sample(run.world.randomness.stream("event", run.event.kind, run.event.target, str(run.world.loop.now_us)))


def in_a_while(run: EventRun, delay_us: int, task: Callable[[object], None]) -> None:
    """Call this so much later."""
    run.world.loop.at(run.world.loop.now_us + delay_us, task)


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
