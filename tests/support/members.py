"""Group members of seven client libraries, each a process of its own that can be killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.gates import OWN_JAVA
from tests.support.kafka.install import POM
from tests.support.machine import Unavailable, once
from tests.support.maven import FAST_JVM, cache_folder, cache_lock, compile_java, digest, java_command
from tests.support.patience import PATIENCE_S

PROJECT = Path(__file__).parents[2]
KAFKAJS = PROJECT / "tests" / "interop" / "kafkajs"
KAFKA_GO = PROJECT / "tests" / "interop" / "kafkago"
JAVA = PROJECT / "tests" / "java" / "member"
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Client:
    """A client library. ``command`` starts a member; ``needs``: what that asks of the machine, by the names of `NEEDS`."""

    name: str
    command: Callable[[], list[str]]
    assignors: tuple[str, ...]
    has_static_members: bool = True
    needs: tuple[str, ...] = ()


def python_member(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.interop.members.{module}"]


def kafkajs_member() -> list[str]:
    """Node with the package that the lock file names, installed once into the user's cache."""
    return ["node", str(installed_kafkajs() / "member.js")]


def kafka_go_member() -> list[str]:
    """kafka-go's ConsumerGroup, compiled once into the user's cache."""
    return [str(built_kafka_go())]


def java_member() -> list[str]:
    """Apache Kafka's own consumer, compiled once into the user's cache."""
    classes = compile_java(POM, sorted(JAVA.glob("*.java")))
    return java_command(classes, "Member", jvm=("-Xmx128m", *FAST_JVM))


@once
def installed_kafkajs() -> Path:
    sources = sorted(path for path in KAFKAJS.iterdir() if path.is_file())
    folder = cache_folder() / f"kafkajs-{digest(*(path.read_bytes() for path in sources))}"
    with cache_lock("kafkajs"):
        if not (folder / "installed").exists():
            folder.mkdir(exist_ok=True)
            for path in sources:
                shutil.copy(path, folder)
            done = subprocess.run(
                ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
                cwd=folder,
                check=False,
                capture_output=True,
                text=True,
                timeout=300,
            )
            if done.returncode != 0:
                raise Unavailable(f"npm cannot install kafkajs: {done.stderr.strip().splitlines()[-1:]}")
            (folder / "installed").touch()
    return folder


@once
def built_kafka_go(program: str = ".") -> Path:
    """Return a program of tests/interop/kafkago, compiled once into the user's cache."""
    sources = sorted(path for path in KAFKA_GO.rglob("*") if path.is_file())
    built = cache_folder() / f"kafkago-{digest(program.encode(), *(path.read_bytes() for path in sources))}"
    with cache_lock("kafkago"):
        if not built.exists():
            new = built.with_suffix(".new")
            command = ["go", "build", "-trimpath", "-mod=readonly", "-o", str(new), program]
            done = subprocess.run(command, cwd=KAFKA_GO, check=False, capture_output=True, text=True, timeout=600)
            if done.returncode != 0:
                raise Unavailable(f"go cannot build the program on kafka-go: {done.stderr.strip().splitlines()[-1:]}")
            new.replace(built)
    return built


CLIENTS = {
    client.name: client
    for client in (
        Client("confluent-kafka", python_member("confluent"), ("range", "roundrobin", "cooperative-sticky")),
        Client("kafka-python", python_member("kafka_python"), ("range", "sticky", "cooperative-sticky")),
        Client("aiokafka", python_member("aiokafka_member"), ("range", "sticky")),
        Client("java", java_member, ("range", "cooperative-sticky", "sticky", "roundrobin"), needs=OWN_JAVA),
        Client("kgctl", python_member("kgctl_member"), ("range", "cooperative-sticky", "sticky", "roundrobin")),
        Client("kgctl-async", python_member("kgctl_async_member"), ("range", "cooperative-sticky", "sticky", "roundrobin")),
        Client("kafka-go", kafka_go_member, ("range", "roundrobin"), has_static_members=False, needs=("go",)),
        Client("kafkajs", kafkajs_member, ("RoundRobinAssigner",), has_static_members=False, needs=("node",)),
    )
}


class Member:
    """One member process and what it has told so far."""

    def __init__(self, client: Client, **settings: Any) -> None:
        self.name = settings["client_id"]
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        self.process = subprocess.Popen(
            [*client.command(), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.kill()

    @property
    def owned(self) -> set[Partition] | None:
        """The partitions that it has now; None before the first assignment."""
        history = self.owned_history
        return history[-1] if history else None

    @property
    def owned_history(self) -> list[set[Partition]]:
        """Every set of partitions that it has had."""
        return [{(topic, partition) for topic, partition in event["partitions"]} for event in self._of("owned")]

    @property
    def records(self) -> list[tuple[int, int]]:
        """(partition, offset) of each record that it was given, in order."""
        return [(event["partition"], event["offset"]) for event in self._of("record")]

    def tell(self, do: str, **values: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self.process.stdin.flush()

    def wait_for(self, event: str) -> None:
        wait_until(lambda: bool(self._of(event)), f"{self.name}: {event}", self._changed)

    def leave(self) -> None:
        """Leave the group as a client does, and end."""
        self.tell("leave")
        self.wait_for("left")
        self.process.wait(timeout=PATIENCE_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # a command that it did not live to read
                stream.close()

    def _of(self, name: str) -> list[dict[str, Any]]:
        return [event for event in list(self.events) if event["event"] == name]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()


def wait_until(condition: Callable[[], bool], what: str, changed: threading.Condition | None = None) -> None:
    """Poll until the condition holds; fails with ``what`` after the deadline."""
    deadline = time.monotonic() + PATIENCE_S
    waiter = changed or threading.Condition()
    with waiter:
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"after {PATIENCE_S} s still not: {what}")
            waiter.wait(0.05)


class Members:
    """Starts the members of one group and sees that they end with the test."""

    def __init__(self, stack: ExitStack, client: Client, bootstrap: str, group: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self._stack = stack
        self._client = client
        self._common = {"bootstrap": bootstrap, "group": group, "topic": topic}

    def start(self, name: str, **settings: Any) -> Member:
        given = {**self._common, "client_id": name, "assignor": self._client.assignors[0], **settings}
        return self._stack.enter_context(Member(self._client, **given))
