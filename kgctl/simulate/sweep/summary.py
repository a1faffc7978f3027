"""What the rows of a sweep say together: a line for each point and variant, over its seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kgctl.errors import UsageError
from kgctl.simulate.runs.outcome import spread_of
from kgctl.simulate.runs.result_json import number
from kgctl.simulate.scenario.expressions.nodes import Metric
from kgctl.simulate.scenario.filter_checks import Surroundings
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.simulate.scenario.report import metric_of
from kgctl.simulate.sweep.plan import Sweep
from kgctl.simulate.sweep.rows import RowLayout, RunRow, Value

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
    """The columns of a summary."""
    figures = [f"{name}_{statistic}" for name in metrics for statistic in STATISTICS]
    variant = ["variant"] if sweep.has_variants else []
    return [*RowLayout(sweep).parameters, *variant, "runs", "errors", "failed", *figures]


def summary_rows(sweep: Sweep, rows: Iterable[RunRow], metrics: Sequence[str]) -> Iterator[dict[str, Value]]:
    """A line for each point and variant that was run.

    ``runs``: how many; ``errors``: of them without a result; ``failed``: of the others, those with an expectation that did not
    hold. A figure is null where no run has that metric, and for "never".
    """
    layout = RowLayout(sweep)
    order = {name: place for place, name in enumerate(sweep.variant_names)}
    ordered = sorted(rows, key=lambda row: (row.number, order[row.variant]))
    for (point, variant), group in groupby(ordered, key=lambda row: (row.number, row.variant)):
        line = {**layout.point(point), "variant": variant, **_line(list(group), metrics)}
        yield {name: line[name] for name in summary_columns(sweep, metrics)}


def _line(rows: Sequence[RunRow], metrics: Sequence[str]) -> Mapping[str, Value]:
    counts = {"runs": len(rows), "errors": sum(row.error is not None for row in rows), "failed": sum(map(_has_failed, rows))}
    return {**counts, **{f"{name}_{key}": value for name in metrics for key, value in _figures(name, rows).items()}}


def _has_failed(row: RunRow) -> bool:
    return bool(row.expectations_failed)


def _figures(name: str, rows: Sequence[RunRow]) -> dict[str, Value]:
    values = [float(value) for row in rows if (value := row.metrics.get(name)) is not None and not isinstance(value, str)]
    if not values:
        return dict.fromkeys(STATISTICS)
    spread = spread_of(name, values)
    return {"median": number(spread.median), "p95": number(spread.p95), "max": number(spread.maximum)}
