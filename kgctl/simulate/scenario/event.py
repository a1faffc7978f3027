"""What an event is: when it begins, what it is done to, and what a kind of events says of itself.

A kind is one class, in a module of `kgctl.simulate.scenario.kinds`: its fields with their defaults and help, its traits, and
`Event.begin`, which does it. Whoever reads a file, explains a run or plays it goes by the traits: nobody compares a kind's name.
"""

import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import ValidationInfo, WithJsonSchema

from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.event_port import GRACE_US, EventPort, LinkFault
from kgctl.simulate.scenario.expressions import Condition
from kgctl.simulate.scenario.fields import NAME, ReadBy, Reading, Section, as_written, key, parse_rates, reading
from kgctl.simulate.scenario.quantities import (
    Distribution,
    RateSteps,
    format_duration,
    is_duration,
    parse_share,
    rates_text,
    share_text,
    shown,
)
from kgctl.simulate.scenario.vocabulary import NODE, Choice, Selector, did_you_mean, parse_selector
from kgctl.yaml_files import Tree

WORDS_OF_AFTER = ("previous", "last")


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """``25%`` where a number could stand, in millionths."""

    ppm: int

    def __str__(self) -> str:
        """As a file has it."""
        return share_text(self.ppm)

    def of(self, number: int) -> int:
        """Return this share of a number, rounded up: at least 1 of 1 or more."""
        return -(-number * self.ppm // 1_000_000)


@frozen_in_order
class GoesWith:
    """Marks a field that means something only where each of these others has one of these values."""

    others: Mapping[str, tuple[str, ...]]


def count(raw: Any, least: int = 1) -> int:
    if type(raw) is not int or not least <= raw <= 1_000_000:
        raise ValueError(f"must be a whole number from {least} on, not {shown(raw)}")
    return raw


def size(raw: Any) -> int:
    return count(raw, least=0)


def change(raw: Any) -> int:
    if isinstance(raw, str) and re.fullmatch(r"[+-]\d{1,6}", raw.strip()):
        raw = int(raw)
    if type(raw) is not int or not raw:
        raise ValueError(f"must be a whole number with its sign, such as +10, not {shown(raw)}")
    return raw


def count_or_share(raw: Any) -> int | Share:
    return Share(parse_share(raw)) if isinstance(raw, str) else count(raw)


def size_or_share(raw: Any) -> int | Share:
    return Share(parse_share(raw)) if isinstance(raw, str) else size(raw)


def steps(raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list) or not raw:
        raise ValueError(f"must be a list of numbers or shares, such as [10%, 50%], not {shown(raw)}")
    found = tuple(map(count_or_share, raw))
    if any(type(earlier) is type(later) and later <= earlier for earlier, later in pairwise(found)):  # type: ignore[operator]
        raise ValueError(f"must grow from step to step, not {', '.join(map(str, raw))}")
    return found


def factor(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 < raw <= 1_000_000:
        raise ValueError(f"must be a number above 0, not {shown(raw)}")
    return round(raw * 1_000_000)


def event_name(raw: Any) -> str:
    if not isinstance(raw, str) or not raw:
        raise ValueError(f"must be text, not {shown(raw)}")
    if raw in WORDS_OF_AFTER:
        raise ValueError(f"no event can be called {raw!r}: `after: {raw}` means another one")
    if is_duration(raw):
        raise ValueError(f"no event can be called {raw!r}: that is a time")
    return raw


def condition(raw: Any, info: ValidationInfo) -> Any:
    """A condition, as the file's variant reads it."""
    file = reading(info)
    return raw if file is None else file.condition(raw)


_NUMBER_OR_TEXT = WithJsonSchema({"type": ["integer", "string"]})

Count: TypeAlias = Annotated[int, as_written(count), WithJsonSchema({"type": "integer", "minimum": 1})]
Size: TypeAlias = Annotated[int, as_written(size), WithJsonSchema({"type": "integer", "minimum": 0})]
Change: TypeAlias = Annotated[int, as_written(change), _NUMBER_OR_TEXT]
CountOrShare: TypeAlias = Annotated[int | Share, as_written(count_or_share), _NUMBER_OR_TEXT]
SizeOrShare: TypeAlias = Annotated[int | Share, as_written(size_or_share), _NUMBER_OR_TEXT]
Steps: TypeAlias = Annotated[
    tuple[int | Share, ...],
    as_written(steps),
    WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["integer", "string"]}}),
]
Factor: TypeAlias = Annotated[
    int, as_written(factor, lambda ppm: f"{ppm / 1_000_000:g}"), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]
