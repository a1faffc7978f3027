"""Start-up: what every command pays before it does anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.benchmarks.clusters import KGCTL, Cluster
from tests.benchmarks.measure import Command
from tests.benchmarks.subject import Size, Subject


def prepare(cluster: Cluster | None, size: Size) -> Sequence[Command]:
    """``kgctl --help`` beside the least that Python, its CLI library and a peer cost."""
    del cluster, size
    return [
        Command("kgctl --help", [*KGCTL, "--help"], expect="describe"),
        Command("python -c pass", [sys.executable, "-c", "pass"]),
        Command("python: import typer, rich.table", [sys.executable, "-c", "import typer, rich.table, rich.console"]),
        Command("kafka-python's CLI --help", [sys.executable, "-m", "kafka.admin", "--help"], expect="groups"),
    ]


SUBJECT = Subject("start-up", "kgctl --help, whole process", 0.120, prepare)
