"""What is done with every group of a cluster at once: a reset that is executed, a description with time lag, a frame of top."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.benchmarks.clusters import KGCTL, Cluster
from tests.benchmarks.measure import Command
from tests.benchmarks.peers import kafka_consumer_groups
from tests.benchmarks.populate import RECORDS, populate
from tests.benchmarks.subject import Size, Subject

LARGE, SMALL = Size(1000, 100), Size(5, 3)


def _prepare(ours: Sequence[str], theirs: Sequence[str], *, is_change: bool = False) -> Callable[..., Sequence[Command]]:
    def prepare(cluster: Cluster | None, size: Size) -> Sequence[Command]:
        assert cluster is not None
        last = populate(cluster.bootstrap, size)[-1]
        commands = [Command("kgctl", [*KGCTL, "--bootstrap-server", cluster.bootstrap, *ours], expect=last)]
        if cluster.with_java:
            commands.append(kafka_consumer_groups(cluster.bootstrap, *theirs, expect=last))
        return [_to_another_offset(command) if is_change else command for command in commands]

    return prepare


def _to_another_offset(command: Command) -> Command:
    """With an offset that is another one in each tenth of a second: a run that finds all done would write nothing."""
    offset = f"--to-offset $(( $(date +%s%N) / 100000000 % {RECORDS} ))"
    return replace(command, argv=["sh", "-c", f"exec {shlex.join(command.argv)} {offset}"])


RESET = Subject(
    "reset-all",
    "reset-offsets --execute, {groups:,} groups x {partitions} partitions",
    10.0,
    _prepare(
        ("reset-offsets", "--all-groups", "--all-topics", "--execute", "--yes", "--no-backup"),
        ("--reset-offsets", "--all-groups", "--all-topics", "--execute", "--timeout", "120000"),
        is_change=True,
    ),
    LARGE,
    SMALL,
)
TIME_LAG = Subject(
    "describe-all",
    "describe group --all-groups --time-lag, {groups:,} groups x {partitions} partitions (the peer: without)",
    4.0,
    _prepare(("describe", "group", "--all-groups", "--time-lag"), ("--describe", "--all-groups")),
    LARGE,
    SMALL,
)
TOP = Subject(
    "top",
    "a frame of top, {groups:,} groups x {partitions} partitions (the peer: --describe)",
    2.0,
    _prepare(("top", "--iterations", "1"), ("--describe", "--all-groups")),
    LARGE,
    SMALL,
)
