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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    "load", FieldType.DISTRIBUTION, "how long the new coordinator reads its log, 100 ms if not given", default=Constant(100_000)
)

WITH = Field("with", FieldType.CONFIG, "consumer settings from this start on", default={})

FOR = Field("for", FieldType.DISTRIBUTION, "how long they stay down; without it, for good")

FIELDS = (
    Field("batch", FieldType.COUNT_OR_SHARE, "how many pods at the same time, or which share of them", default=1),
    Field(
        "wait",
        FieldType.CHOICE,
        "what the next batch waits for: ready (the pods have subscribed), stable (the group is, with every partition "
        "consumed; 10 minutes at most), none",
        default="ready",
        choices=("ready", "stable", "none"),
    ),
    Field("settle", FieldType.DURATION, "how long after that the next batch begins", default=0),
    Field("down", FieldType.DURATION, "how long a pod is down before its process starts again", default=0),
    Field("abort_if", FieldType.CONDITION, "looked at before each batch: if it holds, the rest is left as it is"),
)

WORKLOAD = Field(
    "workload",
    FieldType.CHOICE,
    "deployment: new pods have new names, and new instance ids where these have $name; statefulset: the same ones",
    default="deployment",
    choices=("deployment", "statefulset"),
)
READY = Field("ready", FieldType.DISTRIBUTION, "from subscribe() until the readiness probe succeeds", default=Constant(0))
GRACE = Field("grace", FieldType.DURATION, "terminationGracePeriodSeconds: from SIGTERM to SIGKILL", default=30_000_000)
SIGTERM = Field(
    "sigterm",
    FieldType.CHOICE,
    "what the application does: close (the consumer), exit (without), ignored (until it is killed); default: on_stop",
    choices=("close", "exit", "ignored"),
)
_DEPLOYMENT = {"workload": ("deployment",)}
_PAUSES = {**_DEPLOYMENT, "strategy": ("canary", "blue-green")}

ROLLOUT = (
    WORKLOAD,
    Field(
        "strategy",
        FieldType.CHOICE,
        "of a deployment: rolling (RollingUpdate), recreate (all end, then all start), blue-green (all new ones beside the "
        "old ones, then these end) or canary (by steps)",
        default="rolling",
        choices=("rolling", "recreate", "blue-green", "canary"),
        only_with=_DEPLOYMENT,
    ),
    Field(
        "max_surge",
        FieldType.SIZE_OR_SHARE,
        "maxSurge of a deployment: pods above the wanted number; a share is rounded up",
        default=Share(250_000),
        only_with={**_DEPLOYMENT, "strategy": ("rolling", "canary")},
    ),
    Field(
        "max_unavailable",
        FieldType.SIZE_OR_SHARE,
        "maxUnavailable: pods that may be missing; a share is rounded down; 25% of a deployment, 1 of a statefulset",
        default=Share(250_000),
        only_with={"strategy": ("rolling", "canary")},
    ),
    Field(
        "steps",
        FieldType.STEPS,
        "of a canary: how many pods, or which share of them, have the new version at each step; then all have it",
        default=(Share(100_000), Share(500_000)),
        only_with={**_DEPLOYMENT, "strategy": ("canary",)},
    ),
    Field(
        "pause",
        FieldType.DURATION,
        "of a canary: how long after each step the next one begins; of blue-green: how long both versions run",
        default=0,
        only_with=_PAUSES,
    ),
    Field(
        "abort_if",
        FieldType.CONDITION,
        "looked at when each pause is over: if it holds, the new pods go, and old ones come back where they are missing",
        only_with=_PAUSES,
    ),
    READY,
    Field("never_ready", FieldType.FLAG, "the probe of the new version never succeeds", default=False),
    Field("min_ready", FieldType.DURATION, "minReadySeconds: ready for so long counts as available", default=0),
    GRACE,
    SIGTERM,
    Field(
        "partition",
        FieldType.SIZE,
        "of a statefulset: pods below this number stay as they are",
        default=0,
        only_with={"workload": ("statefulset",)},
    ),
    Field(
        "deadline",
        FieldType.DURATION,
        "after this time the rollout is given up, as it stands (progressDeadlineSeconds, of the whole rollout)",
        default=1_800_000_000,
    ),
    Field("set", FieldType.CONFIG, "consumer settings that the new version has", default={}),
)

DRAIN = (
    WORKLOAD,
    Field(
        "budget",
        FieldType.SIZE_OR_SHARE,
        "maxUnavailable of the PodDisruptionBudget of each set of members; a share is rounded up",
        default=1,
    ),
    READY,
    GRACE,
    SIGTERM,
    Field("retry", FieldType.DURATION, "how long until a refused eviction is tried again", default=5_000_000),
    Field("deadline", FieldType.DURATION, "after this time the drain is given up, as it stands", default=3_600_000_000),
)

SPOT_LOSS = (
    WORKLOAD,
    Field(
        "notice",
        FieldType.DURATION,
        "from the notice, at which the pods get SIGTERM, until their machines are gone; 0s: no warning",
        default=120_000_000,
    ),
    Field(
        "replacement",
        FieldType.DISTRIBUTION,
        "from the notice until there is a machine that new pods start on",
        default=Constant(90_000_000),
    ),
    GRACE,
    SIGTERM,
)

SET = Field("set", FieldType.CONFIG, "consumer settings that the new processes have", default={})

REQUIRED_SET = Field("set", FieldType.CONFIG, "consumer settings that the new processes have", is_required=True)


