"""What happens in a run: the events that the engine emits, each once.

Each is folded into the recording's histories. Those that have a ``kind`` are lines of canonical JSON, too, and observers are told
of them. ``at_us`` counts from the end of the warm-up (negative during it).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kgctl.simulate.scenario.vocabulary import EventStage, PodChange

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import RecordRange
    from kgctl.simulate.scenario.event import Event

UNTOLD = {"untold": True}
"""Of a field that only the recording has a use for: it is in no line."""


@dataclass(slots=True)
class TraceEvent:
    """A line is ``at_us``, ``kind`` and the other fields in their order, those that are "" by default only where they are not."""

    kind: ClassVar[str] = ""
    """What its lines are called; "": it is in no line, and no observer is told."""
    at_us: int

    def line(self) -> str:
        """One line of JSON."""
        form, values, optional = _form(type(self))  # type: ignore[arg-type]  # mypy: a class as a hashable
        line = form % (self.at_us, *map(quoted, values(self)))
        for name in optional:
            if value := getattr(self, name):
                line = f'{line[:-1]},"{name}":{quoted(value)}}}'
        return line


@lru_cache(maxsize=100_000)
def quoted(value: str | int | tuple[str, ...]) -> str:
    """Return a value as JSON."""
    return json.dumps(value, separators=(",", ":"))


@cache
def _form(kind: type[TraceEvent]) -> tuple[str, Callable[[TraceEvent], tuple[Any, ...]], list[str]]:
    """What is the same in all lines of a kind, what it is filled with, and the fields that are told if there is something."""
    told = [each for each in fields(kind) if not each.metadata]
    optional = [each.name for each in told if each.default == ""]
    names = [each.name for each in told[1:] if each.name not in optional]
    rest = "".join(f',"{name}":%s' for name in names)
    return f'{{"at_us":%s,"kind":"{kind.kind}"{rest}}}', attrgetter(*names), optional


@dataclass(slots=True)
class PodChanged(TraceEvent):
    """What became of a pod's process."""

    kind = "pod"
    pod: str
    what: PodChange
    detail: str = ""


@dataclass(slots=True)
class Requested(TraceEvent):
    """A request that has reached the coordinator."""

    kind = "request"
    pod: str
    api: str


@dataclass(slots=True)
class Replied(TraceEvent):
    """An answer has reached a pod; ``error`` is Kafka's name of the code."""

    kind = "reply"
    pod: str
    api: str
    error: str


@dataclass(slots=True)
class GroupChanged(TraceEvent):
    """The coordinator's view: state, generation (or group epoch), number of members, the leader's pod ("" for none).

    ``trigger``: what changed it, a request's API and pod, or timer; ``begins``: a rebalance, or a generation of it. ``reason``:
    what the member says that joins (KIP-800).
    """

    kind = "group"
    state: str
    generation: int
    members: int
    leader: str
    trigger: str = field(default="", metadata=UNTOLD)
    begins: bool = field(default=False, metadata=UNTOLD)
    reason: str = field(default="", metadata=UNTOLD)


@dataclass(slots=True)
class Removed(TraceEvent):
    """The coordinator has taken a member out: ``why`` is left, expired (a timer), replaced, or fenced.

    ``dead_us``: for how long its process had been gone; None: it lives. ``has_closed``: its consumer was closed. ``timer``:
    the coordinator's kind of the timer that expired. ``began_us``: when its session began anew, as the coordinator has it, for
    what was no request of its own: ``generation`` answered its parked JoinGroup, or (-1) another coordinator read the group.
    """

    kind = "removed"
    pod: str
    member_id: str
    why: str
    dead_us: int | None = field(default=None, metadata=UNTOLD)
    has_closed: bool = field(default=False, metadata=UNTOLD)
    timer: str = field(default="", metadata=UNTOLD)
    began_us: int | None = field(default=None, metadata=UNTOLD)
    generation: int = field(default=-1, metadata=UNTOLD)


@dataclass(slots=True)
class Owned(TraceEvent):
    """A pod consumes these partitions from now on. ``partitions``: "topic-0", sorted."""

    kind = "own"
    pod: str
    partitions: tuple[str, ...]


@dataclass(slots=True)
class Disowned(TraceEvent):
    """A pod does not consume these partitions any more; ``cause`` is that of the gap which begins."""

    kind = "disown"
    pod: str
    cause: str
    partitions: tuple[str, ...]


@dataclass(slots=True)
class Committed(TraceEvent):
    """A commit was answered; ``records`` is how many records it moved the committed offsets by."""

    kind = "commit"
    pod: str
    partitions: int
    records: int
    error: str


