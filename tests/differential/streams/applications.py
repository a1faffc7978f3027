"""Kafka Streams applications in classic groups, rebalance after rebalance, and what the leader's assignor makes of each."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kgctl.assignors.high_availability import LATEST_OFFSET, UNKNOWN_OFFSET_SUM, NumberedTask, TaskSettings
from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams.partition_assignor import Leader, StreamThread, TaskTopology, assign_streams
from kgctl.assignors.streams.user_data import (
    LATEST_VERSION,
    SHUTDOWN_REQUESTED,
    SubscriptionInfo,
    decode_assignment_info,
    decode_subscription_info,
    encode_assignment_info,
    encode_subscription_info,
)
from kgctl.model.groups import TopicPartition
from tests.differential.choices import Choice

Question = dict[str, Any]
Answer = dict[str, Any]
TOPICS = ("in", "orders", "Aa", "BB", "AaBB", "BBAa", "users.v1", "clicks-2", "z", "payments")
PROCESSES = tuple(
    str(UUID(text))
    for text in (
        "00000000-0000-4000-8000-000000000001",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "8f14e45f-ceea-467f-a9d0-1b2c3d4e5f60",
        "00000001-0000-4000-8000-000000000002",
        "00000001-0000-4000-8000-000000000000",
        "4d36e967-e325-41ce-bfc1-08002be10318",
        "c9bf9e57-1685-4c89-bafb-ff5af830be8a",
    )
)
THREADS = ("app-1-StreamThread-1-consumer-Aa", "app-1-StreamThread-2-consumer-BB", "m", "zz", "Aa", "BB", "10", "2")
COUNTS = (1, 2, 3, 4, 4, 6, 9, 16)
ENDS = (0, 1, 500, 10_000, 10_001, 1_000_000, 2**62)
TAGS = ("zone", "cluster")
SETTINGS: dict[str, tuple[int, ...]] = {
    "num.standby.replicas": (0, 0, 1, 1, 2, 3),
    "max.warmup.replicas": (1, 2, 2, 5),
    "acceptable.recovery.lag": (0, 10_000, 10_000, 2**63 - 1),
    "probing.rebalance.interval.ms": (60_000, 600_000),
}


class Application:
    """An application that changes from rebalance to rebalance."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        topics = choice.some(TOPICS) or ["in"]
        self._sources = [topics[at : at + 2] for at in range(0, len(topics), 2)][:4]
        self._stateful = choice.some(range(len(self._sources)))
        self._counts = {topic: choice.of(COUNTS) for topics in self._sources for topic in topics}
        self._ends = {str(task): choice.of(ENDS) for task in self._stateful_tasks()}
        self._settings = {name: choice.of(values) for name, values in SETTINGS.items()}
        self._versions = choice.often((LATEST_VERSION,), (7, 8, 9, 10, 11), (1, 2, 3, 4, 5, 6, 11), (11, 6))
        self._tags = choice.of(((), (), TAGS[:1], TAGS))
        self._most = choice.of((1, 2, 4, 8))
        self._threads: dict[str, Question] = {}
        self._unique = 0
        for _ in range(choice.number(1, 9)):
            self._start()

    def _stateful_tasks(self) -> list[NumberedTask]:
        return [
            NumberedTask(number, partition)
            for number in self._stateful
            for partition in range(max(self._counts.get(topic, 0) for topic in self._sources[number]))
        ]

    def _start(self) -> None:
        choice = self._choice
        process = choice.of(PROCESSES[: self._most])
        present = next((each for each in self._threads.values() if each["process"] == process), None)
        endpoint = present["endpoint"] if present else choice.of((None, None, "host-a:8080", "10.0.0.1:443", "Aa:1", "BB:1"))
        for number in range(choice.of((1, 1, 2, 3, 7))):
            name = f"{choice.of(THREADS)}-{number}-{process[:4]}{choice.number(0, 3)}"
            tags = [[tag, f"{tag}-{int(process[0], 16) % (2 + len(tag) % 2)}"] for tag in TAGS]
            self._threads.setdefault(
                name, {"process": process, "endpoint": endpoint, "tags": tags, "owned": [], "sums": {}, "error": 0}
            )

    def question(self) -> Question:
        """The subscriptions, as the leader gets them."""
        self._unique += 1
        return {
            "kind": "classic",
            "sources": self._sources,
            "stateful": self._stateful,
            "counts": self._counts,
            "ends": self._ends,
            "settings": self._settings,
            "client_tags": self._tags,
            "leader": self._choice.of([*(each["process"] for each in self._threads.values()), PROCESSES[0]]),
            "now_ms": 1_700_000_000_000 + self._unique * 1_000,
            "members": [self._member(name, thread) for name, thread in self._threads.items()],
        }

    def _member(self, name: str, thread: Question) -> Question:
        version = self._choice.of(self._versions)
        info = SubscriptionInfo(
            UUID(thread["process"]),
            thread["sums"],
            thread["endpoint"],
            self._unique,
            thread["error"],
            tuple((tag, value) for tag, value in thread["tags"]),
            version,
            self._choice.often(LATEST_VERSION, max(version, 9), LATEST_VERSION + 1),
        )
        return {"id": name, "owned": thread["owned"], "user_data": b64encode(encode_subscription_info(info)).decode()}

    def go_on(self, answer: Answer) -> None:
        """The threads run what they got, and something happens."""
        for name, thread in self._threads.items():
            if name in answer:
                self._take(thread, *answer[name])
        for _ in range(self._choice.number(0, 2)):
            self._choice.of((self._start, self._leave, self._leave, self._grow, self._resize, self._shut_down, self._reset))()

    def _take(self, thread: Question, partitions: list[Any], user_data: str) -> None:
        choice, info = self._choice, decode_assignment_info(b64decode(user_data))
        thread["owned"] = [] if choice.chance(20) else partitions
        kept = {task: offset for task, offset in thread["sums"].items() if choice.chance(3) and offset >= 0}
        stateful = set(self._stateful_tasks())
        running = {task: LATEST_OFFSET for task in info.active if task in stateful and not choice.chance(8)}
        copies = {task: self._offset(task) for task in (*info.standby, *info.active) if task not in running and task in stateful}
        thread["sums"] = {**kept, **copies, **running}
        if choice.chance(10):
            thread["sums"][NumberedTask(choice.number(0, 4), choice.number(0, 3))] = choice.of((LATEST_OFFSET, 5))

    def _offset(self, task: NumberedTask) -> int:
        end = self._ends.get(str(task), 0)
        return self._choice.of((end, end, max(end - 100, 0), end // 2, 0, end + 1, UNKNOWN_OFFSET_SUM))

    def _leave(self) -> None:
        if len(self._threads) > 1:
            del self._threads[self._choice.of(list(self._threads))]

    def _grow(self) -> None:
        self._ends = {task: self._choice.often(end, self._choice.of(ENDS)) for task, end in self._ends.items()}

    def _resize(self) -> None:
        topic = self._choice.of(list(self._counts))
        self._counts = {**self._counts, topic: self._choice.often(self._counts[topic] + 1, 0)}
        self._ends = {str(task): self._ends.get(str(task), 7) for task in self._stateful_tasks()}

    def _shut_down(self) -> None:
        if self._choice.chance(9):
            process = self._choice.of(PROCESSES[: self._most])
            for thread in self._threads.values():
                if thread["process"] == process:
                    thread["owned"] = [["gone", 0]]
        elif self._choice.chance(5):
            self._threads[self._choice.of(list(self._threads))]["error"] = SHUTDOWN_REQUESTED

    def _reset(self) -> None:
        name = self._choice.of(list(SETTINGS))
        self._settings = {**self._settings, name: self._choice.of(SETTINGS[name])}


def application_rounds(choice: Choice) -> Iterator[Question]:
    """Several rebalances of one application."""
    application = Application(choice)
    for _ in range(choice.number(1, 6)):
        question = application.question()
        yield question
        application.go_on(application_answer(question))


def application_answer(question: Question) -> Answer:
    """What the core makes of it, in the form of the oracle's answer."""
    settings = question["settings"]
    members = [
        StreamThread(
            each["id"],
            decode_subscription_info(b64decode(each["user_data"])),
            tuple(TopicPartition(topic, number) for topic, number in each["owned"]),
        )
        for each in question["members"]
    ]
    topology = TaskTopology(tuple(map(tuple, question["sources"])), frozenset(question["stateful"]))
    ends = {NumberedTask(*map(int, task.split("_"))): end for task, end in question["ends"].items()}
    leader = Leader(
        UUID(question["leader"]),
        question["now_ms"],
        TaskSettings(
            settings["acceptable.recovery.lag"],
            settings["max.warmup.replicas"],
            settings["num.standby.replicas"],
            tuple(question["client_tags"]),
        ),
        settings["probing.rebalance.interval.ms"],
    )
    try:
        found = assign_streams(
            members, topology, question["counts"], lambda tasks: {task: ends[task] for task in tasks if task in ends}, leader
        )
    except AssignorError as error:
        return {"thrown": str(error)}
    told = {
        name: [[list(partition) for partition in each.partitions], b64encode(encode_assignment_info(each.info)).decode()]
        for name, each in found.members.items()
    }
    return {**told, "stable": found.is_stable}


def application_reached(question: Question, answer: Answer) -> Iterator[str]:
    """What a rebalance led to."""
    if "thrown" in answer:
        yield f"thrown {answer['thrown']}"
        return
    yield "stable" if answer["stable"] else "another rebalance is asked for"
    infos = [decode_assignment_info(b64decode(told[1])) for name, told in answer.items() if name != "stable"]
    yield f"version {infos[0].version}"
    yield f"error {infos[0].error_code}"
    if any(info.next_rebalance_ms == 0 for info in infos):
        yield "at once"
    if any(0 < info.next_rebalance_ms < 2**63 - 1 for info in infos):
        yield "probing"
    if any(info.standby for info in infos):
        yield "standby tasks" if question["settings"]["num.standby.replicas"] else "warm-ups"
        if question["client_tags"]:
            yield "standby tasks apart from each other"
    if any(info.partitions_by_host for info in infos):
        yield "endpoints"
    processes = {decode_subscription_info(b64decode(each["user_data"])).process_id for each in question["members"]}
    if len(processes) < len(question["members"]):
        yield "threads that share an instance"


VERSIONS = range(1, LATEST_VERSION + 1)


def user_data_questions(choice: Choice) -> Iterator[Question]:
    """A subscription, in a version."""
    sums = [
        [choice.number(0, 20), choice.number(0, 40), choice.of((-2, -2, -3, 0, 7, 2**40))] for _ in range(choice.number(0, 15))
    ]
    yield {
        "kind": "user_data",
        "version": choice.of(VERSIONS),
        "latest": choice.of((11, 11, 12)),
        "process": choice.of(PROCESSES),
        "endpoint": choice.of((None, "host:80", "größe:1")),
        "sums": sums,
        "unique": choice.number(-128, 127),
        "error": choice.number(0, 4),
        "tags": [[tag, choice.of(("a", "ä", ""))] for tag in choice.some(TAGS)],
    }


def user_data_answer(question: Question) -> Answer:
    """Its bytes, and what they say when they are read."""
    info = SubscriptionInfo(
        UUID(question["process"]),
        {NumberedTask(subtopology, partition): offset for subtopology, partition, offset in question["sums"]},
        question["endpoint"],
        question["unique"],
        question["error"],
        tuple((tag, value) for tag, value in question["tags"]),
        question["version"],
        question["latest"],
    )
    data = encode_subscription_info(info)
    read = decode_subscription_info(data)
    return {"bytes": b64encode(data).decode(), "sums": sorted([*task, offset] for task, offset in read.offset_sums.items())}
