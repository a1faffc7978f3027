"""Kafka's own coordinator as a partner: one Java process that is given sequences, JSON lines in and out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.maven import compile_java, java_command

SOURCES = Path(__file__).parents[1] / "java" / "coordinator"
MAIN = "org.apache.kafka.coordinator.group.Oracle"
_JVM = ("-XX:+UseSerialGC", "-Xmx1g")


class KafkaFailedError(AssertionError):
    """Kafka's coordinator, or the program around it, could not run a sequence."""


class KafkaCoordinator:
    """The process. `expect` returns what Kafka does with a sequence, in the words of its "expect" list."""

    def __init__(self) -> None:
        classes = compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java")))
        self._process = subprocess.Popen(
            java_command(classes, MAIN, jvm=_JVM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def expect(self, sequence: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What happens. Each record also has its key and value in hex."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**sequence, "bytes": True}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if "failure" in answer:
            raise KafkaFailedError(answer["failure"])
        expected: list[dict[str, Any]] = answer["expect"]
        return expected

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
