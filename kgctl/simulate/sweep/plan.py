"""Which runs a sweep consists of, in portions that can be sent to wherever they are run."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.errors import KgctlError
from kgctl.simulate.scenario.expressions.nodes import Metric
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.sweep.axes import Axis, Point, points_of, settings_at
from kgctl.yaml_files import Tree

_BLOCKS_PER_SLOT = 32
_MOST_SEEDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All of a sweep but how it is run. ``words``: the command line that a replay begins with. ``checks``: instead of the file's.
    ``metrics``: what is summed up; those with filters have columns of their own. ``along``: the path of the parameter that charts
    run along; None: the one with the most values.

    A run is named by its place in the grid, its variant and its seed; everything that comes of it follows from these.
    """

    tree: Tree
    name: str
    axes: tuple[Axis, ...]
    fixed: tuple[str, ...]
    variant_names: tuple[str, ...]
    has_variants: bool
    seeds: tuple[int, ...]
    words: tuple[str, ...]
    checks: tuple[str, ...] | None = None
    metrics: tuple[Metric, ...] = ()
    along: str | None = None

    def points(self) -> list[Point]:
        """The grid."""
        return points_of(self.axes)

    def run_count(self) -> int:
        """How many runs there are."""
        return len(self.points()) * len(self.variant_names) * len(self.seeds)

    def loaded(self, point: Point) -> LoadedFile:
        """The scenario at a point.

        Raises:
            UsageError: these parameters make no scenario.
        """
        variants = self.variant_names if self.has_variants else ()
        return load(self.tree, settings=(*self.fixed, *settings_at(self.axes, point)), variants=variants, checks=self.checks)


@dataclass(frozen=True, slots=True)
class Block:
    """Some seeds of one point, in all variants: what is run in one go. ``number`` is the point's."""

    number: int
    point: Point
    seeds: tuple[int, ...]


def blocks_of(sweep: Sweep, slots: int) -> list[Block]:
    """The runs in blocks: few enough that a point is not loaded for each run, enough that all slots have work to the end."""
    points = sweep.points()
    wanted = max(slots * _BLOCKS_PER_SLOT // len(points), 1)
    size = min(max(-(-len(sweep.seeds) // wanted), 1), _MOST_SEEDS)
    return [
        Block(number, point, sweep.seeds[start : start + size])
        for number, point in enumerate(points)
        for start in range(0, len(sweep.seeds), size)
    ]


def require_axes_that_fit(sweep: Sweep) -> None:
    """Try each parameter alone: one that fits the scenario with none of its values is a mistake, not a result.

    Raises:
        UsageError: there is such a parameter, in the words of its first value.
    """
    for axis in sweep.axes:
        first: KgctlError | None = None
        for value in axis.values:
            try:
                load(sweep.tree, settings=(*sweep.fixed, f"{axis.path}={value}"))
                break
            except KgctlError as error:
                first = first or error
        else:
            assert first is not None
            raise first
