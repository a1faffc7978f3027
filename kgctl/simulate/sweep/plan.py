"""A sweep: the points of its grid, the runs of a block, and one row for each run, whatever comes of it.

A row says what the run was, what came of it, and how to see it again if that was not good.
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from math import prod
from typing import Any

from kgctl import __version__
from kgctl.errors import InvariantViolation, KgctlError, UsageError
from kgctl.model.values import frozen, frozen_in_order
from kgctl.simulate.batch.judge import Judge, RunValues, let_through
from kgctl.simulate.batch.outcome import is_better_higher, number, spread_of
from kgctl.simulate.batch.plan import run_task, task_of
from kgctl.simulate.metrics.troubles import Trouble
from kgctl.simulate.scenario.checks import CheckKind, FilterNames
from kgctl.simulate.scenario.expressions import Metric, Value, key_of, metrics_of
from kgctl.simulate.scenario.load import OF_THE_WHOLE_FILE, LoadedFile, load, metric_of
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.scenario.patches import MOST_VALUES, split_path, split_values, values_of
from kgctl.simulate.scenario.vocabulary import TROUBLES
from kgctl.yaml_files import FileError, Tree, read_yaml

Point = tuple[str, ...]
"""One value for each axis, in the order of the axes."""


@frozen_in_order
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
        except (UsageError, ValueError) as error:
            problems.append(tree.problem((*at, path), str(error)))
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


@frozen
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
        return points_of(self.axes)

    def run_count(self) -> int:
        return len(self.points()) * len(self.variant_names) * len(self.seeds)

    def loaded(self, point: Point) -> LoadedFile:
        """The scenario at a point.

        Raises:
            UsageError: these parameters make no scenario.
        """
        variants = self.variant_names if self.has_variants else ()
        return load(self.tree, settings=(*self.fixed, *settings_at(self.axes, point)), variants=variants, checks=self.checks)


@frozen_in_order
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


Cell = str | int | float | None

BEFORE = ("variant", "seed", "digest")
AFTER = (
    "events",
    "expectations_passed",
    "expectations_failed",
    "failed_checks",
    "trouble",
    "stopped",
    "error_code",
    "error",
    "replay",
)
WHOLE = ("seed", "events", "expectations_passed", "expectations_failed")
METRIC_NAMES = tuple(kind.name for kind in metric_kinds().values() if kind.is_summary)
"""The metrics that every row has, in the order of results; those that are asked for with filters follow."""


@frozen
class RunRow:
    """A run. ``number``: its point's. ``error`` is None for a run that went to its end, whatever its expectations say.

    ``failed_checks``: the expectations that did not hold, joined by ``; ``. ``troubles``: what went wrong unasked, with who, by
    which rule and when; ``allowed``: what did so and no expectation decides. ``unasked``: the expectations that were not asked.
    ``left_out``: what never began, and why.
    ``replay``: the command that runs it again, for one that failed, stopped early or broke an expectation.
    """

    number: int
    variant: str
    seed: int
    digest: str | None = None
    metrics: Mapping[str, Cell] = field(default_factory=dict)
    events: int | None = None
    expectations_passed: int | None = None
    expectations_failed: int | None = None
    failed_checks: str | None = None
    troubles: tuple[Trouble, ...] = ()
    allowed: tuple[Trouble, ...] = ()
    unasked: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    stopped: str | None = None
    error_code: str | None = None
    error: str | None = None
    replay: str | None = None

    @property
    def trouble(self) -> str | None:
        """Return the first thing that went wrong unasked."""
        return self.troubles[0].text if self.troubles else None


class RowLayout:
    """The columns of a sweep: parameters, the run's name, metrics, and what came of it."""

    def __init__(self, sweep: Sweep) -> None:
        asked = (key_of(metric) for metric in sweep.metrics)
        self.metrics = tuple(dict.fromkeys((*METRIC_NAMES, *asked)))
        taken = {*BEFORE, *AFTER, *self.metrics}
        self.parameters = tuple(f"param.{axis.path}" if axis.path in taken else axis.path for axis in sweep.axes)
        self._values = [typed(axis) for axis in sweep.axes]
        self._points = sweep.points()
        self._order = {name: place for place, name in enumerate(sweep.variant_names)}

    def kinds(self) -> dict[str, type]:
        """Every column in its order, with what its values are where there are any."""
        parameters = {name: type(next(iter(values.values()))) for name, values in zip(self.parameters, self._values, strict=True)}
        before, after = ({name: int if name in WHOLE else str for name in names} for names in (BEFORE, AFTER))
        return {**parameters, **before, **dict.fromkeys(self.metrics, float), **after}

    def ordered(self, rows: Iterable[RunRow]) -> list[RunRow]:
        """The rows by point, variant and seed: the same for the same runs, whoever ran them."""
        return sorted(rows, key=lambda row: (row.number, self._order[row.variant], row.seed))

    def records(self, rows: Iterable[RunRow]) -> list[dict[str, Cell]]:
        return [self._record(row) for row in rows]

    def point(self, number: int) -> dict[str, Cell]:
        texts = zip(self.parameters, self._values, self._points[number], strict=True)
        return {name: values[text] for name, values, text in texts}

    def _record(self, row: RunRow) -> dict[str, Cell]:
        metrics = {name: row.metrics.get(name) for name in self.metrics}
        before, after = ({name: getattr(row, name) for name in names} for names in (BEFORE, AFTER))
        return {**self.point(row.number), **before, **metrics, **after}


