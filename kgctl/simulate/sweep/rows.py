"""One row for each run: what it was, what came of it, and how to see it again if that was not good."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from kgctl.errors import UsageError
from kgctl.simulate.batch.judge import key_of
from kgctl.simulate.batch.outcome import BETTER_IF_HIGHER, number, spread_of
from kgctl.simulate.scenario.checks import Surroundings
from kgctl.simulate.scenario.expressions import Metric
from kgctl.simulate.scenario.load import LoadedFile, metric_of
from kgctl.simulate.scenario.vocabulary import METRIC_SPECS
from kgctl.simulate.sweep.plan import Sweep, typed

Value = str | int | float | None

BEFORE = ("variant", "seed", "digest")
AFTER = ("events", "expectations_passed", "expectations_failed", "failed_checks", "stopped", "error_code", "error", "replay")
WHOLE = ("seed", "events", "expectations_passed", "expectations_failed")
METRIC_NAMES = tuple(metric.name for metric in METRIC_SPECS.values() if metric.is_summary)
"""The metrics that every row has, in the order of results; those that are asked for with filters follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run. ``number``: its point's. ``error`` is None for a run that went to its end, whatever its expectations say.

    ``failed_checks``: the expectations that did not hold, joined by ``; ``. ``replay``: the command that runs it again, for one
    that failed, stopped early or broke an expectation.
    """

    number: int
    variant: str
    seed: int
    digest: str | None = None
    metrics: Mapping[str, Value] = field(default_factory=dict)
    events: int | None = None
    expectations_passed: int | None = None
    expectations_failed: int | None = None
    failed_checks: str | None = None
    stopped: str | None = None
    error_code: str | None = None
    error: str | None = None
    replay: str | None = None


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

    def records(self, rows: Iterable[RunRow]) -> list[dict[str, Value]]:
        """Return rows as the tables hold them."""
        return [self._record(row) for row in rows]

    def point(self, number: int) -> dict[str, Value]:
        """Return the parameters of a point."""
        texts = zip(self.parameters, self._values, self._points[number], strict=True)
        return {name: values[text] for name, values, text in texts}

    def _record(self, row: RunRow) -> dict[str, Value]:
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
    """The metrics to sum up: these, else those of the file's ``report:``, else the usual ones.

    Raises:
        UsageError: there is no such metric.
    """
    around = Surroundings.of([variant.scenario for variant in loaded.variants])
    try:
        named = tuple(dict.fromkeys(metric_of(text, around) for text in texts))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return named or loaded.report.y or tuple(map(Metric, DEFAULT_METRICS))


def summary_columns(sweep: Sweep, metrics: Sequence[str]) -> list[str]:
    """Return the columns of a summary."""
    figures = [f"{name}_{statistic}" for name in metrics for statistic in STATISTICS]
    variant = ["variant"] if sweep.has_variants else []
    return [*RowLayout(sweep).parameters, *variant, "runs", "errors", "failed", *figures, "worst_seed"]


def summary_rows(sweep: Sweep, rows: Iterable[RunRow], metrics: Sequence[str]) -> Iterator[dict[str, Value]]:
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


def _line(rows: Sequence[RunRow], metrics: Sequence[str]) -> Mapping[str, Value]:
    counts = {"runs": len(rows), "errors": sum(row.error is not None for row in rows), "failed": sum(map(_has_failed, rows))}
    figures = {f"{name}_{key}": value for name in metrics for key, value in _figures(name, rows).items()}
    worst = worst_of(rows, metrics[0])
    return {**counts, **figures, "worst_seed": None if worst is None else worst.seed}


def worst_of(rows: Sequence[RunRow], metric: str) -> RunRow | None:
    """The run to look at: without a result, else with an expectation that failed, else where the metric is worst; None: all
    are alike."""
    sign = -1 if metric in BETTER_IF_HIGHER else 1

    def badness(row: RunRow) -> tuple[bool, int, float]:
        value = row.metrics.get(metric)
        return row.error is not None, row.expectations_failed or 0, sign * float(value) if isinstance(value, int | float) else 0.0

    ordered = sorted(rows, key=lambda row: (badness(row), -row.seed))
    return ordered[-1] if ordered and badness(ordered[0]) != badness(ordered[-1]) else None


def _has_failed(row: RunRow) -> bool:
    return bool(row.expectations_failed)


def _figures(name: str, rows: Sequence[RunRow]) -> dict[str, Value]:
    values = [float(value) for row in rows if (value := row.metrics.get(name)) is not None and not isinstance(value, str)]
    if not values:
        return dict.fromkeys(STATISTICS)
    spread = spread_of(name, values)
    return {"median": number(spread.median), "p95": number(spread.p95), "max": number(spread.maximum)}
