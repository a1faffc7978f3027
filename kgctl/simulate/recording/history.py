"""Who a member is to the metrics: the pod, or the id that the coordinator knows it by."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kgctl.simulate.scenario.model import MemberSet

MemberKey = tuple[int, int]
"""A pod's number, and which of its lives is meant: always 0 where the pod is all that counts."""


class Identity(StrEnum):
    """What makes an owner another one: a pod that comes back with a new ``member.id`` is the same by POD only."""

    POD = "pod"
    MEMBER_ID = "member-id"


class GroupPoint(NamedTuple):
    """The group as the coordinator has it, from ``at_us`` on."""

    at_us: int
    state: str
    generation: int
    members: int
    leader: int


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

    def came(self, member_id: str, now_us: int) -> None:
        """Record that the pod has joined the group under this member id."""
        self.in_group.set(now_us, is_so=True)
        if member_id != self.member_id:
            self.member_id = member_id
            self.lives_us.append(now_us)


class EventMark(NamedTuple):
    """The beginning or the end of an event of the scenario."""

    at_us: int
    name: str
    what: str
    target: str


class Scaling(NamedTuple):
    """An autoscaler has changed the number of pods; ``value`` is what it saw (see `kgctl.simulate.recording.trace.Scaled`)."""

    at_us: int
    members: str
    before: int
    replicas: int
    metric: str
    value: int


class Overtaken(NamedTuple):
    """Somebody else began to read a partition that a pod still reads, or will read on when it goes on: where the pod was."""

    at_us: int
    number: int
    pod: int
    position_pr: int


@dataclass(slots=True)
class History:
    """What happened to the group, its pods and requests in a run."""

    pods: list[PodHistory] = field(default_factory=list)
    group: list[GroupPoint] = field(default_factory=list)
    unsettled: Intervals = field(default_factory=Intervals)
    calm: Intervals = field(default_factory=Intervals)
    applied_us: list[int] = field(default_factory=list)
    """When a pod had finished taking an assignment over."""
    triggers: list[tuple[int, str]] = field(default_factory=list)
    """What set a rebalance off, and when: api or timer, and the pod."""
    events: list[EventMark] = field(default_factory=list)
    scalings: list[Scaling] = field(default_factory=list)
    requests: list[Counted] = field(default_factory=list)
    skipped_requests: dict[str, int] = field(default_factory=dict)
    errors: list[Counted] = field(default_factory=list)
    fenced_commits: list[Counted] = field(default_factory=list)
    fenced: list[Counted] = field(default_factory=list)
    kicked: list[Counted] = field(default_factory=list)
    detections: list[Counted] = field(default_factory=list)
    """A dead pod was taken out: ``amount`` is how long it had been dead, in microseconds."""
    duplicates: list[Counted] = field(default_factory=list)
    overtaken: list[Overtaken] = field(default_factory=list)
    lost: list[Counted] = field(default_factory=list)
    callbacks: list[Counted] = field(default_factory=list)
    """The application's rebalance callbacks: ``amount`` is the number of partitions, ``what`` the kind."""
    skipped_beats: list[Counted] = field(default_factory=list)
    """Heartbeats of a quiet time that the run went over: ``amount`` of them, the last at ``at_us``. None is in `requests`."""
    steps: list[EventMark] = field(default_factory=list)
    """Beginnings of the steps of rollouts and rolling restarts."""
    discoveries: list[Counted] = field(default_factory=list)
    """A partition was consumed for the first time: ``amount`` is how long it had existed by then."""
    disturbances: list[int] = field(default_factory=list)
    """When something was done to pods or topics."""
    lifted: list[int] = field(default_factory=list)
    """When a fault that lasts (a stall, a slow or frozen process, a bad network) was over."""
    crashes: list[tuple[int, int]] = field(default_factory=list)
    """(when, pod)"""
