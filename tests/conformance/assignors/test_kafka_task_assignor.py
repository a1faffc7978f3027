"""`HighAvailabilityTaskAssignor` beside Kafka's own classes."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kgctl.assignors.high_availability import (
    LATEST_OFFSET,
    UNKNOWN_OFFSET_SUM,
    ClientState,
    HighAvailabilityTaskAssignor,
    NumberedTask,
    TaskSettings,
)
from tests.support.maven import FAST_JVM, compile_java, java_command

POM = Path(__file__).parents[2] / "calibration/streams/pom.xml"
SOURCE = Path(__file__).parents[2] / "java/streams_assignor/TaskAssignor.java"
CLASS = "org.apache.kafka.streams.processor.internals.assignment.TaskAssignor"

pytestmark = pytest.mark.needs("java", "maven", "javac")


class JavaPartner:
    """The process: a line in, a line out."""

    def __init__(self) -> None:
        command = java_command(compile_java(POM, [SOURCE]), CLASS, jvm=FAST_JVM)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def answer(self, *parts: object) -> str:
        """What Kafka's class says to this."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("|".join(map(str, parts)) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


@pytest.fixture(scope="module")
def partner() -> Iterator[JavaPartner]:
    """One process for all tests here."""
    found = JavaPartner()
    try:
        yield found
    finally:
        found.close()


def _words(tasks: object) -> str:
    return " ".join(str(task) for task in sorted(tasks))  # type: ignore[call-overload]


def _clients(draw: random.Random, stateful: list[NumberedTask]) -> list[tuple[UUID, ClientState]]:
    found = []
    for _ in range(draw.randint(1, 6)):
        process_id = UUID(int=draw.getrandbits(128), version=4)
        known = (0, 0, 5, 100, 10_000, 10_001, 50_000, 50_000, LATEST_OFFSET, UNKNOWN_OFFSET_SUM)
        lags = {task: draw.choice(known) for task in stateful}
        found.append((process_id, ClientState(process_id, draw.choice((1, 1, 1, 2, 3)), lags)))
    return found


def _compare(partner: JavaPartner, seed: int) -> None:
    draw = random.Random(seed)
    tasks = [NumberedTask(part, number) for part in range(draw.randint(1, 3)) for number in range(draw.randint(1, 12))]
    stateful = [task for task in tasks if task.subtopology in draw.sample(range(3), 2)]
    settings = TaskSettings(draw.choice((0, 10_000, 2**63 - 1)), draw.randint(1, 4), draw.choice((0, 0, 1, 2)))
    clients = _clients(draw, stateful)
    given = [
        f"{process_id} {client.capacity} {' '.join(f'{task}={lag}' for task, lag in client.lags.items())}".strip()
        for process_id, client in clients
    ]
    numbers = f"{settings.acceptable_recovery_lag} {settings.max_warmup_replicas} {settings.num_standby_replicas}"
    theirs = partner.answer("assign", numbers, _words(tasks), _words(stateful), *given)
    probes = HighAvailabilityTaskAssignor().assign([client for _, client in clients], tasks, stateful, settings)
    ours = [str(probes).lower(), *(f"{_words(client.active)}/{_words(client.standby)}" for _, client in clients)]
    assert "|".join(ours) == theirs, f"seed {seed}"


def test_tasks_go_where_kafka_puts_them(partner: JavaPartner) -> None:
    """Any lags, instances with several threads, standbys, warm-ups: the same tasks, and the same word about a later look."""
    for seed in range(600):
        _compare(partner, seed)


@pytest.mark.deep
def test_tasks_of_many_applications_go_where_kafka_puts_them(partner: JavaPartner) -> None:
    """The same, of more of them."""
    for seed in range(600, 20_000):
        _compare(partner, seed)