def digest_of_rows(rows: Iterable[RunRow]) -> str:
    """One digest of all event logs, of rows in their order."""
    lines = "".join(f"{row.number}\t{row.variant}\t{row.seed}\t{row.digest or row.error_code}\n" for row in rows)
    return hashlib.sha256(lines.encode()).hexdigest()


DEFAULT_METRICS = ("rebalances", "unavailable", "max_gap")
STATISTICS = ("median", "p95", "max")


def checked_metrics(texts: Sequence[str], loaded: LoadedFile) -> tuple[Metric, ...]:
    """The metrics to sum up: these, else those of the file's ``report:``, else the usual ones and those that it expects
    something of.

    Raises:
        UsageError: there is no such metric.
    """
    around = FilterNames.of([variant.scenario for variant in loaded.variants])
    try:
        named = tuple(dict.fromkeys(metric_of(text, around) for text in texts))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return named or loaded.report.y or tuple(dict.fromkeys((*map(Metric, DEFAULT_METRICS), *_expected(loaded))))


def _expected(loaded: LoadedFile) -> Iterator[Metric]:
    """The numbers that checks of finished runs look at, whatever the variant."""
    for check in loaded.checks:
        for metric in metrics_of(check.node) if check.kind is CheckKind.CHECK else ():
            kind = metric_kinds()[metric.name]
            if kind.unit.symbol is not None:
                yield replace(metric, variant=None, at=0)


def summary_columns(sweep: Sweep, metrics: Sequence[str]) -> list[str]:
    figures = [f"{name}_{statistic}" for name in metrics for statistic in STATISTICS]
    variant = ["variant"] if sweep.has_variants else []
    return [*RowLayout(sweep).parameters, *variant, "runs", "errors", "failed", *figures, "worst_seed"]


def summary_rows(sweep: Sweep, rows: Iterable[RunRow], metrics: Sequence[str]) -> Iterator[dict[str, Cell]]:
    """A line for each point and variant that was run.

    ``runs``: how many; ``errors``: of them without a result; ``failed``: of the others, those with an expectation that did not
    hold. A figure is null where no run has that metric, and for "never". ``worst_seed``: see `worst_of`.
    """
    layout = RowLayout(sweep)
    order = {name: place for place, name in enumerate(sweep.variant_names)}
    ordered = sorted(rows, key=lambda row: (row.number, order[row.variant]))
    for (point, variant), group in groupby(ordered, key=lambda row: (row.number, row.variant)):
        line = {**layout.point(point), "variant": variant, **_line(list(group), metrics)}
        yield {name: line[name] for name in summary_columns(sweep, metrics)}


