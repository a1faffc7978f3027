"""The command-line tools that Apache Kafka ships, run as their scripts run them but without the shell."""

from __future__ import annotations

import atexit
import base64
import functools
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.kafka.install import JVM, POM
from tests.support.maven import compile_java, java_command

SOURCE = Path(__file__).parents[2] / "java" / "tools" / "Tools.java"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"

_COLUMN = re.compile(r"COORDINATOR \(ID\)|\S+")


class Tools:
    """A JVM in which the tools run one after the other: to start one for each takes longer than what they do."""

    def __init__(self, jars: str = "") -> None:
        """Those of ``jars``, a class path, where it is another release's."""
        classes, _, own = compile_java(POM, [SOURCE]).partition(os.pathsep)
        command = java_command(f"{classes}{os.pathsep}{jars or own}", "Tools", jvm=JVM)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        atexit.register(self._process.kill)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def run(self, main_class: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a tool to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(base64.b64encode("\0".join([main_class, *arguments]).encode()) + b"\n")
        self._process.stdin.flush()
        code, out, errors = self._process.stdout.readline().rstrip(b"\n").split(b" ")
        texts = [base64.b64decode(text).decode() for text in (out, errors)]
        return subprocess.CompletedProcess([main_class, *arguments], int(code), *texts)


_tools = functools.cache(Tools)


def run_kafka_tool(main_class: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a tool of Kafka to its end; its exit code is the caller's to judge (most of them end with 0 whatever happened)."""
    return _tools().run(main_class, arguments)


def run_kcg(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """``kafka-consumer-groups.sh`` with ``arguments`` (``--bootstrap-server`` among them)."""
    return run_kafka_tool(CONSUMER_GROUPS, arguments)


def kcg_rows(output: str) -> list[dict[str, str]]:
    """The rows of the tables that the tool printed, by the names of their headers; an empty cell is ``""``, ``-`` stays ``-``.

    A cell starts below its header: true as long as no cell is wider than its column (the tool widens those of names).
    """
    rows: list[dict[str, str]] = []
    header: list[re.Match[str]] = []
    for line in output.splitlines():
        if line.startswith(("GROUP ", "TOPIC ", "COORDINATOR ", "CONSUMER-ID ")):
            header = list(_COLUMN.finditer(line))
        elif header and line.strip():
            ends = [*(column.start() for column in header[1:]), None]
            rows.append({column[0]: line[column.start() : end].strip() for column, end in zip(header, ends, strict=True)})
        else:
            header = []
    return rows
