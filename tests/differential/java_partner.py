"""A Java program of the suite as a partner: one JSON object a line in, one out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.maven import FAST_JVM, compile_java, java_command


class JavaFailedError(AssertionError):
    """The program could not answer."""


class JavaPartner:
    """One process of the program in this folder of tests/java, which has a pom; it answers one question at a time."""

    def __init__(self, folder: Path, main_class: str) -> None:
        classes = compile_java(folder / "pom.xml", sorted(folder.glob("*.java")))
        self._process = subprocess.Popen(
            java_command(classes, main_class, jvm=(*FAST_JVM, "-Xmx512m")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What it expects. Raises `JavaFailedError` with its words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"failure": "the process has ended"}')
        if "failure" in answer:
            raise JavaFailedError(answer["failure"])
        return answer["expect"]

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
