"""Rules about what a sweep shows."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.values.parameters import values_of

_OF_RECORDS = frozenset(
    {
        "lag",
        "lag_peak",
        "backlog",
        "backlog_peak",
        "lag_area",
        "lag_age",
        "latency_mean",
        "latency_p99",
        "drain_time",
        "processed",
        "duplicates",
        "duplicates_bound",
        "lost",
        "r_score",
    }
)


def one_value_along(context: Context) -> Iterator[Finding]:
    """A chart along a parameter that never changes is a dot."""
    path = context.report.x
    if path is not None and len(values_of(context.variant.tree.data["sweep"][path])) == 1:
        yield Finding(("report", "x"), f"{path} has one value: there is nothing to see along it")


def records_without_traffic(context: Context) -> Iterator[Finding]:
    """Metrics of records where none are written."""
    if context.writes or any(path.startswith("traffic") for path in context.variant.tree.data.get("sweep") or ()):
        return
    for metric in context.report.y:
        if metric.name in _OF_RECORDS:
            yield Finding(("report", "y"), f"there is no traffic: {metric.name} has nothing to show")
            return