def _line(rows: Sequence[RunRow], metrics: Sequence[str]) -> Mapping[str, Cell]:
    counts = {"runs": len(rows), "errors": sum(row.error is not None for row in rows), "failed": sum(map(_has_failed, rows))}
    figures = {f"{name}_{key}": value for name in metrics for key, value in _figures(name, rows).items()}
    worst = worst_of(rows, metrics[0])
    return {**counts, **figures, "worst_seed": None if worst is None else worst.seed}


def worst_of(rows: Sequence[RunRow], metric: str) -> RunRow | None:
    """The run to look at: without a result, else with an expectation that failed, else where the metric is worst; None: all
    are alike."""
    sign = -1 if is_better_higher(metric) else 1

    def badness(row: RunRow) -> tuple[bool, int, float]:
        value = row.metrics.get(metric)
        return row.error is not None, row.expectations_failed or 0, sign * float(value) if isinstance(value, int | float) else 0.0

    ordered = sorted(rows, key=lambda row: (badness(row), -row.seed))
    return ordered[-1] if ordered and badness(ordered[0]) != badness(ordered[-1]) else None


def _has_failed(row: RunRow) -> bool:
    return bool(row.expectations_failed)


def _figures(name: str, rows: Sequence[RunRow]) -> dict[str, Cell]:
    values = [float(value) for row in rows if (value := row.metrics.get(name)) is not None and not isinstance(value, str)]
    if not values:
        return dict.fromkeys(STATISTICS)
    spread = spread_of(name, values)
    return {"median": rounded(spread.median), "p95": rounded(spread.p95), "max": rounded(spread.maximum)}


def rounded(value: float) -> int | float | None:
    """To four digits, and no whole ones left out: ``0.01235``, ``707.7``, ``162873``; null for never."""
    if not value or not math.isfinite(value):
        return number(value)
    return number(round(value, max(3 - math.floor(math.log10(abs(value))), 0)))


INTERNAL_ERROR = "INTERNAL_ERROR"


def run_block(sweep: Sweep, block: Block) -> list[RunRow]:
    """A row for each variant and seed. Never raises what a scenario or a bug of the simulator can cause."""
    try:
        loaded = sweep.loaded(block.point)
    except KgctlError as error:
        return failed_rows(sweep, block, (error.code, error.message))
    return [row for seed in block.seeds for row in _run_seed(sweep, block, loaded, seed)]


def failed_rows(sweep: Sweep, block: Block, why: tuple[str, str]) -> list[RunRow]:
    """The rows of a block of which nothing could be run. ``why``: a code and a message."""
    return [_failed(sweep, block, name, seed, why) for seed in block.seeds for name in sweep.variant_names]


def _run_seed(sweep: Sweep, block: Block, loaded: LoadedFile, seed: int) -> list[RunRow]:
    found: dict[str, RunValues | RunRow] = {}
    for variant in loaded.variants:
        task = replace(task_of(loaded, variant, seed), is_lone=not sweep.has_variants, metrics=sweep.metrics)
        try:
            values = run_task(task)
            assert values is not None
            found[variant.name] = values
        except KgctlError as error:
            found[variant.name] = _failed(sweep, block, variant.name, seed, (error.code, error.message))
        except Exception as error:  # noqa: BLE001 - one run that breaks the simulator must not end thousands
            text = " ".join(f"{type(error).__name__}: {error}".split())
            found[variant.name] = _failed(sweep, block, variant.name, seed, (INTERNAL_ERROR, text))
    judged = _judged(loaded, {name: one for name, one in found.items() if isinstance(one, RunValues)}, seed)
    return [one if isinstance(one, RunRow) else _row(sweep, block, one, judged[name]) for name, one in found.items()]


_CHECK_OF = {kind.name: kind.check for kind in TROUBLES.values()}