Rates: TypeAlias = Annotated[
    RateSteps, as_written(parse_rates, rates_text), WithJsonSchema({"type": ["string", "number", "object"]})
]
EventName: TypeAlias = Annotated[str, as_written(event_name), WithJsonSchema({"type": "string"})]
When: TypeAlias = Annotated[Condition, ReadBy(condition, lambda when: when.text), WithJsonSchema({"type": "string"})]


@dataclass(slots=True)
class EventSurroundings:
    """What events refer to: sets of members with their clients, topics with their partitions, brokers, nodes and racks.

    Topics are those that there are at the event that is being read.
    """

    member_sets: Mapping[str, str]
    topics: dict[str, int]
    brokers: int
    nodes: int = 0
    racks: tuple[str, ...] = ()
    deleted: set[str] = field(default_factory=set)


class TargetType:
    """What the value under a kind's own key names."""

    text: ClassVar[str]
    form: ClassVar[Mapping[str, Any]] = {"type": "string"}

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:  # noqa: ARG002  # for those that look around
        """Raise ValueError for what names nothing."""
        if not isinstance(raw, str) or not raw:
            raise ValueError(f"names a {self.text}, not {shown(raw)}")

    def selector(self, target: str) -> Selector | None:  # noqa: ARG002  # for those that are pods
        return None

    def concerns(self, target: str, member_sets: Collection[str]) -> bool:  # noqa: ARG002  # topics and brokers are all's
        """Whether something happens to one of these sets."""
        return True


class _Pods(TargetType):
    text = "selector"

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:  # noqa: ARG002  # the same for every kind
        selector = parse_selector(raw)
        if selector.member_set == NODE and NODE not in around.member_sets:
            self._check_nodes(selector, around.nodes)
        elif selector.member_set is not None and selector.member_set not in around.member_sets:
            near = did_you_mean(selector.member_set, around.member_sets, list_up_to=12)
            if (node := re.fullmatch(r"node[-_ ]?(\d+)", selector.text)) is not None:
                near = f"; did you mean 'node/{node[1]}'?"
            elif (pod := re.fullmatch(r"(.+)[-_ ](\d+)", selector.text)) is not None and pod[1] in around.member_sets:
                near = f"; did you mean '{pod[1]}/{pod[2]}'?"
            raise ValueError(f"there is no set of members {selector.member_set!r}{near}")

    def _check_nodes(self, selector: Selector, nodes: int) -> None:
        if not nodes:
            raise ValueError("there are no nodes: say how many, cluster: {nodes: 4}")
        if selector.choice is not Choice.RANGE or not 1 <= selector.first <= selector.last <= nodes:
            raise ValueError(f"names a node, node/1 to node/{nodes}, or several: node/1..2")

    def selector(self, target: str) -> Selector:
        return parse_selector(target)

    def concerns(self, target: str, member_sets: Collection[str]) -> bool:
        selector = parse_selector(target)
        return selector.negated or selector.member_set in (None, NODE) or selector.member_set in member_sets


class _Known(TargetType):
    """One of those that there are; ``hint``: what to do where there is none that is near."""

    hint = ""

    @abstractmethod
    def known(self, around: EventSurroundings) -> Collection[str]: ...

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:
        super().check(raw, around, kind)
        if raw not in (known := self.known(around)):
            raise ValueError(f"there is no {self.text} {raw!r}{did_you_mean(raw, known, list_up_to=12) or self.hint}")


class _MemberSet(_Known):
    text = "set of members"

    def known(self, around: EventSurroundings) -> Collection[str]:
        return around.member_sets

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:
        if isinstance(raw, str) and (whole := raw.partition("/")[0]) != raw and whole in around.member_sets:
            raise ValueError(f"a {kind!r} event is of a whole set of members: write {whole!r}")
        super().check(raw, around, kind)

    def concerns(self, target: str, member_sets: Collection[str]) -> bool:
        return target in member_sets


class _Topic(_Known):
    text = "topic"

    def known(self, around: EventSurroundings) -> Collection[str]:
        return around.topics


class _NewTopic(TargetType):
    text = "new topic"

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:
        super().check(raw, around, kind)
        is_there = raw in around.topics and raw not in around.deleted
        around.topics[raw] = 0
        if is_there:
            raise ValueError(f"there is a topic {raw!r} already")
        if not NAME.fullmatch(raw):
            raise ValueError(f"{raw!r} is no name: letters, digits, dots, hyphens and underscores")


