"""Rows of a simulation: one a metric and variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.cli.output.report import Column, Row
from kgctl.simulate.batch.outcome import number

if TYPE_CHECKING:
    from kgctl.simulate.report.outcome import Outcome

COLUMNS = (Column("variant"), Column("metric"), Column("min"), Column("median"), Column("p95"), Column("max"))


def rows_of(outcome: Outcome) -> Sequence[Row]:
    """Every metric of every variant over the seeds."""
    return [
        {
            "variant": name,
            "metric": metric,
            "min": number(spread.minimum),
            "median": number(spread.median),
            "p95": number(spread.p95),
            "max": number(spread.maximum),
        }
        for name, variant in outcome.variants.items()
        for metric, spread in variant.metrics.items()
    ]
