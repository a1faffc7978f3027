"""A scenario in real time: the events of the simulation done to real clients, and what these say written into a `Recording`.

The engine's schedule and kinds of events are used as they are. Time is the machine's, a process is one with a real consumer, a
topic is a real topic; the coordinator is the cluster's, and is looked at from outside.
"""

from __future__ import annotations

import queue
import random  # noqa: TID251  # names and phases of a play, which no seed governs
import re
import secrets  # noqa: TID251  # the same
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Protocol

from kgctl.errors import AuthError, KgctlError
from kgctl.model.groups import GroupDescription, GroupState, GroupType, TopicPartition
from kgctl.model.values import frozen_in_order
from kgctl.simulate.against.fleet import HELPER, SPARE, ClientKind, ClientLine, Fleet, PlayedProcess, PlayedTopics, raise_refusal
from kgctl.simulate.against.playable import can_be_killed
from kgctl.simulate.engine.cluster import TopicChanger
from kgctl.simulate.engine.context import Loop, Task
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase
from kgctl.simulate.engine.run import NO_LIMITS, RunLimits, complete, run
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.metrics.result import MetricView
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.recording.trace import GroupChanged, Observer, PodChanged, RecordsLost, RecordsRepeated, Removed, TraceEvent
from kgctl.simulate.recording.traffic import Wait
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.quantities import UNIT_PR
from kgctl.simulate.scenario.vocabulary import GapCause, Identity, PodChange

PREFIX = "kgctl-rehearsal-"
"""What the names of a play's topics and groups begin with."""
TICK_US = 10_000
_HELD_BACK_US = 20_000
"""Lines of several processes arrive in a wrong order by up to so much."""
_LOOK_EVERY_S = 0.1
_OFFSETS_EVERY = 3
"""So many looks at the group are one at its offsets."""
_CLOSE_S = 20.0
_FORGET_S = 90.0
_SETTLE_S = 1.0


class ClusterPort(Protocol):
    """Reads the groups of the cluster on which a scenario is played."""

    def describe(self, group_id: str) -> GroupDescription | None:
        """The group as it is now; None: there is none. Raises `KgctlError`."""
        ...

    def committed(self, group_id: str) -> Mapping[TopicPartition, int]:
        """The offsets that the group has committed. Raises `KgctlError`."""
        ...

    def forget(self, group_id: str) -> str:
        """Delete the group with its offsets: "" or why not."""
        ...


@frozen_in_order
class GroupSeen:
    """The group as it was at a time between two, in microseconds since the epoch; or why that cannot be told."""

    from_us: int
    to_us: int
    group: GroupDescription | None
    error: KgctlError | None = None
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)


def _wall_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251  # a play is in real time


class WallClockLoop(Loop):
    """A loop whose moments come when it is their time."""

    __slots__ = ("_moment_us", "begin_us")

    def __init__(self) -> None:
        super().__init__()
        self.begin_us = _wall_us()
        self._moment_us = 0

    def at(self, time_us: int, task: Task, argument: object = None) -> None:
        """Call it then; what follows from a line of the past is due now."""
        super().at(max(time_us, self._moment_us), task, argument)

    def run(self, until_us: int, most: int, look_at: int) -> None:
        """Wait for the next moment, and do what is due at it."""
        self._moment_us = min(self.moments[0], until_us)
        wait_us = self.begin_us + self._moment_us - _wall_us()
        if wait_us > 0:
            time.sleep(wait_us / 1e6)
        super().run(self._moment_us, most, look_at)


