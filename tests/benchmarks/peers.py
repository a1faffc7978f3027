"""Kafka's own tools as commands to compare with."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.measure import Command
from tests.support import maven
from tests.support.kafka.tools import CONSUMER_GROUPS

FOLDER = Path(__file__).parent
# The flags that the shipped scripts give to the JVM.
SHIPPED_JVM = (
    "-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true", f"-Dlog4j2.configurationFile={FOLDER / 'tools-log4j2.yaml'}",
)  # fmt: skip


def kafka_consumer_groups(bootstrap: str, *arguments: str, expect: str) -> Command:
    """``kafka-consumer-groups.sh``: its main class with the script's flags and logging, without the shell around it."""
    jars = maven.class_path(FOLDER / "pom.xml")
    argv = maven.java_command(jars, CONSUMER_GROUPS, "--bootstrap-server", bootstrap, *arguments, jvm=SHIPPED_JVM)
    return Command("kafka-consumer-groups.sh", argv, expect=expect)