class _Broker(TargetType):
    text = "broker"
    form: ClassVar[Mapping[str, Any]] = {"type": ["integer", "string"]}

    def check(self, raw: Any, around: EventSurroundings, kind: str) -> None:  # noqa: ARG002  # the same for every kind
        is_number = type(raw) is int and 1 <= raw <= around.brokers
        if not is_number and raw != "coordinator":
            brokers = f"1 to {around.brokers}" if around.brokers > 1 else "1"
            near = did_you_mean(str(raw), ["coordinator"])
            raise ValueError(f"names a broker ({brokers}), or coordinator, not {raw!r}{near}")


class _Rack(_Known):
    text = "rack"
    hint = "; say which there are, cluster: {racks: [a, b, c]}"

    def known(self, around: EventSurroundings) -> Collection[str]:
        return around.racks


PODS, MEMBER_SET, TOPIC, NEW_TOPIC, BROKER, RACK = _Pods(), _MemberSet(), _Topic(), _NewTopic(), _Broker(), _Rack()


@frozen_in_order
class NemesisFault:
    """How a nemesis draws an event of a kind: for how long, what the file would say beside ``for``, and whether unasked."""

    lengths: Distribution
    more: Mapping[str, Any] = field(default_factory=dict)
    is_usual: bool = False


@frozen_in_order
class Doubt:
    """What is legal in an event and most likely not meant: by which rule, at which of its keys ("": the whole event), and why."""

    rule: str
    key: str
    text: str


def _nothing_to_ask(raw: Any) -> Condition:
    raise ValueError(f"a fault that is drawn has no condition, such as {shown(raw)}")


DRAWN = Reading(Tree("", {}), _nothing_to_ask)
"""With which the fields of a drawn fault are read, as a file has them."""


class Event(Section):
    """Something that is made to happen to ``target``.

    It begins at ``at_us``, or when the event named ``after`` is over ("previous": the one before it in the list; "last": all
    before it), ``at_us`` later. ``times`` above 1: again ``every_us`` after each beginning.
    """

    kind: ClassVar[str]
    """The key that says it in a file. A class that has none is no kind, but what several have in common."""
    target_type: ClassVar[TargetType] = PODS
    one_of: ClassVar[tuple[str, ...]] = ()
    """Fields of which exactly one has to be there."""
    also: ClassVar[tuple[str, ...]] = ()
    """What others call it."""

    is_lasting: ClassVar[bool] = False
    """Does something to pods until it is over."""
    may_stay: ClassVar[bool] = False
    """What it does may last for good: by the log it is over at once then."""
    moves_coordinator: ClassVar[bool] = False
    kills_broker: ClassVar[bool] = False
    is_planned: ClassVar[bool] = False
    """Somebody wants it: what else makes a gap, and is worth nearly as much, is told first."""
    is_deploy: ClassVar[bool] = False
    """How it is done is what is tried."""
    is_playable: ClassVar[bool] = False
    """Can be done to real clients and a real cluster."""
    may_kill: ClassVar[bool] = True
    """Played, it may end or freeze a process that is not told to close."""
    starts_pods: ClassVar[bool] = False
    """Lets pods run that did not."""
    renumbers: ClassVar[bool] = False
    """A set may have pods of other numbers after it."""
    forms_group: ClassVar[bool] = False
    """Is no disturbance where the group is not together yet."""
    creates_topic: ClassVar[bool] = False
    adds_partitions: ClassVar[bool] = False
    changes_sources: ClassVar[bool] = False
    """A topic is gone, or has other partitions: an application that reads it does not survive that."""
    needs_rate: ClassVar[bool] = False
    """Does nothing to pods whose records take no time."""
    writes: ClassVar[bool] = False
    """Has records written."""
    fault: ClassVar[NemesisFault | None] = None
    """How a nemesis draws it; None: it does not."""

    target: str
    at_us: fields.Duration = key("After the end of the warm-up; with after: after the end of that event.", 0, of="at")
    after: str | None = key("previous, last, or the name of an event before it.", None)
    every_us: fields.Duration = key("Again after each such time.", 0, of="every")
    times: Count = 1
    when: When | None = key("Left out unless this holds when its time has come.", None)
    name: EventName = ""

    @abstractmethod
    def begin(self, run: EventPort) -> None:
        """Do it, and see to it that `EventPort.over` is called once."""

    @property
    def title(self) -> str:
        """Return its name, or its kind where it has none."""
        return self.name or self.kind

    @property
    def selector(self) -> Selector | None:
        """Return which pods are meant; None: it is done to something else."""
        return self.target_type.selector(self.target)

    def concerns(self, member_sets: Collection[str]) -> bool:
        """Whether something happens to one of these sets: to its pods, or to topics and brokers, which are everybody's."""
        return self.target_type.concerns(self.target, member_sets)

    def contradictions(self, around: EventSurroundings) -> Iterator[tuple[str, str]]:  # noqa: ARG002  # most have none
        """Yield what cannot be so: at which key, and why. What the event changes is different in ``around`` afterwards."""
        yield from ()

    def doubts(self, counts: Mapping[str, int], coordinators: tuple[int, ...]) -> Iterator[Doubt]:  # noqa: ARG002
        """Yield what is most likely not meant, in sets of so many pods and with these replicas of the group's log."""
        yield from ()

    def in_vain(self, usual: LinkFault) -> str:  # noqa: ARG002  # the network, as it is without events
        """Return why it does nothing as it stands; "" where it does something."""
        length: Distribution | None = getattr(self, "length", None)
        return "it lasts for 0s" if self.is_lasting and length is not None and not length.mean_us else ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return () if self.when is None else (self.when,)

    @property
    def may_be_called_off(self) -> bool:
        """Whether a condition may leave the rest of it undone."""
        return False

    @property
    def settings(self) -> Mapping[str, str | None]:
        """Return the consumer settings that processes have from it on; None: they have it no more."""
        return {}

    @property
    def settings_key(self) -> str:
        """Return the key that says them."""
        return next(key for key, name in self.by_key().items() if name == "given")

    @property
    def rates(self) -> RateSteps:
        """Return the rates of records (from, after the event's begin; rate) that its topic has from it on."""
        return ()

    @property
    def makes_new_pods(self) -> bool:
        """Whether pods of other names take the place of those that are there."""
        return False

    @classmethod
    def by_key(cls) -> dict[str, str]:
        """Return the keys of a file, but for the kind's own and those of every event -> the fields that they are of."""
        own = {str(each.validation_alias or name): name for name, each in cls.model_fields.items()}
        return {key: name for key, name in own.items() if name not in Event.model_fields}

    @classmethod
    def help(cls) -> str:
        """Return what happens, in one or two sentences."""
        return " ".join((cls.__doc__ or "").split())

    @classmethod
    def written(cls, target: str, length_us: int) -> dict[str, Any]:
        """Return a drawn fault of this kind as a file has it."""
        assert cls.fault is not None
        return {cls.kind: target, "for": format_duration(length_us), **cls.fault.more}

    def as_drawn(self) -> dict[str, Any]:
        """Return this fault, which a nemesis has drawn, as a file has it."""
        length: Distribution = getattr(self, "length")  # noqa: B009  # of those that are drawn
        return {"at": format_duration(self.at_us), **self.written(self.target, length.mean_us)}

    @classmethod
    def drawn(cls: type["_Event"], target: str, length_us: int) -> "_Event":
        """Return a fault as a nemesis draws it."""
        raw = cls.written(target, length_us)
        del raw[cls.kind]
        return cls.model_validate({"target": target, "name": f"nemesis {cls.kind}", **raw}, context=DRAWN)


