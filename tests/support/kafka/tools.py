"""The command-line tools that Apache Kafka ships, run as their scripts run them but without the shell."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

from tests.support.kafka.broker import class_data_archive
from tests.support.kafka.install import JVM, kafka_command
from tests.support.patience import PATIENCE_S

CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"

_COLUMN = re.compile(r"COORDINATOR \(ID\)|\S+")


def run_kafka_tool(main_class: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a tool of Kafka to its end; its exit code is the caller's to judge (most of them end with 0 whatever happened)."""
    command = kafka_command(main_class, *arguments, jvm=JVM, archive=class_data_archive())
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


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
        if line.startswith(("GROUP ", "TOPIC ")):
            header = list(_COLUMN.finditer(line))
        elif header and line.strip():
            ends = [*(column.start() for column in header[1:]), None]
            rows.append({column[0]: line[column.start() : end].strip() for column, end in zip(header, ends, strict=True)})
        else:
            header = []
    return rows
