"""The kinds of events: their fields, declared once for files, the schema, the manual and the engine, which has what each does.

A new kind is an `EventKind` in the table here and a function in `kgctl.simulate.engine.events` or `.deploys`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from kgctl.simulate.scenario.quantities import Constant
from kgctl.simulate.scenario.vocabulary import Selector


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
    SIZE_OR_SHARE = "size or share"  # a whole number of 0 or more, or a Share
    COUNT_OR_SHARE = "count or share"  # a whole number, or a Share
    STEPS = "steps"  # a tuple of whole numbers or Shares that grow
    SHARE = "share"  # millionths
    FACTOR = "factor"  # millionths
    RATE = "rate"  # steps of (microseconds from the event on, millionths of a record a second)
    CONFIG = "config"  # Kafka's names -> text
    CHOICE = "choice"  # one of Field.choices
    FLAG = "flag"  # true or false
    CONDITION = "condition"  # a Condition


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """``25%`` where a number could stand, in millionths."""

    ppm: int

    def of(self, number: int) -> int:
        """Return this share of a number, rounded up: at least 1 of 1 or more."""
        return -(-number * self.ppm // 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. ``default`` is what is used when it is not given; a field that ``is_required`` has none.

    ``only_with``: other fields of the kind, and the values of each with which this one means something.
    """

    name: str
    type: FieldType
    help: str
    default: Any = None
    is_required: bool = False
    choices: tuple[str, ...] = ()
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKind:
    """What a file says of an event of this kind. ``one_of``: fields of which exactly one has to be there."""

    name: str
    target: Target
    help: str
    fields: tuple[Field, ...] = ()
    one_of: tuple[str, ...] = ()


class MetricSource(Protocol):
    """Gives the metrics of one run, unfinished or whole."""

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """Return the value, or None where there is none."""
        ...


