"""What a kind of event is: its fields, declared once for the engine, the schema and the manual, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kgctl.simulate.scenario.model import Event

if TYPE_CHECKING:
    from kgctl.simulate.engine.world import World


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
