"""What a kind of event is: its fields, declared once for the engine, the schema and the manual, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kgctl.simulate.engine.pods import Pod, select
from kgctl.simulate.engine.process import Process
from kgctl.simulate.scenario.distributions import Distribution
from kgctl.simulate.scenario.model import Event

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import World


class Target(StrEnum):
    """What the value under the kind's own key names."""

    PODS = "selector"
    MEMBER_SET = "set of members"
    TOPIC = "topic"
    NEW_TOPIC = "new topic"
    BROKER = "broker"


class FieldType(StrEnum):
    """How a field is written, and what it becomes in `Event.parameters`."""

    DURATION = "duration"  # microseconds
    DISTRIBUTION = "distribution"  # a Distribution
    COUNT = "count"  # a whole number of 1 or more
    SIZE = "size"  # a whole number of 0 or more
    CHANGE = "change"  # a whole number with its sign: +10, -3
    COUNT_OR_SHARE = "count or share"  # a whole number, or a Share
    SHARE = "share"  # millionths
    FACTOR = "factor"  # millionths
    RATE = "rate"  # steps of (microseconds from the event on, millionths of a record a second)
    CONFIG = "config"  # Kafka's names -> text
    CHOICE = "choice"  # one of Field.choices
    FLAG = "flag"  # true or false
    CONDITION = "condition"  # a Condition


@dataclass(frozen=True, slots=True)
class Share:
    """``25%`` where a number could stand, in millionths."""

    ppm: int

    def of(self, number: int) -> int:
        """That share of a number, rounded up; at least 1 of 1 or more."""
        return -(-number * self.ppm // 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. ``default`` is what is used when it is not given; a field that ``is_required`` has none."""

    name: str
    type: FieldType
    help: str
    default: Any = None
    is_required: bool = False
    choices: tuple[str, ...] = ()


class EventRun:
    """One beginning of an event, until it is over. A kind's ``begin`` gets it and sees to it that `over` is called once."""

    def __init__(self, world: World, event: Event, kind: EventKind, on_over: Callable[[], None]) -> None:
        self.world = world
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
        self.world.log_event(self.event, "ends")
        self._on_over()

    def without_effect(self) -> None:
        """It is over, and has found nothing that it could do: the log says so."""
        self.world.log_event(self.event, "has no effect")
        self.over()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKind:
    """``begin`` starts it. ``one_of``: fields of which exactly one has to be there."""

    name: str
    target: Target
    help: str
    begin: Callable[[EventRun], None]
    fields: tuple[Field, ...] = ()
    one_of: tuple[str, ...] = ()


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
