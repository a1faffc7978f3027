"""Everything that a run leaves behind: the engine writes it, everybody else reads it and never the engine.

It only grows. While the run goes on its reader is handed to conditions and watchers; once it is closed it can be pickled,
kept and measured again. A member's `Identity` is the pod, or the id that the coordinator knows it by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from kgctl.model.values import frozen_in_order
from kgctl.simulate.recording.owners import PartitionOwners, PartitionTable
from kgctl.simulate.recording.traffic import LinearSeries, PositionLedger
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.vocabulary import GivenBack, Identity

if TYPE_CHECKING:
    from kgctl.coordinator.effects import AppendRecord
    from kgctl.model.coordinator_records import GroupMetadataValue
    from kgctl.simulate.recording.trace import GroupChanged, Happened, Overtook, Scaled, Stepped

MemberKey = tuple[int, int]
"""A pod's number, and which of its lives is meant: always 0 where the pod is all that counts."""


class Counted(NamedTuple):
    """Something that is added up: when, how much, at which pod, and for which topic, error or API."""

    at_us: int
    amount: int
    pod: int = -1
    what: str = ""


@dataclass(slots=True)
class Intervals:
    """Times in which something was the case. ``since_us`` None: it is not now."""

    ended: list[tuple[int, int]] = field(default_factory=list)
    since_us: int | None = None

    def set(self, now_us: int, *, is_so: bool) -> None:
        """Begin or end an interval now."""
        if is_so == (self.since_us is not None):
            return
        if is_so:
            self.since_us = now_us
        elif self.since_us is not None:
            if now_us > self.since_us:
                self.ended.append((self.since_us, now_us))
            self.since_us = None

    def until(self, now_us: int) -> list[tuple[int, int]]:
        """Return all intervals, an open one as if it ended now."""
        if self.since_us is None or self.since_us >= now_us:
            return list(self.ended)
        return [*self.ended, (self.since_us, now_us)]


@dataclass(slots=True)
class PodHistory:
    """One pod: who it is, when its process ran a consumer, and when it was in the group."""

    name: str
    member_set: str
    index: int
    rack: str | None
    rate_uhz: int | None
    members: MemberSet
    settings: dict[str, str]
    """Those that its next process starts with."""
    latency_us: int = 0
    """The mean time of a message, one way."""
    heartbeat_ms: int = 0
    """Between two heartbeats of its process, of the classic protocol."""
    running: Intervals = field(default_factory=Intervals)
    in_group: Intervals = field(default_factory=Intervals)
    wanted: Intervals = field(default_factory=Intervals)
    lives_us: list[int] = field(default_factory=list)
    """When it came into the group with a member id that it did not have before."""
    member_id: str = ""
    is_booted: bool = False
    """Whether a process of it was started, and no event has taken that away since."""

    def came(self, member_id: str, now_us: int) -> None:
        """Record that the pod has joined the group under this member id."""
        self.in_group.set(now_us, is_so=True)
        if member_id != self.member_id:
            self.member_id = member_id
            self.lives_us.append(now_us)