class Play(Simulation):
    """One play of a scenario. `begin` before it is completed, `end` afterwards, whatever happened."""

    loop: WallClockLoop
    topics: PlayedTopics

    def __init__(
        self, scenario: Scenario, number: int, fleet: Fleet, cluster: ClusterPort, observers: Sequence[Observer]
    ) -> None:
        self.fleet = fleet
        self.prefix = f"{PREFIX}{secrets.token_hex(4)}-"
        self.group_id = self.prefix + scenario.group_id
        self._cluster = cluster
        self._seen: queue.Queue[GroupSeen] = queue.Queue()
        self._is_over = threading.Event()
        self._has_begun = False
        self._held_back: list[ClientLine] = []
        self._floor_us = 0
        self._overtaken_us = -1
        self._written: dict[int, int] = {}
        self._read: set[int] = set()
        self._gone: dict[str, tuple[PlayedProcess, int]] = {}
        self._members: dict[str, PlayedProcess] = {}
        self._type = GroupType.UNKNOWN
        super().__init__(scenario, random.randrange(1 << 30) + number, observers, identity=Identity.POD, read=MetricView)  # noqa: S311
        self.recording.seed = number
        self.context.has_traffic = self.recording.has_traffic = False
        self.recording.is_played = True

    def new_loop(self) -> Loop:
        return WallClockLoop()

    def new_topics(self) -> TopicChanger:
        return PlayedTopics(self)

    def new_process(self, pod: Pod) -> Process:
        return PlayedProcess(pod, self)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self._type is GroupType.CONSUMER

    def changed(self) -> None:
        self._floor_us = max(self._floor_us, self.loop.now_us)
        super().changed()

    def settle_accounts(self) -> None:
        """The run is over. There is no model whose accounts could be checked."""
        self._bring_up_to_date()

    # --- begin and end

    def begin(self) -> None:
        """Look at the group once, to see that one may, and make the topics. Raises `KgctlError`."""
        self._cluster.describe(self.group_id)
        self._has_begun = True
        self.topics.begin()
        time.sleep(_SETTLE_S)
        self.loop.begin_us = _wall_us()
        self.loop.at(0, self._tick)
        threading.Thread(target=self._watch, daemon=True).start()

    def end(self) -> list[str]:
        """Close the consumers, and remove what the play has made; what could not be removed."""
        self._is_over.set()
        if not self._has_begun:
            return []
        self._close_members()
        self.fleet.end_members()
        return [why for why in (self._forget_group(), self.topics.end()) if why]

    def _close_members(self) -> None:
        living = {pod.name for pod in self.pods if pod.process is not None and pod.process.phase is ProcessPhase.RUNNING}
        for pod in self.pods:
            if pod.name in living and isinstance(pod.process, PlayedProcess):
                pod.process.close()
        end_s = time.monotonic() + _CLOSE_S
        while living and time.monotonic() < end_s:
            try:
                line = self.fleet.said.get(timeout=0.1)
            except queue.Empty:
                continue
            if line.what in ("closed", "failed"):
                living.discard(line.name)

    def _forget_group(self) -> str:
        """Killed members are in the group until their session is over."""
        end_s = time.monotonic() + _FORGET_S
        while why := self._cluster.forget(self.group_id):
            if time.monotonic() > end_s:
                return f"group {self.group_id} could not be deleted: {why}"
            time.sleep(1)
        return ""

    # --- what is seen and heard

    def _watch(self) -> None:
        looks = 0
        while not self._is_over.wait(_LOOK_EVERY_S):
            from_us = _wall_us()
            looks += 1
            try:
                committed = {} if looks % _OFFSETS_EVERY else self._cluster.committed(self.group_id)
                group = self._cluster.describe(self.group_id)
            except KgctlError as error:
                self._seen.put(GroupSeen(from_us, _wall_us(), None, error))
            else:
                self._seen.put(GroupSeen(from_us, _wall_us(), group, committed=committed))

    def _tick(self, _: object) -> None:
        now_us = self.loop.now_us
        self.loop.at(now_us + TICK_US, self._tick)
        said: list[ClientLine | GroupSeen] = [*self._held_back, *_drained(self.fleet.said), *_drained(self._seen)]
        limit_us = self.loop.begin_us + now_us - _HELD_BACK_US
        said.sort(key=_when_us)
        self._held_back = [each for each in said if _when_us(each) > limit_us]  # type: ignore[misc]
        for each in said[: len(said) - len(self._held_back)]:
            self.loop.now_us = self._floor_us = max(_when_us(each) - self.loop.begin_us, self._floor_us)
            if isinstance(each, GroupSeen):
                self._see(each)
            else:
                self._hear(each)
        self.loop.now_us = max(now_us, self._floor_us)

    def _hear(self, line: ClientLine) -> None:
        if line.name == HELPER:
            if line.what == "refused":
                raise_refusal(line.rest[1:], "the cluster refuses an event of the scenario")
            for text in line.rest if line.what == "written" else ():
                name, _, end = text.partition(":")
                self.is_written(self._number_of(name), int(end))
            return
        process = next((pod.process for pod in self.pods if pod.name == line.name), None)
        if isinstance(process, PlayedProcess):
            process.heard(line)
        elif line.what == "read":
            self.has_read(next(pod.number for pod in self.pods if pod.name == line.name), line)

    def _see(self, seen: GroupSeen) -> None:
        if seen.error is not None:
            if isinstance(seen.error, AuthError):
                raise seen.error
            return
        for (topic, partition), offset in seen.committed.items():
            self.is_committed(self._number_of(f"{topic}-{partition}"), offset)
        view, group = self.broker.observer, seen.group
        state = GroupState.DEAD.value if group is None else group.state.value
        if self._overtaken_us >= seen.from_us - self.loop.begin_us:
            return  # older than what a member has told of
        if group is not None:
            self._type = group.type
            if group.group_epoch is not None:
                view.generation = max(view.generation, group.group_epoch)
        members = {member.member_id for member in group.members} if group is not None else set()
        self._compare(members)
        if group is not None:
            self._find_kicked(members)
        self._is_now(state, view.generation, len(members))

    def _is_now(self, state: str, generation: int, members: int) -> None:
        view = self.broker.observer
        before = [(each.state, each.generation, each.members) for each in self.history.group[-1:]]
        if before != [(state, generation, members)]:
            self.emit(GroupChanged, state, generation, members, "")
        view.state, view.generation = state, generation
        self.changed()

    def _compare(self, members: set[str]) -> None:
        """Who is in the group, by the coordinator's own account."""
        now_us = self.loop.now_us
        dead = {process.pod.number for member_id, (process, _) in self._gone.items() if member_id in members}
        for member_id in [member_id for member_id in self._gone if member_id not in members]:
            process, gone_us = self._gone.pop(member_id)
            why = "replaced" if _is_in(process.pod, members) else "expired"
            self.emit(Removed, process.pod.name, member_id, why, now_us - gone_us)
            waiting = (GapCause.DETECTION, GapCause.STATIC_WAIT)
            freed = [number for number in process.lost if self.owners.gap_cause(number) in waiting]
            self.owners.set_cause(freed, GapCause.HANDOVER, now_us)
        for pod in self.pods:
            is_so = _is_in(pod, members) or pod.number in dead
            self.history.pods[pod.number].in_group.set(now_us, is_so=is_so)

    def _find_kicked(self, members: set[str]) -> None:
        """Who was in the group and is so no longer, by the coordinator's own account, though its process lives."""
        for member_id in [member_id for member_id in self._members if member_id not in members]:
            self._members.pop(member_id).is_out(member_id)
        for pod in self.pods:
            if isinstance(process := pod.process, PlayedProcess) and process.member_id in members:
                self._members[process.member_id] = process
                process.is_in_group()

    def is_in_generation(self, generation: int) -> None:
        """A member has told of this generation: a rebalance is under way at least until the coordinator is seen to be stable."""
        view = self.broker.observer
        if generation > view.generation:
            self._overtaken_us = self.loop.now_us
            settled = view.state in (GroupState.STABLE.value, GroupState.DEAD.value, GroupState.EMPTY.value)
            members = self.history.group[-1].members if self.history.group else 0
            self._is_now(GroupState.COMPLETING_REBALANCE.value if settled else view.state, generation, members)

    def is_gone(self, process: PlayedProcess, *, has_left: bool) -> None:
        """A process has ended; the coordinator has to find out, unless it has left the group."""
        if process.member_id and not has_left:
            self._gone[process.member_id] = (process, self.loop.now_us)

    # --- records

    def has_read(self, pod: int, line: ClientLine) -> None:
        """Records were read, of which some may have been read before. Those that a reader passes over nobody reads any more.

        A partition's first reader begins where its reset says: what stood there before the play is not lost.
        """
        now_us = self.loop.now_us
        for text in line.rest:
            name, offsets, waits = text.split(":")
            first, last = (int(offset) for offset in offsets.split("-"))
            number = self._number_of(name)
            self.is_written(number, last + 1)
            topic, name = self.ledger.topic[number], self.pods[pod].name
            before = self.ledger.read_to(number, last + 1)
            new, lost = max(last + 1 - max(first, before), 0), max(first - before, 0)
            self.ledger.backlog[topic].step(now_us, -(new + lost) * UNIT_PR)
            shortest_us, longest_us = (int(wait) * 1000 for wait in waits.split("-"))
            self.ledger.waits.append(Wait(now_us, number, new * UNIT_PR, shortest_us, longest_us))
            if last + 1 - first > new:
                self.emit(RecordsRepeated, name, last + 1 - first - new, topic)
            if lost and (number in self._read or self.partitions.created_us[number]):
                self.emit(RecordsLost, name, lost, topic)
            self._read.add(number)

    def is_written(self, number: int, end: int) -> None:
        """A partition's log is seen to end here."""
        grown = end - self._written.get(number, 0)
        if grown > 0:
            self._written[number] = end
            for series in (self.ledger.backlog, self.ledger.lag):
                series[self.ledger.topic[number]].step(self.loop.now_us, grown * UNIT_PR)

    def is_committed(self, number: int, offset: int) -> None:
        """The group is seen to have committed this offset."""
        if offset != self.ledger.committed[number]:
            self.is_written(number, offset)
            self.ledger.store(number, offset, self.loop.now_us)

    def _number_of(self, name: str) -> int:
        topic, _, number = name.removeprefix(self.prefix).rpartition("-")
        return self.partitions.numbers[TopicPartition(topic, int(number))]

    # --- names

    def ask_later(self, command: str, topic: str, *words: str) -> None:
        """Have the helper do something to one of the play's topics."""
        self.fleet.ask_later(command, self.prefix + topic, *words)

    def partitions_of(self, line: ClientLine) -> list[TopicPartition]:
        """The partitions that a line names, under the scenario's names."""
        found = []
        for text in line.partitions:
            topic, _, number = text.removeprefix(self.prefix).rpartition("-")
            found.append(TopicPartition(topic, int(number)))
        return found

    def subscription(self, members: MemberSet) -> str:
        """Return the topics or the pattern that a real consumer subscribes to; ``@``: one that Java's leaves to the brokers."""
        topics, pattern = self.topics.subscription_of(members)
        if pattern is not None:
            by_brokers = members.client == "java" and not members.matches_pattern
            return f"{'@' * by_brokers}^{re.escape(self.prefix)}(?:{pattern.removeprefix('^')})"
        return ",".join(self.prefix + topic for topic in topics)


