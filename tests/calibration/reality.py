"""Runs a scenario in real time: Java consumers against a broker. Only what the scenarios of this folder use is understood."""

from __future__ import annotations

import heapq
import itertools
import queue
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka.admin import NewPartitions, NewTopic

from kgctl.simulate.scenario.distributions import Distribution, Uniform
from kgctl.simulate.scenario.model import CommitMode, Event, MemberSet, Scenario
from tests.calibration.fleet import Fleet, Line
from tests.support.kafka.data import admin_client, unique

JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
BROKER_SETTINGS = ("session.timeout.ms", "heartbeat.interval.ms")
"""What a consumer may not set with the consumer protocol."""


@dataclass(slots=True)
class Log:
    """What was seen: the lines in the order of their times, and when the window begins and ends."""

    lines: list[Line] = field(default_factory=list)
    begin_us: int = 0
    end_us: int = 0
    crashed: list[tuple[int, str]] = field(default_factory=list)
    past_limit: list[tuple[int, str]] = field(default_factory=list)
    frozen: list[tuple[int, str]] = field(default_factory=list)
    thawed: list[tuple[int, str]] = field(default_factory=list)
    created_us: dict[str, int] = field(default_factory=dict)
    """Partitions that came later."""
    group: str = ""


def run(scenario: Scenario, bootstrap: str) -> Log:
    """Run it and return what was seen. Topics and the group get names of their own; patterns are not understood."""
    return _Reality(scenario, bootstrap).run()