@dataclass(slots=True)
class Shared(TraceEvent):
    """Records of a share group, first to last, are delivered again, given back or archived; ``pod`` "" where nobody did it."""

    kind = "share"
    pod: str
    what: str
    partition: str
    first: int
    last: int
    deliveries: int
    entry: RecordRange = field(metadata=UNTOLD)


@dataclass(slots=True)
class Happened(TraceEvent):
    """What became of an event of the scenario. ``event``: its name, or its kind where it has none; ``lifts``: a fault is over;
    ``position``: its place in the scenario, -1 of a fault that was drawn.
    """

    kind = "event"
    event: str
    what: EventStage
    target: str
    event_kind: str
    lifts: bool = field(default=False, metadata=UNTOLD)
    position: int = field(default=-1, metadata=UNTOLD)

    @property
    def of(self) -> tuple[int, str, str]:
        """Return which event it is about: two may have the same kind and target."""
        return self.position, self.event, self.target


@dataclass(slots=True)
class Scaled(TraceEvent):
    """An autoscaler has looked: from so many pods to so many, what its metric alone would ask for, and what decided.

    ``value`` is the metric's: records (lag), microseconds (lag-age), millionths (cpu).
    """

    kind = "autoscale"
    members: str
    metric: str
    value: int
    before: int
    replicas: int
    desired: int
    why: str


# --- what is in no line


@dataclass(slots=True)
class OfPod(TraceEvent):
    """Something of one pod that is added up: ``what`` is a topic, an error, a callback."""

    pod: str
    amount: int = 1
    what: str = ""


@dataclass(slots=True)
class CalledBack(OfPod):
    """The application's rebalance callback begins, with so many partitions; ``applies``: the member has taken these over."""

    applies: bool = False


@dataclass(slots=True)
class Waited(OfPod):
    """Its member waits so many microseconds from now on; ``what`` is a `WaitedFor`."""


@dataclass(slots=True)
class Harmed(OfPod):
    """Its network has a fault from now until ``amount``, a time of the run; ``what``: the event that does it."""


@dataclass(slots=True)
class Given(OfPod):
    """An answer has reached it that brings its member an assignment; ``what`` is the request's API."""


@dataclass(slots=True)
class Rejoined(OfPod):
    """Its JoinGroup has reached the coordinator, so many microseconds after it was told that it has to join; ``what``: by the
    answer to which request, with its error, if it has one; "": by none.
    """


@dataclass(slots=True)
class Kicked(OfPod):
    """Its member is out of the group though its process lives; ``what``: the limit that it knows itself to be past, if any."""


COMMIT_FAILED = "COMMIT_FAILED"
"""The client refuses a commit: its member is out of the group (Kafka: ``CommitFailedException``)."""


@dataclass(slots=True)
class CommitRefused(OfPod):
    """A commit came to nothing, as the consumer itself says; ``what`` is the error."""


@dataclass(slots=True)
class RecordsRepeated(OfPod):
    """Records of a topic that are read once more."""


@dataclass(slots=True)
class RecordsLost(OfPod):
    """Records of a topic that nobody processes."""


@dataclass(slots=True)
class Erred(OfPod):
    """An application or its client has met with an error that is no answer of the log's."""


@dataclass(slots=True)
class PodWanted(TraceEvent):
    """A pod is to be there from now on, or no longer."""

    pod: str
    is_wanted: bool


@dataclass(slots=True)
class Joined(TraceEvent):
    """A pod is in the group under this member id."""

    pod: str
    member_id: str


@dataclass(slots=True)
class Overtook(TraceEvent):
    """Somebody else began to read a partition that a pod still reads, or will read on when it goes on: where the pod was."""

    pod: str
    number: int
    position_pr: int


@dataclass(slots=True)
class Discovered(TraceEvent):
    """A partition of a topic is consumed for the first time, so long after it was made."""

    topic: str
    age_us: int


@dataclass(slots=True)
class Disturbed(TraceEvent):
    """Something was done to pods, topics or brokers."""


@dataclass(slots=True)
class Stepped(TraceEvent):
    """A rollout or a rolling restart begins its next step."""

    event: str
    target: str


@dataclass(slots=True)
class Drawn(TraceEvent):
    """The nemesis has drawn a fault, as an event that a scenario could have."""

    event: Event


class Observer(Protocol):
    """Receives every event of a run that is in its log, as it happens.

    One with a true ``needs_looks`` is shown the metrics in quiet times, too.
    """

    def on_trace(self, event: TraceEvent) -> None:
        """Something happened. Called in the order of the log."""
        ...

    def on_step(self, at_us: int, metrics: Any) -> None:
        """Everything of one moment is done; ``metrics`` is what the run was given to read its recording with."""
        ...