EVENT_KINDS: Mapping[str, EventKind] = {
    kind.name: kind
    for kind in (
        EventKind("start", Target.PODS, "Start pods that do not run; it is over when they have subscribed.", fields=(WITH,)),
        EventKind(
            "stop",
            Target.PODS,
            "Stop pods as SIGTERM does; what on_stop says is done. With for: start them again.",
            fields=(FOR, WITH),
        ),
        EventKind(
            "crash",
            Target.PODS,
            "Kill pods: no callbacks, no commit, no LeaveGroup. With for: start them again after that time.",
            fields=(FOR, WITH),
        ),
        EventKind(
            "restart",
            Target.PODS,
            "Stop these pods, all at the same time, and start each again when it has stopped.",
            fields=(Field("for", FieldType.DISTRIBUTION, "how long they are down between", default=0), WITH),
        ),
        EventKind("rolling_restart", Target.PODS, "Restart pods batch by batch, as a deployment does.", fields=(*FIELDS, SET)),
        EventKind("upgrade", Target.PODS, "Restart pods batch by batch with other settings.", fields=(*FIELDS, REQUIRED_SET)),
        EventKind(
            "rollout",
            Target.MEMBER_SET,
            "A new version of a set, as Kubernetes rolls it out: a Deployment (new pods, new names) or a StatefulSet.",
            fields=ROLLOUT,
        ),
        EventKind(
            "drain",
            Target.PODS,
            "kubectl drain: the pods, usually those of a node (node/2), are evicted as fast as the disruption budget "
            "allows, and others start in their place on other nodes.",
            fields=DRAIN,
        ),
        EventKind(
            "spot_loss",
            Target.PODS,
            "Machines are taken away: all pods at once get SIGTERM, are dead when the notice is over, and others "
            "start when there are new machines.",
            fields=SPOT_LOSS,
        ),
        EventKind(
            "scale",
            Target.MEMBER_SET,
            "Change the number of pods: the highest numbers go first, new ones come last.",
            fields=(
                Field("to", FieldType.SIZE, "so many pods"),
                Field("by", FieldType.CHANGE, "so many more, or fewer"),
                Field("over", FieldType.DURATION, "spread evenly over this time", default=0),
            ),
            one_of=("to", "by"),
        ),
        EventKind(
            "stall",
            Target.PODS,
            "The applications are stuck in a batch: no poll(), nothing processed; the heartbeat thread goes on.",
            fields=(Field("for", FieldType.DISTRIBUTION, "how long", is_required=True),),
        ),
        EventKind(
            "slow",
            Target.PODS,
            "Batches take so many times as long, and so fewer records are processed.",
            fields=(
                Field("for", FieldType.DISTRIBUTION, "how long; without it, for good"),
                Field("factor", FieldType.FACTOR, "how many times as long", is_required=True),
            ),
        ),
        EventKind(
            "pause_process",
            Target.PODS,
            "The processes are frozen: no heartbeats, no polls; then they go on as if nothing had been.",
            fields=(Field("for", FieldType.DISTRIBUTION, "how long", is_required=True),),
        ),
        EventKind(
            "network",
            Target.PODS,
            "Between these pods and the brokers messages are slower, get lost, or do not come through at all.",
            fields=(
                Field("latency", FieldType.DISTRIBUTION, "of one direction"),
                Field("loss", FieldType.SHARE, "of the packets; they are sent again as TCP does"),
                Field("partition", FieldType.FLAG, "nothing comes through", default=False),
                Field("for", FieldType.DISTRIBUTION, "how long; without it, for good"),
            ),
            one_of=("latency", "loss", "partition"),
        ),
        EventKind(
            "add_partitions",
            Target.TOPIC,
            "The topic has more partitions from now on; its traffic is shared out anew. No effect where it has as many already.",
            fields=(Field("to", FieldType.COUNT, "so many partitions"), Field("by", FieldType.COUNT, "so many more")),
            one_of=("to", "by"),
        ),
        EventKind(
            "create_topic",
            Target.NEW_TOPIC,
            "A topic that was not there.",
            fields=(
                Field("partitions", FieldType.COUNT, "how many partitions", default=12),
                Field("replicas", FieldType.COUNT, "how many replicas", default=3),
                Field("rate", FieldType.RATE, "records written to it"),
            ),
        ),
        EventKind("delete_topic", Target.TOPIC, "The topic is gone, and its offsets with it."),
        EventKind(
            "set_traffic",
            Target.TOPIC,
            "So many records are written to the topic from now on.",
            fields=(Field("rate", FieldType.RATE, "records of the whole topic", is_required=True),),
        ),
        EventKind(
            "broker_down",
            Target.BROKER,
            "A broker's process dies. If it was the group's coordinator, another one reads the group's records and goes on.",
            fields=(
                Field("for", FieldType.DISTRIBUTION, "until it is there again; without it, it stays away"),
                Field(
                    "detect",
                    FieldType.DISTRIBUTION,
                    "until the controller has noticed; if not given as with Kafka's broker.session.timeout.ms, some 7 to 10 s",
                ),
                LOAD,
            ),
        ),
        EventKind(
            "coordinator_move",
            Target.BROKER,
            "The group's coordinator moves to this broker, or (coordinator) to another one, which reads the group's records.",
            fields=(Field("for", FieldType.DISTRIBUTION, "until it moves back; without it, it stays there"), LOAD),
        ),
    )
}
"""Name, which is the kind's key in a scenario file -> kind."""

FAULTS = ("crash", "stop", "restart", "stall", "slow", "pause_process", "network")
"""The kinds that a nemesis can draw."""
