"""The charts of a page, which `charts.yaml` has as Vega-Lite, and their data.

Over time, on one axis: what the scenario did, the partitions that nobody consumed, by cause, the records that wait, the group's
generation, pods, and what each step of a rollout cost. Below: a lane for each partition that was without a consumer.
``page.js`` fills in data and sizes for the variant that is chosen; it leaves out the charts that have no data.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from kgctl.charts.page import ALARM, DARK, SCHEMA, charts, config
from kgctl.simulate.report.outcome import Lane, Mark, RunPicture
from kgctl.simulate.report.text import worst_lanes
from kgctl.simulate.scenario.vocabulary import GapCause

MOST_LANES = 100
"""More than that nobody looks through one by one."""
COLUMNS = 1_000
"""About as many as a chart has on a screen."""

_NO_CAUSE = "unknown"
_PALETTE = (
    *("#4c78a8", "#f58518", "#b279a2", "#72b7b2", "#9d755d", "#d67195"),
    *("#eeca3b", "#54a24b", "#8a94a3", "#6b4fa0", "#1f9e89"),
)
COLORS: Mapping[str, str] = {**dict(zip((cause.label for cause in GapCause), _PALETTE, strict=True)), _NO_CAUSE: "#59616d"}
"""Cause -> its colour, in every chart."""

Counts: TypeAlias = "list[tuple[int, Counter[str]]]"
"""From each time on, how many partitions nobody consumes, by cause."""


# --- data


def without_consumer(lanes: Iterable[Lane], from_us: int, to_us: int) -> Counts:
    """How many of the partitions nobody consumes, from ``from_us`` and each time on at which that changes."""
    changes: dict[int, Counter[str]] = {from_us: Counter()}
    for lane in lanes:
        for each in lane.segments:
            first, last = max(each.from_us, from_us), min(each.to_us, to_us)
            if not each.owners and first < last:
                changes.setdefault(first, Counter())[each.cause or _NO_CAUSE] += 1
                changes.setdefault(last, Counter())[each.cause or _NO_CAUSE] -= 1
    found: Counts = []
    now: Counter[str] = Counter()
    for at_us in sorted(changes):
        now = now.copy()
        for cause, more in changes[at_us].items():
            now[cause] += more
        if at_us < to_us:
            found.append((at_us, +now))
    return found


def in_columns(counts: Counts, to_us: int) -> Counts:
    """The same by stretches as wide as a column of the screen: of each the moment with most partitions.

    A gap of a thousandth of a second is seen so, and as high as it was.
    """
    begin_us = counts[0][0]
    width_us = max(-(-(to_us - begin_us) // COLUMNS), 1)
    found: dict[int, Counter[str]] = {}
    for (at_us, now), (next_us, _) in pairwise([*counts, (to_us, Counter[str]())]):
        for column in range((at_us - begin_us) // width_us, (next_us - 1 - begin_us) // width_us + 1):
            if column not in found or now.total() > found[column].total():
                found[column] = now
    columns = [(begin_us + column * width_us, now) for column, now in found.items()]
    return columns[:1] + [each for before, each in pairwise(columns) if each[1] != before[1]]


def costs(counts: Counts, steps: Sequence[Mark], to_us: int) -> list[tuple[Mark, int, Counter[str]]]:
    """Each step, when the next one began, and its partition-microseconds without a consumer by cause; nothing for one alone."""
    if len(steps) < 2:
        return []
    begins = [step.at_us for step in steps]
    found: list[Counter[str]] = [Counter() for _ in steps]
    for (at_us, now), (next_us, _) in pairwise([*counts, (to_us, Counter[str]())]):
        for place in range(max(bisect_right(begins, at_us) - 1, 0), bisect_right(begins, next_us - 1)):
            last_us = begins[place + 1] if place + 1 < len(begins) else to_us
            length_us = min(next_us, last_us) - max(at_us, begins[place])
            for cause, partitions in now.items():
                found[place][cause] += partitions * max(length_us, 0)
    ends = [*begins[1:], to_us]
    return [(step, end, spent) for step, end, spent in zip(steps, ends, found, strict=True) if step.at_us < end]


def drawn_lanes(picture: RunPicture) -> tuple[list[Lane], int]:
    """The lanes that have a gap, or two consumers at once, the worst where they are very many; how many more there are."""
    uneven = tuple(lane for lane in picture.lanes if any(len(each.owners) != 1 for each in lane.segments))
    found = worst_lanes(RunPicture(picture.seed, picture.from_us, picture.to_us, uneven), MOST_LANES)
    return found, len(uneven) - len(found)


# --- charts


def over_time() -> dict[str, Any]:
    """The charts over time. Dragging and the wheel move all of them; a double click goes back."""
    return _figure("events", "gone", "lag", "generations", "replicas", "steps")


def lanes() -> dict[str, Any]:
    """What became of the partitions that had a gap, beside the events."""
    return _figure("events", "lanes")


def _figure(*names: str) -> dict[str, Any]:
    known = _charts()
    return {
        "$schema": SCHEMA,
        "vconcat": [known[name] for name in names],
        "spacing": 6,
        "params": [{"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales", "views": []}],
        "resolve": {"scale": {"color": "independent"}},
        "config": config(),
    }


def _charts() -> dict[str, Any]:
    colors = {"causes": json.dumps([*COLORS]), "colors": json.dumps([*COLORS.values()])}
    return charts(__package__, alarm=ALARM, dark=DARK, **colors)