@dataclass(slots=True)
class RunHistory:
    """What happened to the group, its pods and requests, as `kgctl.simulate.recording.folds` has it from the log.

    Its times are those of the run.
    """

    pods: list[PodHistory] = field(default_factory=list)
    group: list[GroupChanged] = field(default_factory=list)
    unsettled: Intervals = field(default_factory=Intervals)
    calm: Intervals = field(default_factory=Intervals)
    applied_us: list[int] = field(default_factory=list)
    """When a pod had finished taking an assignment over."""
    triggers: list[tuple[int, str]] = field(default_factory=list)
    """What set a rebalance off, and when: api or timer, and the pod."""
    events: list[Happened] = field(default_factory=list)
    drawn: list[tuple[int, Event]] = field(default_factory=list)
    """What the nemesis drew, and when; each as an event that a scenario could have."""
    scalings: list[Scaled] = field(default_factory=list)
    requests: list[Counted] = field(default_factory=list)
    skipped_requests: dict[str, int] = field(default_factory=dict)
    errors: list[Counted] = field(default_factory=list)
    failed: list[Counted] = field(default_factory=list)
    """Those of `errors` that ended a consumer."""
    fenced_commits: list[Counted] = field(default_factory=list)
    fenced: list[Counted] = field(default_factory=list)
    kicked: list[Counted] = field(default_factory=list)
    detections: list[Counted] = field(default_factory=list)
    """A dead pod was taken out: ``amount`` is how long it had been dead, in microseconds."""
    duplicates: list[Counted] = field(default_factory=list)
    overtaken: list[Overtook] = field(default_factory=list)
    lost: list[Counted] = field(default_factory=list)
    given: list[Counted] = field(default_factory=list)
    """Answers that brought a member an assignment, when they reached it: ``what`` is the request's API."""
    rejoins: list[Counted] = field(default_factory=list)
    """JoinGroups, when they reached the coordinator: ``amount`` is how long their members had known that they have to join,
    ``what`` the API of the answer that told them."""
    harmed: list[Counted] = field(default_factory=list)
    """Faults of pods' networks, from ``at_us`` on: ``amount`` is when they end, ``what`` the event that does it."""
    waits: list[Counted] = field(default_factory=list)
    """Members waited for their applications: ``amount`` is how long, from ``at_us`` on, ``what`` a `WaitedFor`."""
    callbacks: list[Counted] = field(default_factory=list)
    """The application's rebalance callbacks: ``amount`` is the number of partitions, ``what`` the kind."""
    skipped_beats: list[Counted] = field(default_factory=list)
    """Heartbeats of a quiet time that the run went over: ``amount`` of them, the last at ``at_us``. None is in `requests`."""
    steps: list[Stepped] = field(default_factory=list)
    """Beginnings of the steps of rollouts and rolling restarts."""
    discoveries: list[Counted] = field(default_factory=list)
    """A partition was consumed for the first time: ``amount`` is how long it had existed by then."""
    disturbances: list[int] = field(default_factory=list)
    """When something was done to pods or topics."""


@dataclass(slots=True)
class TaskHistory:
    """The tasks of a Kafka Streams application: copies, restored records, looks at the copies. ``what`` is the task's name."""

    tasks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Every task that there was -> the numbers of its partitions."""
    restored: list[Counted] = field(default_factory=list)
    """Records that an instance restored for a task to run, when it had them."""
    copied: list[Counted] = field(default_factory=list)
    """Records that an instance restored for copies, standbys and warm-ups, by the time at which somebody looked."""
    warmups: list[Counted] = field(default_factory=list)
    """Copies that were begun beyond ``num.standby.replicas``: ``amount`` is the records that they had to restore."""
    probes: list[Counted] = field(default_factory=list)
    """Instances that joined again to see whether copies have caught up."""
    copies: list[tuple[int, int, int]] = field(default_factory=list)
    """(when, stateful tasks of which another instance has a copy within ``acceptable.recovery.lag``, stateful tasks)."""


# --- share groups


@frozen_in_order
class RecordRange:
    """Records of a partition, first to last, to which something has happened."""

    at_us: int
    number: int
    first: int
    last: int

    @property
    def amount(self) -> int:
        """Return how many."""
        return self.last - self.first + 1


@frozen_in_order
class Return(RecordRange):
    """Records that a pod had and has no more; they may be delivered again."""

    pod: int
    why: GivenBack


@frozen_in_order
class Redelivery(RecordRange):
    """Records that are delivered for the ``deliveries``-th time: to whom, from whom they came back, and why."""

    deliveries: int
    pod: int
    before: int
    why: GivenBack


@frozen_in_order
class Archival(RecordRange):
    """Records that are given up after so many deliveries: at the limit, or as the application rejects them."""

    deliveries: int
    pod: int
    why: GivenBack

    @property
    def before(self) -> int:
        """Return who had them last."""
        return self.pod


@dataclass(slots=True)
class ShareHistory:
    """One share group's records. Amounts are records; ``what`` of each `Counted` is its topic."""

    delivered: list[Counted] = field(default_factory=list)
    """Every delivery, the first of a record and each later one."""
    redelivered: list[Redelivery] = field(default_factory=list)
    returned: list[Return] = field(default_factory=list)
    archived: list[Archival] = field(default_factory=list)
    acknowledged: list[Counted] = field(default_factory=list)
    refused: list[Counted] = field(default_factory=list)
    """Acknowledgements that came too late: the records are others' by then."""
    in_flight: dict[str, LinearSeries] = field(default_factory=dict)
    """Topic -> records that members have, over time."""
    held: list[tuple[int, str, Counter[int]]] = field(default_factory=list)
    """(when, topic, how long records were with their member until they were acknowledged -> how many)."""
    waiting: dict[int, Intervals] = field(default_factory=dict)
    """Pod -> when its application waited in poll() for records."""