def _is_in(pod: Pod, members: set[str]) -> bool:
    return isinstance(pod.process, PlayedProcess) and pod.process.member_id in members


def _when_us(said: ClientLine | GroupSeen) -> int:
    return said.at_us if isinstance(said, ClientLine) else said.to_us


def _drained(said: queue.Queue) -> list:  # type: ignore[type-arg]
    found = []
    while True:
        try:
            found.append(said.get_nowait())
        except queue.Empty:
            return found


_START_US = 10_000_000
"""A process on a busy machine is ready after so long."""


def processes_of(scenario: Scenario, kind: ClientKind) -> tuple[int, int]:
    """Return how many processes of a kind have to be ready, at the beginning and later, so that no pod waits for one.

    One for each pod that may need its own; later as many as boot at about the same time in a simulated run, a surge's pods say.
    """
    sets = [members for members in scenario.members if members.client == kind.profile]
    alone = {members.name for members in sets if not kind.is_shared or can_be_killed(scenario, members)}
    begin = sum(each.count for each in scenario.members if each.start is not None and each.name in alone)
    boots = _Boots(alone)
    if alone:
        run(scenario, 1, observers=[boots], read=MetricView)
    later = sorted(boots.times_us)[begin:]
    at_once = max((bisect_right(later, at_us + _START_US) - place for place, at_us in enumerate(later)), default=0)
    return begin, max(at_once, SPARE)


