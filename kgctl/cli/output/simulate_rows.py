"""Rows of a simulation: one a metric and variant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.cli.output.report import Column, Row

if TYPE_CHECKING:
    from kgctl.simulate.report.view import Outcome

COLUMNS = (Column("variant"), Column("metric"), Column("min"), Column("median"), Column("p95"), Column("max"))


def rows_of(outcome: Outcome) -> Sequence[Row]:
    """Every metric of every variant over the seeds."""
    return [
        {
            "variant": name,
            "metric": metric,
            "min": _number(spread.minimum),
            "median": _number(spread.median),
            "p95": _number(spread.p95),
            "max": _number(spread.maximum),
        }
        for name, variant in outcome.variants.items()
        for metric, spread in variant.metrics.items()
    ]


def _number(value: float) -> int | float | None:
    if not math.isfinite(value):
        return None
    rounded = round(value, 9)
    return int(rounded) if rounded == int(rounded) else rounded
