"""One group described, offsets and lag, on loopback."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.benchmarks.clusters import KGCTL, Cluster
from tests.benchmarks.measure import Command
from tests.benchmarks.peers import kafka_consumer_groups
from tests.benchmarks.populate import TOPIC, populate
from tests.benchmarks.subject import Size, Subject


def prepare(cluster: Cluster | None, size: Size) -> Sequence[Command]:
    """A group without members; kafka-python's command shows commits only: no end offsets, no lag."""
    assert cluster is not None
    (group,) = populate(cluster.bootstrap, size)
    kgctl = Command("kgctl", [*KGCTL, "--bootstrap-server", cluster.bootstrap, "describe", "group", group], expect=TOPIC)
    python = [sys.executable, "-m", "kafka.admin", "-b", cluster.bootstrap, "groups", "list-offsets", "-g", group]
    commands = [kgctl, Command("kafka-python's CLI (no lag)", python, expect=TOPIC)]
    if cluster.with_java:
        commands.append(kafka_consumer_groups(cluster.bootstrap, "--describe", "--group", group, expect=TOPIC))
    return commands


SUBJECT = Subject(
    "describe-group", "describe group, {partitions} partitions, whole process", 0.200, prepare, Size(1, 100), Size(1, 3)
)
