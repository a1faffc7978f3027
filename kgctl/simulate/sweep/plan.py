"""The parameters of a sweep and the points of their grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from kgctl.errors import KgctlError, UsageError
from kgctl.simulate.scenario.expressions import Metric
from kgctl.simulate.scenario.load import OF_THE_WHOLE_FILE, LoadedFile, load
from kgctl.simulate.scenario.patches import MOST_VALUES, split_path, split_values, values_of
from kgctl.yaml_files import FileError, Problem, Tree, read_yaml

Point = tuple[str, ...]
"""One value for each axis, in the order of the axes."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter: a dotted path as ``--set`` has it, and its values in the order given, as text."""

    path: str
    values: tuple[str, ...]


def axes_of(tree: Tree, grid: Tree | None, assignments: Sequence[str]) -> tuple[tuple[Axis, ...], tuple[str, ...]]:
    """The axes of a sweep, and the settings that stay the same in all of it.

    The file's ``sweep:``, then the grid file, then ``--set``: a later one replaces the values of the same path, and one value
    alone fixes it.

    Raises:
        UsageError: a path is no path, or a value no value; of a file, with the place.
    """
    found: dict[str, tuple[str, ...]] = {}
    raw = tree.data.get("sweep") if isinstance(tree.data, dict) else None
    if raw is not None:
        found |= _of_mapping(tree, raw, ("sweep",))
    if grid is not None:
        found |= _of_mapping(grid, grid.data, ())
    fixed: dict[str, str] = {}
    for assignment in assignments:
        path, values = _assigned(assignment)
        found.pop(path, None)
        if len(values) == 1:
            fixed[path] = assignment
        else:
            found[path] = values
    axes = tuple(Axis(path, values) for path, values in found.items())
    if (size := prod(len(axis.values) for axis in axes)) > MOST_VALUES:
        raise UsageError(f"the grid has {size:,} points; a sweep has at most {MOST_VALUES:,}")
    return axes, tuple(fixed.values())


def points_of(axes: Sequence[Axis]) -> list[Point]:
    """Every combination; the last axis changes first. One empty point where there is no axis."""
    return list(product(*(axis.values for axis in axes)))


def settings_at(axes: Sequence[Axis], point: Point) -> list[str]:
    """Return what ``--set`` takes to get this point."""
    return [f"{axis.path}={value}" for axis, value in zip(axes, point, strict=True)]


def typed(axis: Axis) -> Mapping[str, str | int | float]:
    """The values as a table has them: whole numbers or numbers where all are, else text."""
    read = {value: _plain(value) for value in axis.values}
    for kind in (int, float):
        if all(isinstance(value, int | kind) and not isinstance(value, bool) for value in read.values()):
            return {text: kind(value) for text, value in read.items()}
    return {text: text for text in axis.values}


def _plain(text: str) -> Any:
    try:
        return read_yaml(text, "").data
    except FileError:
        return text


def _of_mapping(tree: Tree, raw: Any, at: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    if not isinstance(raw, dict):
        raise tree.error(at, "a grid is a mapping of paths to lists: group.config.session.timeout.ms: [10s, 45s]")
    problems, found = [], {}
    for path, data in raw.items():
        try:
            _check_path(path)
            found[path] = _once(values_of(data))
        except UsageError as error:
            problems.append(Problem(tree.location((*at, path)), (*at, path), error.message))
        except ValueError as error:
            problems.append(Problem(tree.location((*at, path)), (*at, path), str(error)))
    if problems:
        raise FileError(problems)
    return found


def _assigned(assignment: str) -> tuple[str, tuple[str, ...]]:
    path, equals, text = assignment.partition("=")
    path = path.strip()
    if not equals:
        raise UsageError(f"--set takes PATH=VALUE or PATH=VALUE,VALUE,..., not {assignment!r}")
    _check_path(path)
    try:
        return path, _once(split_values(text))
    except ValueError as error:
        raise UsageError(f"--set {assignment}: {error}") from None


def _check_path(path: str) -> None:
    steps = split_path(path)
    if steps[0] == "variants" and len(steps) > 2:
        return
    if steps[0] in OF_THE_WHOLE_FILE:
        raise UsageError(f"{path} is no parameter: it stands for the whole file")


def _once(values: Iterator[str] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


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
        """Return the points of the grid."""
        return points_of(self.axes)

    def run_count(self) -> int:
        """Return how many runs the sweep has."""
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