# --- the recording

EPOCH_MS = 1_767_225_600_000
"""The coordinator's clock at the beginning of a run: 2026-01-01 00:00 UTC. Records have to have some time."""


class Ending(NamedTuple):
    """How a run ended. ``digest``: of its event log; ``events``: the lines of it; ``tasks``: what the loop did; ``stopped``: the
    limit that ended it, or \"\"."""

    digest: str
    events: int
    tasks: int
    stopped: str


class Recording:
    """One run, so far or whole. Times are microseconds from the run's beginning; ``start_us`` is the end of the warm-up,
    which is ``lead_us`` longer than the scenario says.

    ``step`` grows with whatever is done; ``image``, ``uses_consumer_protocol`` and ``server_heartbeat_ms`` are as of ``now_us``.
    ``records`` are the coordinator's, with their times, where they are kept. ``largest``: the largest GroupMetadata record.
    """

    def __init__(self, scenario: Scenario, seed: int, identity: Identity = Identity.POD, *, lead_us: int = 0) -> None:
        from kgctl.model.groups import MetadataImage

        self.scenario = scenario
        self.seed = seed
        self.identity = identity
        self.start_us = scenario.warmup_us + lead_us
        self.now_us = 0
        self.step = 0
        self.has_traffic = scenario.writes
        self.is_played = False
        """Whether real clients were recorded: what they read twice was counted."""
        self.partitions = PartitionTable()
        self.owners = PartitionOwners(self.partitions)
        self.ledger = PositionLedger()
        self.history = RunHistory()
        self.tasks: TaskHistory | None = None
        """What became of the tasks of a Kafka Streams application; None: it is none."""
        self.share: ShareHistory | None = None
        """Of a share group."""
        self.image = MetadataImage()
        self.uses_consumer_protocol = False
        self.server_heartbeat_ms = 0
        self.largest: GroupMetadataValue | None = None
        self.records: list[tuple[int, AppendRecord]] | None = None
        self.ending = Ending("", 0, 0, "")
        self.on_traffic_read: Callable[[], None] | None = None
        """Of a run that goes on: brings the sums of records to the present."""
        self._topics: dict[str, tuple[int, tuple[str, ...]]] = {}

    @property
    def end_us(self) -> int:
        """Return the end of what is measured: now, or the end of the run."""
        return max(self.now_us, self.start_us)

    @property
    def member_sets(self) -> tuple[str, ...]:
        """Return the names of the sets of members."""
        return tuple(members.name for members in self.scenario.members)

    def settle_traffic(self) -> None:
        """Bring the sums of records to the present, if the run goes on."""
        if self.on_traffic_read is not None:
            self.on_traffic_read()

    def topics_of(self, members: MemberSet) -> tuple[str, ...]:
        """Return the topics that there are and that these members subscribe to."""
        version, names = self._topics.get(members.name, (-1, ()))
        if version != self.image.version:
            names = tuple(name for name in self.image.topics if self.scenario.subscribes(members, name))
            self._topics[members.name] = self.image.version, names
        return names

    def log(self) -> list[tuple[int, AppendRecord]]:
        """Return (time, record) of the coordinator's log, in order; empty unless it was kept."""
        return sorted(self.records or (), key=itemgetter(0))
