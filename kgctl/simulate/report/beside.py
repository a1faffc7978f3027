"""What was simulated and what was measured with real clients, side by side: the rows, and how reports show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kgctl.simulate.report.metric_labels import LOOKS, PARTITION_SECONDS, SECONDS, look_of, show
from kgctl.simulate.report.outcome import Measured, Outcome, Spread

_SLACK = 0.1
"""A value that is by a tenth of the range's end outside counts as inside,"""
_RESOLUTION_S = 0.25
"""and so does one that is less outside than a real group can be looked at."""


class Place(StrEnum):
    """Where the measured median lies: within what the seeds span, or outside of it."""

    INSIDE = "inside"
    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True, slots=True)
class Beside:
    """One metric of one variant, simulated and measured."""

    variant: str
    metric: str
    simulated: Spread
    measured: Spread
    place: Place


def beside(outcome: Outcome) -> list[Beside]:
    """Every metric that both have."""
    measured = outcome.measured
    if measured is None:
        return []
    return [
        Beside(name, metric, spread, real.metrics[metric], _place(metric, spread, real.metrics[metric].median))
        for name, variant in outcome.variants.items()
        if (real := measured.variants.get(name)) is not None
        for metric, spread in variant.metrics.items()
        if metric in real.metrics
    ]


def _place(metric: str, simulated: Spread, value: float) -> Place:
    unit = look_of(metric).unit
    slack = _RESOLUTION_S if unit in (SECONDS, PARTITION_SECONDS) else 0.0
    if value < simulated.minimum and not _near(value, simulated.minimum, slack):
        return Place.BELOW
    if value > simulated.maximum and not _near(value, simulated.maximum, slack):
        return Place.ABOVE
    return Place.INSIDE


def _near(value: float, end: float, slack: float) -> bool:
    return math.isfinite(value) and math.isfinite(end) and abs(value - end) <= max(_SLACK * abs(end), slack)


def beside_lines(outcome: Outcome) -> list[str]:
    """The table of a terminal, a block for each variant: the headline metrics, and what lies outside."""
    measured = outcome.measured
    if measured is None:
        return []
    lines = ["", _title(measured)]
    for name in outcome.variants:
        rows = beside_cells(outcome, name)
        widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
        for row in rows:
            cells = [f"{row[0]:<{widths[0]}}", f"{row[1]:>{widths[1]}}", f"{row[2]:>{widths[2]}}", row[3]]
            lines.append("   ".join(cells).rstrip())
    return lines


def _title(measured: Measured) -> str:
    runs = f"{measured.runs} plays" if measured.runs > 1 else "1 play"
    return f"beside real clients ({measured.client}) on {measured.cluster}, {runs}:"


def beside_cells(outcome: Outcome, variant: str) -> list[tuple[str, str, str, str]]:
    """The rows of a variant as texts: metric, simulated median with its range, measured median, where that lies."""
    rows = [each for each in beside(outcome) if each.variant == variant]
    shown = [each for each in rows if each.place is not Place.INSIDE or _is_headline(each.metric)]
    head = ("" if variant == "default" else variant, "simulated", "measured", "")
    return [head, *((look_of(each.metric).label, _range(each), _measured(each), _word(each)) for each in shown)]


def _is_headline(metric: str) -> bool:
    return metric in LOOKS and LOOKS[metric].headline


def _range(each: Beside) -> str:
    spread = each.simulated
    low, middle, high = (show(each.metric, value) for value in (spread.minimum, spread.median, spread.maximum))
    return middle if low == high else f"{middle} ({low} to {high})"


def _measured(each: Beside) -> str:
    spread = each.measured
    low, middle, high = (show(each.metric, value) for value in (spread.minimum, spread.median, spread.maximum))
    return middle if low == high else f"{middle} ({low} to {high})"


def _word(each: Beside) -> str:
    return "" if each.place is Place.INSIDE else f"outside, {each.place}"


def summaries(outcome: Outcome) -> list[str]:
    """A sentence for each variant: how many metrics lie inside, and which do not."""
    found = []
    rows = beside(outcome)
    for name in outcome.variants:
        mine = [each for each in rows if each.variant == name]
        outside = [each.metric for each in mine if each.place is not Place.INSIDE]
        if mine:
            start = f"{name}: " if len(outcome.variants) > 1 else ""
            rest = f"; outside: {', '.join(outside)}" if outside else ""
            found.append(
                f"{start}{len(mine) - len(outside)} of {len(mine)} measured metrics lie within the simulated range{rest}"
            )
    return found


def title(outcome: Outcome) -> str:
    """A heading for the table; "" where nothing was measured."""
    return "" if outcome.measured is None else _title(outcome.measured).rstrip(":").capitalize()


def tables(outcome: Outcome) -> Sequence[list[tuple[str, str, str, str]]]:
    """The rows of each variant, headings first."""
    return [rows for name in outcome.variants if len(rows := beside_cells(outcome, name)) > 1]
