"""Kafka's own tools as commands to compare with."""

from __future__ import annotations

from tests.benchmarks.measure import Command
from tests.support.kafka.install import kafka_command
from tests.support.kafka.tools import CONSUMER_GROUPS

# The flags that the shipped scripts give to the JVM.
SHIPPED_JVM = (
    "-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip


def kafka_consumer_groups(bootstrap: str, *arguments: str, expect: str) -> Command:
    """``kafka-consumer-groups.sh``: its main class with the script's flags, without the shell around it."""
    argv = kafka_command(CONSUMER_GROUPS, "--bootstrap-server", bootstrap, *arguments, jvm=SHIPPED_JVM)
    return Command("kafka-consumer-groups.sh", argv, expect=expect)
