"""Members in tests: real ones, back to back with the real coordinator, in virtual time, with the plainest of event loops.

Every request and answer takes ``latency_us``. A pod polls, waits a random time of ``poll_gap_us``, and polls again; with
``poll_blocks_us`` a poll without records lasts that long. After every event the coordinator's invariants hold and no partition is
read by two members that are in their group.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random  # the seeded source that members are handed

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import Effect, GroupFailed, Reply, ResolveRegexes
from kgctl.coordinator.re2 import resolve_regexes
from kgctl.member.api import (
    Action,
    Answer,
    CallbackKind,
    Closed,
    CommitDone,
    Failed,
    FindCoordinator,
    FindCoordinatorResult,
    ListOffsets,
    ListOffsetsResult,
    Member,
    MemberIdentity,
    NetworkError,
    RefreshMetadata,
    RunAssignor,
    RunCallback,
    Send,
    StartConsuming,
    StopConsuming,
)
from kgctl.member.config import MemberConfig
from kgctl.member.factory import make_member
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import Request, TopicsChanged
from tests.support.coordinator_harness import image_of

SECOND = 1_000_000


def seconds(value: float) -> int:
    """Seconds as the integer microseconds of the members."""
    return round(value * SECOND)


@dataclass(repr=False)
class Pod:
    """One process: its member, how it polls, and what has happened to it."""

    name: str
    member: Member
    rng: Random
    poll_gap_us: tuple[int, int]
    poll_blocks_us: int
    callback_us: Mapping[CallbackKind, int]
    log: list[tuple[int, object]] = field(default_factory=list)
    is_dead: bool = False
    is_stalled: bool = False
    last_poll_us: int = 0
    closed_us: int | None = None
    failure: str | None = None
    requests: list[tuple[int, Request]] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.name

    def times(self, kind: type) -> list[int]:
        """When it sent requests of this kind."""
        return [at for at, request in self.requests if isinstance(request, kind)]

    def callbacks(self, *kinds: CallbackKind) -> list[tuple[int, RunCallback]]:
        """Its callbacks of these kinds (all, without any)."""
        found = [(at, event) for at, event in self.log if isinstance(event, RunCallback)]
        return [(at, event) for at, event in found if not kinds or event.kind in kinds]


class World:
    """A coordinator, its members, and the time."""

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        config: Mapping[str, str] | None = None,
        seed: int = 1,
        latency_us: int = 1_000,
        polls_only_when_needed: bool = False,
    ) -> None:
        self.polls_only_when_needed = polls_only_when_needed
        self.now_us = 0
        self.rng = Random(seed)
        self.latency_us = latency_us
        self.image = image_of(topics)
        self.ids = count(1)
        numbers = count(1)
        self.coordinator = GroupCoordinator(
            CoordinatorConfig.from_properties(config or {}), lambda prefix: f"{prefix}-{next(numbers):04d}", self.image
        )
        self.pods: dict[str, Pod] = {}
        self.readers: dict[TopicPartition, str] = {}
        self.gaps: list[tuple[int, TopicPartition, str, int]] = []
        self.unreachable: set[str] = set()
        self.generations: list[tuple[int, int]] = []
        self._stopped: dict[TopicPartition, int] = {}
        self._senders: dict[int, Pod] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._armed: dict[str, int] = {}

    # --- what a test does

    def pod(
        self,
        name: str,
        properties: Mapping[str, str] | None = None,
        *,
        topics: tuple[str, ...] | None = None,
        pattern: str | None = None,
        matches_pattern: bool = False,
        instance_id: str | None = None,
        profile: str = "java",
        at_s: float = 0.0,
        poll_gap_us: tuple[int, int] = (0, 100_000),
        poll_blocks_us: int = 0,
        callback_us: Mapping[CallbackKind, int] | None = None,
        group: str = "g",
    ) -> Pod:
        """A new process, whose subscribe() falls at ``at_s``."""
        config = MemberConfig.from_properties({"auto.offset.reset": "earliest", **(properties or {})}, profile)
        wanted = tuple(self.image.topics) if topics is None and pattern is None else topics or ()
        identity = MemberIdentity(
            name=name,
            group_id=group,
            client_id=name,
            topics=wanted,
            pattern=pattern,
            matches_pattern=matches_pattern,
            group_instance_id=instance_id,
        )
        rng = Random(self.rng.getrandbits(64))
        member = make_member(
            config,
            identity,
            rng,
            positions_of=lambda partitions, now_us: dict.fromkeys(partitions, now_us // 1000),
            request_ids=self.ids,
        )
        pod = Pod(name, member, rng, poll_gap_us, poll_blocks_us, callback_us or {})
        self.pods[name] = pod
        self.at(seconds(at_s), lambda: self._boot(pod))
        return pod

    def at(self, time_us: int, event: Callable[[], None]) -> None:
        """Do something at this time."""
        heapq.heappush(self._events, (max(time_us, self.now_us), next(self._order), event))

    def run_until(self, time_s: float) -> None:
        """Let the time pass."""
        end_us = seconds(time_s)
        while self._events and self._events[0][0] <= end_us:
            self.now_us, _, event = heapq.heappop(self._events)
            event()
            self._check()
        self.now_us = end_us

    def run_until_stable(self, limit_s: float = 120.0) -> float:
        """Let the time pass until every partition is read and every member is at rest; returns the time in seconds."""
        end_us = self.now_us + seconds(limit_s)
        while not self.is_stable():
            assert self._events, "nothing is going to happen any more"
            assert self._events[0][0] <= end_us, self.describe()
            self.now_us, _, event = heapq.heappop(self._events)
            event()
            self._check()
        return self.now_us / SECOND

    def close(self, pod: Pod) -> None:
        """close() of a consumer."""
        self._perform(pod, pod.member.close(self.now_us))

    def crash(self, pod: Pod) -> None:
        """The process is gone; the coordinator is not told."""
        pod.is_dead = True
        self._stop(pod, pod.member.consumed_partitions)

    def stall(self, pod: Pod, for_s: float) -> None:
        """No poll() for that long."""
        pod.is_stalled = True
        pod.member.application_busy(pod.last_poll_us)
        self._rearm(pod)
        self.at(self.now_us + seconds(for_s), lambda: self._resume(pod))

    def grow(self, topic: str, partitions: int) -> None:
        """More partitions for a topic."""
        counts = {name: entry.partition_count for name, entry in self.image.topics.items()} | {topic: partitions}
        self.image = image_of(counts, self.image.version + 1)
        self._handle(TopicsChanged(request_id=next(self.ids), image=self.image))

    # --- what a test looks at

    @property
    def live(self) -> list[Pod]:
        """Pods that run."""
        return [pod for pod in self.pods.values() if not pod.is_dead and pod.failure is None and pod.closed_us is None]

    def is_stable(self) -> bool:
        """Whether the group is stable, every partition is read and every member at rest."""
        partitions = sum(topic.partition_count for topic in self.image.topics.values())
        if len(self.readers) != partitions or any(state != "Stable" for _, state in self.coordinator.statistics().groups):
            return False
        return all(pod.member.is_quiet for pod in self.live if not pod.is_stalled)

    def owners(self) -> dict[str, list[str]]:
        """What each pod reads."""
        return {pod.name: [str(partition) for partition in pod.member.consumed_partitions] for pod in self.live}

    def gaps_since(self, time_s: float) -> list[float]:
        """How long partitions were not read, for all reading that began after this time; seconds, longest first."""
        return sorted((length / SECOND for at, _, _, length in self.gaps if at >= seconds(time_s)), reverse=True)

    def describe(self) -> str:
        """Where everybody stands, for a failed test."""
        lines = [f"at {self.now_us / SECOND} s"]
        for pod in self.pods.values():
            lines.append(
                f"{pod.name}: {pod.member.state} gen {pod.member.generation_id} owned {len(pod.member.owned_partitions)}"
            )
            lines += [f"    {at / SECOND:.3f} {event}" for at, event in pod.log[-6:]]
        return "\n".join(lines)

    # --- the loop's inside

    def _boot(self, pod: Pod) -> None:
        if pod.is_dead or pod.closed_us is not None:
            return
        self._perform(pod, pod.member.start(self.now_us))
        self._poll(pod)

    def _poll(self, pod: Pod) -> None:
        if pod.is_dead or pod.is_stalled or pod.failure or pod.closed_us is not None:
            return
        blocks_us = 0 if pod.member.consumed_partitions else pod.poll_blocks_us
        if not pod.member.in_callback and (pod.member.needs_poll or not self.polls_only_when_needed):
            pod.last_poll_us = self.now_us
            self._perform(pod, pod.member.poll(self.now_us, self.now_us + blocks_us))
        lowest, highest = pod.poll_gap_us
        self.at(self.now_us + blocks_us + max(pod.rng.randint(lowest, highest), 1), lambda: self._poll(pod))

    def _resume(self, pod: Pod) -> None:
        pod.is_stalled = False
        self._poll(pod)

    def _perform(self, pod: Pod, actions: list[Action]) -> None:
        for action in actions:
            if not isinstance(action, Send | FindCoordinator | RefreshMetadata | ListOffsets):
                pod.log.append((self.now_us, action))
            self._act(pod, action)
        self._rearm(pod)

    def _act(self, pod: Pod, action: Action) -> None:
        match action:
            case Send(_, request):
                pod.requests.append((self.now_us, request))
                self._senders[request.request_id] = pod
                self.at(self.now_us + self.latency_us, lambda: self._arrive(pod, request))
            case FindCoordinator(number):
                self._answer(pod, number, FindCoordinatorResult(), 2 * self.latency_us)
            case RefreshMetadata():
                self.at(self.now_us + 2 * self.latency_us, lambda: self._metadata(pod))
            case ListOffsets(number, partitions, _):
                self._answer(pod, number, ListOffsetsResult(dict.fromkeys(partitions, 0)), 2 * self.latency_us)
            case RunCallback(kind, _):
                self.at(self.now_us + pod.callback_us.get(kind, 0), lambda: self._callback_done(pod))
            case RunAssignor():
                self.at(self.now_us, lambda: self._callback_done(pod))
            case StartConsuming(positions):
                self._start(pod, tuple(positions))
            case StopConsuming(partitions, _):
                self._stop(pod, partitions)
            case Failed(error, _):
                pod.failure = error
            case Closed():
                pod.closed_us = self.now_us
            case CommitDone():
                pass

    def _arrive(self, pod: Pod, request: Request) -> None:
        if pod.name in self.unreachable:
            self._answer(pod, request.request_id, NetworkError(request.request_id), 0)
            return
        self._handle(request)

    def _handle(self, request: Request) -> None:
        self._take(self.coordinator.handle(request, self.now_us // 1000))

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply) and effect.request_id in self._senders:
                self._answer(self._senders.pop(effect.request_id), effect.request_id, effect.result, self.latency_us)
            elif isinstance(effect, ResolveRegexes):
                self._resolve(effect)
            elif isinstance(effect, GroupFailed):
                raise effect.error
        deadline_ms = self.coordinator.next_deadline_ms()
        if deadline_ms is not None and self._armed.get("") != deadline_ms:
            self._armed[""] = deadline_ms
            self.at(deadline_ms * 1000, self._expire_coordinator)

    def _resolve(self, effect: ResolveRegexes) -> None:
        self._handle(resolve_regexes(effect, self.image.topics, next(self.ids)))

    def _expire_coordinator(self) -> None:
        self._armed.pop("", None)
        self._take(self.coordinator.expire(self.now_us // 1000))

    def _answer(self, pod: Pod, number: int, result: Answer, delay_us: int) -> None:
        self.at(self.now_us + delay_us, lambda: self._deliver(pod, number, result))

    def _deliver(self, pod: Pod, number: int, result: Answer) -> None:
        if not pod.is_dead:
            self._perform(pod, pod.member.on_reply(number, result, self.now_us))

    def _metadata(self, pod: Pod) -> None:
        if not pod.is_dead:
            self._perform(pod, pod.member.on_metadata(self.image, self.now_us))

    def _callback_done(self, pod: Pod) -> None:
        if not pod.is_dead:
            self._perform(pod, pod.member.callback_done(self.now_us))

    def _rearm(self, pod: Pod) -> None:
        deadline_us = None if pod.is_dead else pod.member.next_deadline_us()
        if deadline_us is not None and self._armed.get(pod.name) != deadline_us:
            self._armed[pod.name] = deadline_us
            self.at(deadline_us, lambda: self._expire(pod, deadline_us))

    def _expire(self, pod: Pod, deadline_us: int) -> None:
        if self._armed.get(pod.name) == deadline_us:
            del self._armed[pod.name]
            if not pod.is_dead:
                self._perform(pod, pod.member.expire(self.now_us))

    def _start(self, pod: Pod, partitions: tuple[TopicPartition, ...]) -> None:
        for partition in partitions:
            reader = self.readers.get(partition)
            # A member that has been cast out and has not heard of it yet is a zombie: it may read on, and even begin to, since
            # classic members fetch offsets without saying who they are.
            if reader is not None and self._is_zombie(pod):
                continue
            is_free = reader is None or reader == pod.name or self._is_zombie(self.pods[reader])
            assert is_free, f"{partition} is read by {reader} and {pod.name}\n{self.describe()}"
            self.readers[partition] = pod.name
            stopped_us = self._stopped.pop(partition, None)
            if stopped_us is not None:
                self.gaps.append((self.now_us, partition, pod.name, self.now_us - stopped_us))

    def _is_zombie(self, pod: Pod) -> bool:
        group = self.coordinator.shard.groups.get(pod.member.identity.group_id)
        return group is None or pod.member.member_id not in getattr(group, "members", {})

    def _stop(self, pod: Pod, partitions: tuple[TopicPartition, ...]) -> None:
        for partition in partitions:
            if self.readers.get(partition) == pod.name:
                del self.readers[partition]
                self._stopped[partition] = self.now_us

    def _check(self) -> None:
        self.coordinator.check()