class Condition(Protocol):
    """An expression over a run so far (``when:``, ``abort_if:``)."""

    @property
    def text(self) -> str:
        """Return the condition as the file has it."""
        ...

    def holds(self, metrics: MetricSource) -> bool:
        """Return whether the condition is true now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that is made to happen. ``kind`` is a key of `EVENT_KINDS`.

    ``target``: a selector's, a set of members', or a topic's name, as the kind wants it (``selector`` is set for the first).
    It begins at ``at_us``, or when the event named ``after`` is over ("previous": the one before it in the list; "last": all
    before it), ``at_us`` later. ``times`` above 1: again ``every_us`` after each beginning. ``parameters`` are the kind's other
    fields, under their names, as values: microseconds for durations, `Distribution`, rates in uHz, numbers, texts, mappings.
    """

    kind: str
    target: str
    selector: Selector | None = None
    name: str = ""
    at_us: int = 0
    after: str | None = None
    every_us: int = 0
    times: int = 1
    when: Condition | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return a parameter, or None where it is not given."""
        return self.parameters.get(name)


LOAD = Field(
    name="load",
    type=FieldType.DISTRIBUTION,
    help="how long the new coordinator reads its log, 100 ms if not given",
    default=Constant(100_000),
)

WITH = Field(name="with", type=FieldType.CONFIG, help="consumer settings from this start on", default={})

FOR = Field(name="for", type=FieldType.DISTRIBUTION, help="how long they stay down; without it, for good")

FIELDS = (
    Field(name="batch", type=FieldType.COUNT_OR_SHARE, help="how many pods at the same time, or which share of them", default=1),
    Field(
        name="wait",
        type=FieldType.CHOICE,
        help="what the next batch waits for: ready (the pods have subscribed), stable (the group is, with every partition "
        "consumed; 10 minutes at most), none",
        default="ready",
        choices=("ready", "stable", "none"),
    ),
    Field(name="settle", type=FieldType.DURATION, help="how long after that the next batch begins", default=0),
    Field(name="down", type=FieldType.DURATION, help="how long a pod is down before its process starts again", default=0),
    Field(name="abort_if", type=FieldType.CONDITION, help="looked at before each batch: if it holds, the rest is left as it is"),
)

WORKLOAD = Field(
    name="workload",
    type=FieldType.CHOICE,
    help="deployment: new pods have new names, and new instance ids where these have $name; statefulset: the same ones",
    default="deployment",
    choices=("deployment", "statefulset"),
)
READY = Field(
    name="ready", type=FieldType.DISTRIBUTION, help="from subscribe() until the readiness probe succeeds", default=Constant(0)
)
GRACE = Field(
    name="grace", type=FieldType.DURATION, help="terminationGracePeriodSeconds: from SIGTERM to SIGKILL", default=30_000_000
)
SIGTERM = Field(
    name="sigterm",
    type=FieldType.CHOICE,
    help="what the application does: close (the consumer), exit (without), ignored (until it is killed); default: on_stop",
    choices=("close", "exit", "ignored"),
)
_DEPLOYMENT = {"workload": ("deployment",)}
_PAUSES = {**_DEPLOYMENT, "strategy": ("canary", "blue-green")}

ROLLOUT = (
    WORKLOAD,
    Field(
        name="strategy",
        type=FieldType.CHOICE,
        help="of a deployment: rolling (RollingUpdate), recreate (all end, then all start), blue-green (all new ones beside the "
        "old ones, then these end) or canary (by steps)",
        default="rolling",
        choices=("rolling", "recreate", "blue-green", "canary"),
        only_with=_DEPLOYMENT,
    ),
    Field(
        name="max_surge",
        type=FieldType.SIZE_OR_SHARE,
        help="maxSurge of a deployment: pods above the wanted number; a share is rounded up",
        default=Share(250_000),
        only_with={**_DEPLOYMENT, "strategy": ("rolling", "canary")},
    ),
    Field(
        name="max_unavailable",
        type=FieldType.SIZE_OR_SHARE,
        help="maxUnavailable: pods that may be missing; a share is rounded down; 25% of a deployment, 1 of a statefulset",
        default=Share(250_000),
        only_with={"strategy": ("rolling", "canary")},
    ),
    Field(
        name="steps",
        type=FieldType.STEPS,
        help="of a canary: how many pods, or which share of them, have the new version at each step; then all have it",
        default=(Share(100_000), Share(500_000)),
        only_with={**_DEPLOYMENT, "strategy": ("canary",)},
    ),
    Field(
        name="pause",
        type=FieldType.DURATION,
        help="of a canary: how long after each step the next one begins; of blue-green: how long both versions run",
        default=0,
        only_with=_PAUSES,
    ),
    Field(
        name="abort_if",
        type=FieldType.CONDITION,
        help="looked at when each pause is over: if it holds, the new pods go, and old ones come back where they are missing",
        only_with=_PAUSES,
    ),
    READY,
    Field(name="never_ready", type=FieldType.FLAG, help="the probe of the new version never succeeds", default=False),
    Field(name="min_ready", type=FieldType.DURATION, help="minReadySeconds: ready for so long counts as available", default=0),
    GRACE,
    SIGTERM,
    Field(
        name="partition",
        type=FieldType.SIZE,
        help="of a statefulset: pods below this number stay as they are",
        default=0,
        only_with={"workload": ("statefulset",)},
    ),
    Field(
        name="deadline",
        type=FieldType.DURATION,
        help="after this time the rollout is given up, as it stands (progressDeadlineSeconds, of the whole rollout)",
        default=1_800_000_000,
    ),
    Field(name="set", type=FieldType.CONFIG, help="consumer settings that the new version has", default={}),
)

DRAIN = (
    WORKLOAD,
    Field(
        name="budget",
        type=FieldType.SIZE_OR_SHARE,
        help="maxUnavailable of the PodDisruptionBudget of each set of members; a share is rounded up",
        default=1,
    ),
    READY,
    GRACE,
    SIGTERM,
    Field(name="retry", type=FieldType.DURATION, help="how long until a refused eviction is tried again", default=5_000_000),
    Field(
        name="deadline",
        type=FieldType.DURATION,
        help="after this time the drain is given up, as it stands",
        default=3_600_000_000,
    ),
)

SPOT_LOSS = (
    WORKLOAD,
    Field(
        name="notice",
        type=FieldType.DURATION,
        help="from the notice, at which the pods get SIGTERM, until their machines are gone; 0s: no warning",
        default=120_000_000,
    ),
    Field(
        name="replacement",
        type=FieldType.DISTRIBUTION,
        help="from the notice until there is a machine that new pods start on",
        default=Constant(90_000_000),
    ),
    GRACE,
    SIGTERM,
)

SET = Field(name="set", type=FieldType.CONFIG, help="consumer settings that the new processes have", default={})

REQUIRED_SET = Field(name="set", type=FieldType.CONFIG, help="consumer settings that the new processes have", is_required=True)


EVENT_KINDS: Mapping[str, EventKind] = {
    kind.name: kind
    for kind in (
        EventKind(
            name="start",
            target=Target.PODS,
            help="Start pods that do not run; it is over when they have subscribed.",
            fields=(WITH,),
        ),
        EventKind(
            name="stop",
            target=Target.PODS,
            help="Stop pods as SIGTERM does; what on_stop says is done. With for: start them again.",
            fields=(FOR, WITH),
        ),
        EventKind(
            name="crash",
            target=Target.PODS,
            help="Kill pods: no callbacks, no commit, no LeaveGroup. With for: start them again after that time.",
            fields=(FOR, WITH),
        ),
        EventKind(
            name="restart",
            target=Target.PODS,
            help="Stop these pods, all at the same time, and start each again when it has stopped.",
            fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="how long they are down between", default=0), WITH),
        ),
        EventKind(
            name="rolling_restart",
            target=Target.PODS,
            help="Restart pods batch by batch, as a deployment does.",
            fields=(*FIELDS, SET),
        ),
        EventKind(
            name="upgrade",
            target=Target.PODS,
            help="Restart pods batch by batch with other settings.",
            fields=(*FIELDS, REQUIRED_SET),
        ),
        EventKind(
            name="rollout",
            target=Target.MEMBER_SET,
            help="A new version of a set, as Kubernetes rolls it out: a Deployment (new pods, new names) or a StatefulSet.",
            fields=ROLLOUT,
        ),
        EventKind(
            name="drain",
            target=Target.PODS,
            help="kubectl drain: the pods, usually those of a node (node/2), are evicted as fast as the disruption budget "
            "allows, and others start in their place on other nodes.",
            fields=DRAIN,
        ),
        EventKind(
            name="spot_loss",
            target=Target.PODS,
            help="Machines are taken away: all pods at once get SIGTERM, are dead when the notice is over, and others "
            "start when there are new machines.",
            fields=SPOT_LOSS,
        ),
        EventKind(
            name="scale",
            target=Target.MEMBER_SET,
            help="Change the number of pods: the highest numbers go first, new ones come last.",
            fields=(
                Field(name="to", type=FieldType.SIZE, help="so many pods"),
                Field(name="by", type=FieldType.CHANGE, help="so many more, or fewer"),
                Field(name="over", type=FieldType.DURATION, help="spread evenly over this time", default=0),
            ),
            one_of=("to", "by"),
        ),
        EventKind(
            name="stall",
            target=Target.PODS,
            help="The applications are stuck in a batch: no poll(), nothing processed; the heartbeat thread goes on.",
            fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="how long", is_required=True),),
        ),
        EventKind(
            name="slow",
            target=Target.PODS,
            help="Batches take so many times as long, and so fewer records are processed.",
            fields=(
                Field(name="for", type=FieldType.DISTRIBUTION, help="how long; without it, for good"),
                Field(name="factor", type=FieldType.FACTOR, help="how many times as long", is_required=True),
            ),
        ),
        EventKind(
            name="pause_process",
            target=Target.PODS,
            help="The processes are frozen: no heartbeats, no polls; then they go on as if nothing had been.",
            fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="how long", is_required=True),),
        ),
        EventKind(
            name="network",
            target=Target.PODS,
            help="Between these pods and the brokers messages are slower, get lost, or do not come through at all.",
            fields=(
                Field(name="latency", type=FieldType.DISTRIBUTION, help="of one direction"),
                Field(name="loss", type=FieldType.SHARE, help="of the packets; they are sent again as TCP does"),
                Field(name="partition", type=FieldType.FLAG, help="nothing comes through", default=False),
                Field(name="for", type=FieldType.DISTRIBUTION, help="how long; without it, for good"),
            ),
            one_of=("latency", "loss", "partition"),
        ),
        EventKind(
            name="add_partitions",
            target=Target.TOPIC,
            help="The topic has more partitions from now on; its traffic is shared out anew. No effect where it has "
            "as many already.",
            fields=(
                Field(name="to", type=FieldType.COUNT, help="so many partitions"),
                Field(name="by", type=FieldType.COUNT, help="so many more"),
            ),
            one_of=("to", "by"),
        ),
        EventKind(
            name="create_topic",
            target=Target.NEW_TOPIC,
            help="A topic that was not there.",
            fields=(
                Field(name="partitions", type=FieldType.COUNT, help="how many partitions", default=12),
                Field(name="replicas", type=FieldType.COUNT, help="how many replicas", default=3),
                Field(name="rate", type=FieldType.RATE, help="records written to it"),
            ),
        ),
        EventKind(name="delete_topic", target=Target.TOPIC, help="The topic is gone, and its offsets with it."),
        EventKind(
            name="set_traffic",
            target=Target.TOPIC,
            help="So many records are written to the topic from now on.",
            fields=(Field(name="rate", type=FieldType.RATE, help="records of the whole topic", is_required=True),),
        ),
        EventKind(
            name="broker_down",
            target=Target.BROKER,
            help="A broker's process dies. If it was the group's coordinator, another one reads the group's records and goes on.",
            fields=(
                Field(name="for", type=FieldType.DISTRIBUTION, help="until it is there again; without it, it stays away"),
                Field(
                    name="detect",
                    type=FieldType.DISTRIBUTION,
                    help="until the controller has noticed; if not given as with Kafka's broker.session.timeout.ms, some 7 to "
                    "10 s",
                ),
                LOAD,
            ),
        ),
        EventKind(
            name="coordinator_move",
            target=Target.BROKER,
            help="The group's coordinator moves to this broker, or (coordinator) to another one, which reads the "
            "group's records.",
            fields=(Field(name="for", type=FieldType.DISTRIBUTION, help="until it moves back; without it, it stays there"), LOAD),
        ),
    )
}
"""Name, which is the kind's key in a scenario file -> kind."""

FAULTS = ("crash", "stop", "restart", "stall", "slow", "pause_process", "network")
"""The kinds that a nemesis can draw."""
