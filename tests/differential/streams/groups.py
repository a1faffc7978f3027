"""Streams groups, round after round: who is there, what is to be run, and the target that the sticky assignor makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kgctl.assignors.spec import AssignorError
from kgctl.assignors.streams_sticky import StickyTaskAssignor
from kgctl.assignors.task_spec import SubtopologySize, TaskMember, TaskSpec
from kgctl.model.values import hash_map_order
from tests.differential.choices import Choice

Question = dict[str, Any]
Answer = dict[str, Any]
SUBTOPOLOGIES = ("0", "1", "10", "2", "Aa", "BB", "ä")
PROCESSES = ("p-1", "p-2", "Aa", "BB", "8f14e45f-ceea-467f-a9d0-1b2c3d4e5f60", "p-3", "p-4", "p-5")
MEMBERS = tuple(f"{name}{number}" for number in range(12) for name in ("m-", "Aa", "BB", "dK3xw_0QQ2GdTzq0b0bV5A-"))
PARTITIONS = (1, 2, 3, 4, 5, 8, 13, 17, 40)


class Rounds:
    """A group that changes from round to round; each begins with the target of the one before."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._most = choice.of((2, 4, 4, 16, 16, 48))
        self._processes = PROCESSES[: choice.of((1, 2, 3, 8))]
        self._members = {name: choice.of(self._processes) for name in choice.some(MEMBERS)[: self._most]}
        self._subtopologies = {name: self._size() for name in choice.some(SUBTOPOLOGIES)}
        self._replicas = choice.of((0, 0, 1, 1, 2, 3))
        self._targets: Answer = {}

    def _size(self) -> list[Any]:
        return [self._choice.of(PARTITIONS), self._choice.chance(2)]

    def question(self) -> Question:
        """The group as it is now."""
        return {
            "kind": "tasks",
            "members": [self._member(name, process) for name, process in self._members.items()],
            "subtopologies": [
                {"id": name, "partitions": partitions, "stateful": stateful}
                for name, (partitions, stateful) in self._subtopologies.items()
            ],
            "standby_replicas": self._replicas,
        }

    def _member(self, name: str, process: str) -> Question:
        active, standby = self._targets.get(name, ([], []))
        return {"id": name, "process": process, "active": dict(active), "standby": dict(standby)}

    def go_on(self, answer: Answer) -> None:
        """The answer becomes the target, and something happens to the group."""
        if "thrown" not in answer:
            self._targets = answer
        for _ in range(self._choice.number(1, 3)):
            self._choice.of((self._join, self._leave, self._resize, self._move, self._replicate, self._forget))()

    def _join(self) -> None:
        self._members.setdefault(self._choice.of(MEMBERS), self._choice.of(self._processes))

    def _leave(self) -> None:
        if self._members:
            del self._members[self._choice.of(list(self._members))]

    def _move(self) -> None:
        if self._members:
            self._members[self._choice.of(list(self._members))] = self._choice.of(PROCESSES)

    def _resize(self) -> None:
        name = self._choice.of(SUBTOPOLOGIES)
        if self._choice.chance(4):
            self._subtopologies.pop(name, None)
        else:
            self._subtopologies[name] = self._size()

    def _replicate(self) -> None:
        self._replicas = self._choice.number(0, 3)

    def _forget(self) -> None:
        for name in self._choice.some(list(self._targets))[:2]:
            self._targets = {member: target for member, target in self._targets.items() if member != name}


def task_rounds(choice: Choice) -> Iterator[Question]:
    """Several rounds of one group; what the core answers is the target of the next one."""
    rounds = Rounds(choice)
    for _ in range(choice.number(1, 6)):
        question = rounds.question()
        yield question
        rounds.go_on(task_answer(question))


def task_answer(question: Question) -> Answer:
    """What the core makes of it, in the form of the oracle's answer."""
    members = {each["id"]: each for each in question["members"]}
    sizes = sorted(question["subtopologies"], key=lambda each: each["id"].encode("utf-16-be"))
    spec = TaskSpec(
        [
            TaskMember(name, members[name]["process"], members[name]["active"], members[name]["standby"])
            for name in hash_map_order(members)
        ],
        [SubtopologySize(each["id"], each["partitions"], each["stateful"]) for each in sizes],
        question["standby_replicas"],
    )
    try:
        targets = StickyTaskAssignor().assign_tasks(spec)
    except AssignorError as error:
        return {"thrown": str(error)}
    return {name: [_listed(target.active), _listed(target.standby)] for name, target in targets.items()}


def _listed(tasks: Mapping[str, Iterable[int]]) -> list[Any]:
    return [[subtopology, list(numbers)] for subtopology, numbers in tasks.items()]


def tasks_reached(question: Question, answer: Answer) -> Iterator[str]:
    """What a round led to."""
    if "thrown" in answer:
        yield "nobody to run tasks"
        return
    was = {each["id"]: each for each in question["members"]}
    if any(dict(target[0]) != was[name]["active"] for name, target in answer.items() if was[name]["active"]):
        yield "active tasks move"
    if any(target[1] for target in answer.values()):
        yield "standby tasks"
    if len({each["process"] for each in was.values()}) < len(was):
        yield "members that share a process"
    short = sum(len(numbers) for target in answer.values() for _, numbers in target[1])
    stateful = sum(each["partitions"] for each in question["subtopologies"] if each["stateful"])
    if short < stateful * question["standby_replicas"]:
        yield "too few processes for the standby tasks"
