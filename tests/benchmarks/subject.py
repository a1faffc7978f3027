"""What is measured: a job, how large it is, its target, and every way to do it that is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.benchmarks.clusters import Cluster
from tests.benchmarks.measure import Command


@dataclass(frozen=True)
class Size:
    """How much there is: groups, and commits of each."""

    groups: int
    partitions: int


@dataclass(frozen=True)
class Subject:
    """A row of the table of targets.

    ``prepare`` puts the data into the cluster and returns the commands, kgctl's own first. A subject without a cluster gets None.
    """

    name: str
    title: str
    target_s: float
    prepare: Callable[[Cluster | None, Size], Sequence[Command]]
    size: Size | None = None
    small: Size | None = None

    def sized(self, *, small: bool) -> Size:
        """The size of this run; ``small`` only shows that it works."""
        wanted = self.small if small else self.size
        return wanted or Size(0, 0)