@dataclass(slots=True)
class Verdicts:
    """How many expectations held for one seed of a variant alone; which did not, but for mere warnings, what went wrong unasked
    among them; of which it was not asked; and what went wrong unasked and is let through."""

    held: int = 0
    failed: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    allowed: list[Trouble] = field(default_factory=list)


def _judged(loaded: LoadedFile, values: Mapping[str, RunValues], seed: int) -> dict[str, Verdicts]:
    settings = {variant.name: variant.settings for variant in loaded.variants}
    left_out = [check.shown for check in loaded.checks if not loaded.can_ask(check)]
    found = {name: Verdicts(0, [_CHECK_OF[each.kind] for each in one.troubles], [*left_out]) for name, one in values.items()}
    for name, one in values.items():
        found[name].allowed += let_through(one, loaded.checks)
    if not values:
        return found
    for verdict in Judge({name: {seed: one} for name, one in values.items()}, settings, [seed]).verdicts(loaded.checks):
        mine = found[verdict.variant]
        if not verdict.is_asked:
            mine.unasked.append(verdict.check.shown)
        elif verdict.passed:
            mine.held += 1
        elif verdict.check.severity == "fail":
            mine.failed.append(verdict.check.shown)
    return found


def _row(sweep: Sweep, block: Block, values: RunValues, verdicts: Verdicts) -> RunRow:
    is_fine = not verdicts.failed and not values.stopped
    return RunRow(
        number=block.number,
        variant=values.variant,
        seed=values.seed,
        digest=values.digest,
        metrics=_numbers(values.metrics) | _numbers({name: values.named.get(name) for name in map(key_of, sweep.metrics)}),
        events=values.events,
        expectations_passed=verdicts.held,
        expectations_failed=len(verdicts.failed),
        failed_checks="; ".join(verdicts.failed) or None,
        unasked=tuple(verdicts.unasked),
        troubles=values.troubles,
        allowed=tuple(verdicts.allowed),
        left_out=values.left_out,
        stopped=values.stopped or None,
        replay=None if is_fine else replay_of(sweep, block.point, values.variant, values.seed),
    )


def _numbers(values: Mapping[str, Value]) -> dict[str, int | float | None]:
    return {name: number(value) if isinstance(value, int | float) else None for name, value in values.items()}


def _failed(sweep: Sweep, block: Block, variant: str, seed: int, why: tuple[str, str]) -> RunRow:
    replay = replay_of(sweep, block.point, variant, seed)
    return RunRow(number=block.number, variant=variant, seed=seed, error_code=why[0], error=why[1], replay=replay)


def replay_of(sweep: Sweep, point: Point, variant: str, seed: int) -> str:
    settings = [word for each in (*sweep.fixed, *settings_at(sweep.axes, point)) for word in ("--set", each)]
    named = ["--variant", variant] if sweep.has_variants else []
    words = [*sweep.words, *settings, *named, "--seed", str(seed)]
    return f"{' '.join(map(shlex.quote, words))}   # kgctl {__version__}"


def chosen(rows: Sequence[RunRow], share: float) -> list[RunRow]:
    """Rows spread evenly over all that were run to their end; at least one, unless the share is 0."""
    complete = [row for row in rows if row.digest is not None]
    count = min(math.ceil(len(complete) * share), len(complete))
    return [complete[place * len(complete) // count] for place in range(count)]


def differences(sweep: Sweep, rows: Sequence[RunRow]) -> Iterator[InvariantViolation | None]:
    """Runs each of ``rows`` again; gives None, or what is wrong where the second run differs."""
    points = sweep.points()
    for row in rows:
        point = points[row.number]
        again = {one.variant: one for one in run_block(sweep, Block(row.number, point, (row.seed,)))}[row.variant]
        if (again.digest, again.metrics) == (row.digest, row.metrics):
            yield None
            continue
        replay = replay_of(sweep, point, row.variant, row.seed)
        yield InvariantViolation(f"two runs of one seed differ, digests {row.digest} and {again.digest}: {replay}")