class _Reality:
    def __init__(self, scenario: Scenario, bootstrap: str) -> None:
        self._scenario = scenario
        self._bootstrap = bootstrap
        self._suffix = unique("")
        self._said: queue.Queue[Line] = queue.Queue()
        self._log = Log(group=scenario.group_id + self._suffix)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._on_closed: dict[str, Callable[[], None]] = {}
        self._on_subscribed: dict[str, Callable[[], None]] = {}
        self._limits_us: dict[str, int] = {}
        self._changed: dict[str, dict[str, str]] = {}
        self._random = random.Random()
        alone = {pod for event in scenario.events if event.kind in ("crash", "pause_process") for _, pod in self._pods(event)}
        self._main = Fleet(bootstrap, self._said)
        self._own = {pod: Fleet(bootstrap, self._said) for pod in sorted(alone)}
        self._spare = [Fleet(bootstrap, self._said) for event in scenario.events if event.kind == "crash" and event["for"]]

    def run(self) -> Log:
        scenario, log = self._scenario, self._log
        fleets = [self._main, *self._own.values(), *self._spare]
        try:
            for fleet in fleets:
                fleet.wait_until_ready()
            self._create_topics()
            self._begin()
            begin = time.monotonic() + scenario.warmup_us / 1e6
            log.begin_us = time.time_ns() // 1000 + scenario.warmup_us
            assert scenario.duration_us is not None
            log.end_us = log.begin_us + scenario.duration_us
            for event in scenario.events:
                self._at(begin + event.at_us / 1e6, partial(self._happen, event))
            self._go_on(begin + scenario.duration_us / 1e6)
        finally:
            for fleet in (*fleets, *self._own.values()):
                fleet.kill()
        log.lines.sort(key=lambda line: line.at_us)
        return log

    def _create_topics(self) -> None:
        admin = admin_client(self._bootstrap)
        topics = [NewTopic(self._name(topic.name), topic.partitions, 1) for topic in self._scenario.topics]
        for future in admin.create_topics(topics).values():
            future.result(30)
        time.sleep(1)

    def _begin(self) -> None:
        for members in self._scenario.members:
            for index in range(members.count):
                if members.start is not None:
                    delay_us = members.start.sample(self._random) + members.boot.sample(self._random)
                    self._later(delay_us, partial(self._boot, members, index))
        for traffic in self._scenario.traffic:
            partitions = next(topic.partitions for topic in self._scenario.topics if topic.name == traffic.topic)
            self._main.tell("produce", self._name(traffic.topic), str(partitions), str(traffic.steps[0][1] // 1_000_000))

    def _go_on(self, end: float) -> None:
        while (now := time.monotonic()) < end:
            while self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            until = min(self._due[0][0] if self._due else end, end)
            try:
                self._hear(self._said.get(timeout=min(max(until - time.monotonic(), 0.0005), 1)))
            except queue.Empty:
                continue

    def _hear(self, line: Line) -> None:
        self._log.lines.append(line)
        if line.what == "stalls" and line.member in self._limits_us:
            self._log.past_limit.append((line.at_us + self._limits_us.pop(line.member), line.member))
        waiting = self._on_closed if line.what == "closed" else self._on_subscribed if line.what == "subscribed" else {}
        then = waiting.pop(line.member, None)
        if then is not None:
            then()

    def _at(self, when: float, task: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._numbers), task))

    def _later(self, delay_us: int, task: Callable[[], None]) -> None:
        self._at(time.monotonic() + delay_us / 1e6, task)

    # --- members

    def _name(self, topic: str) -> str:
        return topic + self._suffix

    def _fleet(self, pod: str) -> Fleet:
        return self._own.get(pod, self._main)

    def _boot(self, members: MemberSet, index: int) -> None:
        pod = f"{members.name}-{index}"
        topics = members.topics or tuple(topic.name for topic in self._scenario.topics)
        self._fleet(pod).start(pod, ",".join(self._name(topic) for topic in topics), self._settings(members, pod))

    def _settings(self, members: MemberSet, pod: str) -> dict[str, str]:
        settings = {"auto.offset.reset": "earliest", **members.config, **self._changed.get(pod, {}), "group.id": self._log.group}
        if settings.get("group.protocol") == "consumer":
            settings = {key: value for key, value in settings.items() if key not in BROKER_SETTINGS}
        assignors = settings.pop("partition.assignment.strategy", None)
        if assignors is not None and settings.get("group.protocol") != "consumer":
            names = [name.strip() for name in assignors.strip("[]").split(",")]
            settings["partition.assignment.strategy"] = ",".join(JAVA_ASSIGNORS[name] for name in names)
        if members.instance_id is not None:
            settings["group.instance.id"] = members.instance_id.replace("$name", pod)
        if members.commit.mode is CommitMode.AFTER_BATCH or settings.get("enable.auto.commit") == "false":
            settings |= {"enable.auto.commit": "false", "commit.sync": "true"}
        gap = members.poll
        settings["poll.gap.ms"] = str((gap.upper_us or 0) // 1000)
        settings["poll.gap.min.ms"] = str(gap.low_us // 1000 if isinstance(gap, Uniform) else (gap.upper_us or 0) // 1000)
        return settings

    def _pods(self, event: Event) -> list[tuple[MemberSet, str]]:
        assert event.selector is not None
        return [
            (members, f"{members.name}-{index}")
            for members in self._scenario.members
            for index in range(members.count)
            if event.selector.matches(members.name, index)
        ]

    # --- events

    def _happen(self, event: Event) -> None:
        getattr(self, f"_{event.kind}")(event)

    def _rolling_restart(self, event: Event) -> None:
        self._next(event, self._pods(event))

    def _next(self, event: Event, left: list[tuple[MemberSet, str]]) -> None:
        if left:
            self._replace(*left[0], then=lambda: self._later(event["settle"], lambda: self._next(event, left[1:])))

    def _replace(
        self, members: MemberSet, pod: str, then: Callable[[], None] = lambda: None, down: Distribution | None = None
    ) -> None:
        def closed() -> None:
            self._on_subscribed[pod] = then
            self._bring_back(members, pod, 0 if down is None else down.sample(self._random))

        self._on_closed[pod] = closed
        self._fleet(pod).tell("close", pod)

    def _upgrade(self, event: Event) -> None:
        for _, pod in self._pods(event):
            self._changed[pod] = dict(event["set"])
        self._next(event, self._pods(event))

    def _pause_process(self, event: Event) -> None:
        for _, pod in self._pods(event):
            self._own[pod].freeze()
            self._log.frozen.append((time.time_ns() // 1000, pod))
            self._later(event["for"].sample(self._random), partial(self._thaw, pod))

    def _thaw(self, pod: str) -> None:
        self._log.thawed.append((time.time_ns() // 1000, pod))
        self._own[pod].thaw()

    def _start(self, event: Event) -> None:
        for members, pod in self._pods(event):
            self._bring_back(members, pod)

    def _stop(self, event: Event) -> None:
        for _, pod in self._pods(event):
            self._fleet(pod).tell("close", pod)

    def _bring_back(self, members: MemberSet, pod: str, extra_us: int = 0) -> None:
        index = int(pod.rpartition("-")[2])
        self._later(extra_us + members.boot.sample(self._random), lambda: self._boot(members, index))

    def _restart(self, event: Event) -> None:
        for members, pod in self._pods(event):
            self._replace(members, pod, down=event["for"])

    def _crash(self, event: Event) -> None:
        for members, pod in self._pods(event):
            self._own[pod].kill()
            self._log.crashed.append((time.time_ns() // 1000, pod))
            if event["for"]:
                self._own[pod] = self._spare.pop()
                self._bring_back(members, pod, event["for"].sample(self._random))

    def _stall(self, event: Event) -> None:
        for members, pod in self._pods(event):
            length_us = event["for"].sample(self._random)
            limit_us = int(members.config.get("max.poll.interval.ms", "300000")) * 1000
            if length_us > limit_us:
                self._limits_us[pod] = limit_us
            self._fleet(pod).tell("stall", pod, str(length_us // 1000))

    def _add_partitions(self, event: Event) -> None:
        admin = admin_client(self._bootstrap)
        for future in admin.create_partitions([NewPartitions(self._name(event.target), event["to"])]).values():
            future.result(30)
        topic = next(topic for topic in self._scenario.topics if topic.name == event.target)
        for number in range(topic.partitions, event["to"]):
            self._log.created_us[f"{self._name(topic.name)}-{number}"] = time.time_ns() // 1000

    def _scale(self, event: Event) -> None:
        members = next(members for members in self._scenario.members if members.name == event.target)
        for index in range(members.count, members.count + event["by"]):
            self._bring_back(members, f"{members.name}-{index}")