class _Boots:
    """Notes when pods of some sets boot."""

    def __init__(self, sets: set[str]) -> None:
        self._sets = sets
        self.times_us: list[int] = []

    def on_trace(self, event: TraceEvent) -> None:
        if isinstance(event, PodChanged) and event.what is PodChange.BOOT and event.pod.rpartition("-")[0] in self._sets:
            self.times_us.append(event.at_us)

    def on_step(self, at_us: int, metrics: object) -> None:
        """Nothing is looked at."""


def play(
    scenario: Scenario,
    number: int,
    *,
    kinds: Sequence[ClientKind],
    connection: Mapping[str, str],
    cluster: ClusterPort,
    observers: Sequence[Observer] = (),
    limits: RunLimits = NO_LIMITS,
    notice: Callable[[str], None],
) -> Recording:
    """Play one variant once, with a kind of each client of it, and remove what that has made on the cluster, whatever happens.

    Raises:
        KgctlError: the cluster refuses something, cannot be reached, or the clients do not start.
    """
    fleet = Fleet(kinds, connection)
    try:
        fleet.prepare(partial(processes_of, scenario))
        stage = Play(scenario, number, fleet, cluster, observers)
        try:
            stage.begin()
            return complete([stage], limits)
        finally:
            for left in stage.end():
                notice(f"left on the cluster: {left}")
    finally:
        fleet.close()