_Event = TypeVar("_Event", bound=Event)


class StartsWith(Event):
    """Events after which processes start with other settings, which ``with`` gives."""

    given: fields.ConfigChange = key("consumer settings from this start on", {}, of="with")

    @property
    def settings(self) -> Mapping[str, str | None]:
        return self.given


class Sets(Event):
    """Events whose new processes have other settings, which ``set`` gives."""

    given: fields.ConfigChange = key("consumer settings that the new processes have", {}, of="set")

    @property
    def settings(self) -> Mapping[str, str | None]:
        return self.given


class Abortable(Event):
    """Events that a condition calls off."""

    abort_if: When | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return (*super().conditions, *(() if self.abort_if is None else (self.abort_if,)))

    @property
    def may_be_called_off(self) -> bool:
        return self.abort_if is not None

    def is_called_off(self, run: EventPort) -> bool:
        """Whether the condition to abort holds, which the log then says."""
        if self.abort_if is None or not self.abort_if.holds(run.metrics):
            return False
        run.abort()
        return True


class Terminates(Event):
    """Events that end pods as Kubernetes does, and start others in their place."""

    workload: Literal["deployment", "statefulset"] = key(
        "deployment: new pods have new names, and new instance ids where these have $name; statefulset: the same ones",
        "deployment",
    )
    grace_us: fields.Duration = key("terminationGracePeriodSeconds: from preStop, or SIGTERM, to SIGKILL", GRACE_US, of="grace")
    sigterm: Literal["close", "exit", "ignored"] | None = key(
        "what the application does: close (the consumer), exit (without), ignored (until it is killed); default: on_stop", None
    )

    @property
    def makes_new_pods(self) -> bool:
        return self.workload == "deployment"
