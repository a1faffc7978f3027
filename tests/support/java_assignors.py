"""Kafka's own assignors as a partner for tests: one Java process that answers documents, JSON lines in and out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.maven import FAST_JVM, compile_java, java_command

SOURCES = Path(__file__).parents[1] / "java" / "assignors"

Answers = dict[str, dict[str, dict[str, list[int]]]]


class JavaAssignors:
    """The process. ``answer`` returns what each of a document's assignors says: an assignment, or ``{"error": text}``."""

    def __init__(self, classes: str) -> None:
        jvm = (*FAST_JVM, "-Xmx1g")
        self._process = subprocess.Popen(
            java_command(classes, "Assign", jvm=jvm), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def answer(self, document: Mapping[str, Any]) -> Answers:
        """Kafka's answers for one document; it names its assignors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()
        answer: Answers = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


@pytest.fixture(scope="session")
def java_assignors() -> Iterator[JavaAssignors]:
    """Apache Kafka's assignors, one process for the session."""
    classes = compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java")))
    partner = JavaAssignors(classes)
    try:
        yield partner
    finally:
        partner.close()
