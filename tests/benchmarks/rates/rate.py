"""What is measured as a rate: so much a second, of something that runs already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scale:
    """How large and how long: ``small`` only shows that it works, ``runs`` are taken in turns, each of ``seconds``.

    ``against``: another checkout of kgctl, for the tables that stand beside one.
    """

    small: bool
    runs: int
    against: Path | None = None

    @property
    def seconds(self) -> float:
        """The length of one run."""
        return 0.05 if self.small else 1.0


@dataclass(frozen=True)
class Row:
    """One line of the table; the numbers as they are shown."""

    name: str
    numbers: Sequence[str]


@dataclass(frozen=True)
class Rates:
    """A table; ``measure`` gets the names of the clusters that are wanted and returns the rows, each as soon as it is there."""

    name: str
    title: str
    columns: Sequence[str]
    measure: Callable[[Sequence[str], Scale], Iterable[Row]]

    def show(self, clusters: Sequence[str], scale: Scale) -> None:
        """Measure and print."""
        print(self.title)
        print(f"  {'':<50}" + "".join(f"{column:>16}" for column in self.columns))
        for row in self.measure(clusters, scale):
            print(f"  {row.name:<50}" + "".join(f"{number:>16}" for number in row.numbers), flush=True)
        print(flush=True)
