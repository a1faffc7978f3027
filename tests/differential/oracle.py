"""Kafka's own coordinator as a partner: one Java process that is given sequences, JSON lines in and out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from tests.support.maven import FAST_JVM, compile_java, java_command

SOURCES = Path(__file__).parents[1] / "java" / "coordinator"
Expectations = list[dict[str, Any]]
MAIN = "org.apache.kafka.coordinator.group.Oracle"
_JVM = (*FAST_JVM, "-Xmx1g")


class KafkaFailedError(AssertionError):
    """Kafka's coordinator, or the program around it, could not run a sequence."""


VERSIONS = {"4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1"}
"""The broker versions whose coordinator can be driven, and the release of each that is."""
LATEST = "4.3"
WITH_NEWER_GROUPS = ("4.2", "4.3")
"""Those whose share and streams groups are driven."""
_PACKAGES = {
    "common.record.internal.": "common.record.",
    "server.util.PartitionMetadataClient": "coordinator.group.PartitionMetadataClient",
}
"""What is elsewhere in all but the latest."""


class KafkaCoordinator:
    """The process, of one broker version. `expect` returns what Kafka does with a sequence, in the words of its "expect" list.

    `submit` and `receive` are the two halves of that: so both sides can be at work, Kafka on the sequences that wait for it.
    """

    def __init__(self, version: str = LATEST) -> None:
        own = SOURCES / f"v{version.replace('.', '_')}" / "Version.java"
        newer = (
            [*(SOURCES / "share").glob("*.java"), *(SOURCES / "streams").glob("*.java")] if version in WITH_NEWER_GROUPS else []
        )
        sources, replaced = [*sorted(SOURCES.glob("*.java")), *sorted(newer), own], {} if version == LATEST else _PACKAGES
        classes = compile_java(SOURCES / "pom.xml", sources, replaced, kafka_version=VERSIONS[version])
        self.version = version
        self._process = subprocess.Popen(
            java_command(classes, MAIN, jvm=_JVM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self._answers: Queue[str] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Always, so that neither side waits for the other to make room in a pipe."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put('{"failure": "the process has ended"}')

    def expect(self, sequence: Mapping[str, Any]) -> Expectations:
        """What happens. Each record also has its key and value in hex. Only while nothing else is submitted."""
        self.submit(sequence)
        return self.receive()

    def submit(self, sequence: Mapping[str, Any]) -> None:
        """Give Kafka a sequence to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**sequence, "bytes": True}) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Expectations:
        """What happened in the first sequence submitted whose answer was not received yet."""
        answer: dict[str, Any] = json.loads(self._answers.get())
        if "failure" in answer:
            raise KafkaFailedError(answer["failure"])
        expected: Expectations = answer["expect"]
        return expected

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
