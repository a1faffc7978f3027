"""The lag of every group of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.benchmarks.clusters import KGCTL, Cluster
from tests.benchmarks.measure import Command
from tests.benchmarks.peers import kafka_consumer_groups
from tests.benchmarks.populate import TOPIC, populate
from tests.benchmarks.subject import Size, Subject


def prepare(cluster: Cluster | None, size: Size) -> Sequence[Command]:
    """kafka-python's command takes one group a process: one is timed, and counted for all of them."""
    assert cluster is not None
    groups = populate(cluster.bootstrap, size)
    kgctl = Command("kgctl", [*KGCTL, "--bootstrap-server", cluster.bootstrap, "list", "groups", "--lag"], expect=groups[-1])
    one = [sys.executable, "-m", "kafka.admin", "-b", cluster.bootstrap, "groups", "list-offsets", "-g", groups[-1]]
    commands = [kgctl, Command("kafka-python's CLI, a process a group (no lag)", one, expect=TOPIC, times=len(groups))]
    if cluster.with_java:
        commands.append(kafka_consumer_groups(cluster.bootstrap, "--describe", "--all-groups", expect=groups[-1]))
    return commands


SUBJECT = Subject(
    "list-groups", "list groups --lag, {groups:,} groups x {partitions} partitions", 1.0, prepare, Size(1000, 100), Size(5, 3)
)
