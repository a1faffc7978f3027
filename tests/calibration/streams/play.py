"""Applications of Kafka Streams on Apache Kafka, and what becomes of their tasks: recorded once, compared with `simulate`.

A play begins when every task runs. Times are milliseconds of the wall clock.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.maven import compile_java, java_command

HERE = Path(__file__).parent
TOPIC = "orders"
PATIENCE_MS = 300_000


@dataclass(frozen=True, slots=True)
class Said:
    """A line of an instance: when, which pod, what, and what about it."""

    at_ms: int
    pod: str
    what: str
    rest: tuple[str, ...] = ()


@dataclass
class Application:
    """The instances of one application. ``settings``: of Kafka Streams; each pod has a folder of its own for its state."""

    bootstrap: str
    folder: Path
    tasks: int
    restore_rate: int
    settings: Mapping[str, str]
    said: list[Said] = field(default_factory=list)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, pod: str) -> None:
        """Start an instance; return when it has called start()."""
        given = {
            "application.id": "app",
            "bootstrap.servers": self.bootstrap,
            "state.dir": str(self.folder / pod),
            "client.id": pod,
            **self.settings,
        }
        command = java_command(
            compile_java(HERE / "pom.xml", [HERE / "Application.java"]),
            "Application", TOPIC, str(self.restore_rate), *(f"{key}={value}" for key, value in given.items()),
        )  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._note(pod, "boots")
        self.running[pod] = process
        threading.Thread(target=self._read, args=(pod, process), daemon=True).start()
        self.wait(lambda: any(each.pod == pod and each.what == "started" for each in reversed(self.said)), since=pod)

    def stop(self, pod: str) -> None:
        """SIGTERM: it closes its KafkaStreams. Return when it is gone."""
        process = self.running.pop(pod)
        self._note(pod, "stops")
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self._note(pod, "gone")

    def kill(self, pod: str) -> None:
        process = self.running.pop(pod)
        process.kill()
        process.wait()
        self._note(pod, "gone")

    def wipe(self, pod: str) -> None:
        """Its disk is lost."""
        shutil.rmtree(self.folder / pod, ignore_errors=True)

    def wait(self, is_so: Callable[[], bool], *, since: str = "") -> None:
        """Return when this is so."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not is_so():
            assert time.monotonic() < deadline, f"{since}: {self.said[-20:]}"
            time.sleep(0.02)

    def whole(self) -> bool:
        return len(owners(self.said)) == self.tasks

    def _note(self, pod: str, what: str) -> None:
        with self._lock:
            self.said.append(Said(time.time_ns() // 1_000_000, pod, what))

    def _read(self, pod: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            at_ms, what, *rest = line.split()
            with self._lock:
                self.said.append(Said(int(at_ms), pod, what, tuple(rest)))


def owners(said: list[Said]) -> dict[str, str]:
    """Task -> the pod in which it runs."""
    found: dict[str, str] = {}
    for each in sorted(said, key=lambda one: one.at_ms):
        if each.what == "runs":
            found[each.rest[0]] = each.pod
        elif each.what == "ends" and found.get(each.rest[0]) == each.pod:
            del found[each.rest[0]]
        elif each.what == "gone":
            found = {task: pod for task, pod in found.items() if pod != each.pod}
    return found


def gaps(said: list[Said], from_ms: int, to_ms: int) -> list[tuple[str, int, int]]:
    """(task, from, to): when it ran nowhere."""
    found: list[tuple[str, int, int]] = []
    begun: dict[str, int] = {}
    before: set[str] = set()
    ordered = sorted(said, key=lambda one: one.at_ms)
    for position, each in enumerate(ordered):
        if each.what not in ("runs", "ends", "gone") or each.at_ms > to_ms:
            continue
        now = set(owners(ordered[: position + 1]))
        for task in before - now:
            begun[task] = each.at_ms
        back = [task for task in now - before if task in begun and each.at_ms > from_ms]
        found += [(task, max(begun.pop(task), from_ms), each.at_ms) for task in back]
        before = now
    return [
        gap
        for gap in (*found, *((task, max(at, from_ms), to_ms) for task, at in begun.items() if task not in before))
        if gap[2] > gap[1]
    ]


def figures(said: list[Said], from_ms: int, to_ms: int) -> dict[str, float]:
    """The metrics of `simulate` that are compared, of this time."""
    found = gaps(said, from_ms, to_ms)
    lengths = [to - start for _, start, to in found]
    longest = first = last = 0
    for start, to in sorted((start, to) for _, start, to in found):
        first = start if start > last else first
        last = max(to, last)
        longest = max(longest, last - first)
    amounts = (int(each.rest[1]) for each in said if each.what in ("restored", "suspended") and each.at_ms >= from_ms)
    return {
        "task_downtime": round(sum(lengths) / 1000, 3),
        "max_task_downtime": round(max(lengths, default=0) / 1000, 3),
        "time_to_whole": round(longest / 1000, 3),
        "restored": sum(amounts),
    }


@contextmanager
def filled(bootstrap: str, tasks: int, records: int) -> Iterator[None]:
    """The topic, with so many records of 100 bytes a partition, each of a key of its own."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, tasks, 1)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        for partition in range(tasks):
            producer.produce(TOPIC, b"x" * 92, key=number.to_bytes(8, "big"), partition=partition)
        producer.poll(0)
    producer.flush()
    yield
