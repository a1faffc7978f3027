"""The machine-readable result: numbers are numbers, null is what was not there; the same runs give the same bytes."""

from __future__ import annotations

import math
from typing import Any

from kgctl.simulate.report.view import Expectation, Outcome, Spread, VariantOutcome

_DIGITS = 9


def result_of(outcome: Outcome) -> dict[str, Any]:
    """``data`` of ``simulate run -o json``."""
    return {
        "scenario": outcome.scenario,
        "kgctl": outcome.kgctl,
        "digest": outcome.digest,
        "seeds": list(outcome.seeds),
        "variants": {name: _variant(variant) for name, variant in outcome.variants.items()},
        "expectations": [_expectation(each) for each in outcome.expectations],
    }


def _variant(variant: VariantOutcome) -> dict[str, Any]:
    assignment = {
        member: {topic: list(partitions) for topic, partitions in topics.items()}
        for member, topics in variant.final_assignment.items()
    }
    return {"metrics": {name: _spread(each) for name, each in variant.metrics.items()}, "final_assignment": assignment}


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "min": number(spread.minimum),
        "median": number(spread.median),
        "p95": number(spread.p95),
        "max": number(spread.maximum),
        "per_seed": [number(value) for value in spread.per_seed],
    }


def _expectation(each: Expectation) -> dict[str, Any]:
    observed = each.observed
    if isinstance(observed, int | float) and not isinstance(observed, bool):
        observed = number(observed)
    return {
        "check": each.check,
        "variant": each.variant,
        "passed": each.passed,
        "observed": observed,
        "seed": each.seed,
        "severity": each.severity,
        "replay": each.replay or None,
    }


def number(value: float) -> int | float | None:
    """A JSON number: whole where it is whole, else of at most nine decimals; null for never and for nothing to measure."""
    if not math.isfinite(value):
        return None
    rounded = round(value, _DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded
