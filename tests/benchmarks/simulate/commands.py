"""``kgctl simulate`` as whole processes: the list of built-in scenarios, and what a pull request runs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.clusters import KGCTL, Cluster
from tests.benchmarks.measure import Command
from tests.benchmarks.subject import Size, Subject


def _list(cluster: Cluster | None, size: Size) -> Sequence[Command]:
    del cluster, size
    return [Command("kgctl simulate list", [*KGCTL, "simulate", "list"], expect="rolling-restart")]


def _in_ci(cluster: Cluster | None, size: Size) -> Sequence[Command]:
    """The built-in rolling restart has four variants of 40 members and 200 partitions."""
    del cluster, size
    argv = [*KGCTL, "simulate", "run", "rolling-restart", "--runs", "20"]
    return [Command(f"--jobs {jobs}", [*argv, "--jobs", str(jobs)], expect="rolling-restart") for jobs in (2, 1)]


LIST = Subject("simulate-list", "kgctl simulate list, whole process", 0.300, _list)
IN_CI = Subject("simulate-ci", "kgctl simulate run, 4 variants x 20 seeds of a rolling restart 40 x 200", 35.0, _in_ci)
