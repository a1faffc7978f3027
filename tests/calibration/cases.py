"""The scenarios of this folder, what was measured of them, and what the simulation says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.recording.owners import Gap
from kgctl.simulate.scenario.checks import NO_FILTERS
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import SECOND_US, Scenario
from kgctl.simulate.scenario.sources import read_source
from kgctl.simulate.scenario.vocabulary import GapCause
from tests.calibration.figures import NAMES, Figures

FOLDER = Path(__file__).parent
SILENT_US = SECOND_US // 4
"""An owner that leaves records unread for so long cannot read: a dozen more are written in it."""
MEASURED = FOLDER / "measured.json"
"""Case -> the figures of each time it was run with Apache Kafka 4.3.1 and kafka-clients 4.3.1."""


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of one scenario; ``name`` is ``scenario:variant``."""

    name: str
    question: str
    scenario: Scenario


@cache
def all_cases() -> tuple[Case, ...]:
    """All of them, by file and in the files' order."""
    files = [load(read_source(str(path))) for path in sorted((FOLDER / "scenarios").glob("*.yaml"))]
    return tuple(Case(f"{file.name}:{each.name}", file.question, each.scenario) for file in files for each in file.variants)


def measured() -> dict[str, list[Figures]]:
    """What was measured."""
    found: dict[str, list[Figures]] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    return found


def simulated(case: Case, seeds: int, first: int = 1) -> list[Figures]:
    """The metrics for each of so many seeds."""
    return [_as_seen(run(case.scenario, seed)) for seed in range(first, first + seeds)]


def _as_seen(result: RunResult) -> Figures:
    """The metrics as a play could measure them: that an owner cannot read for a short time is not seen from outside."""
    figures = {name: float(result.metric(name) or 0) for name in NAMES}
    gaps = list(Measured(result.recording).gaps(NO_FILTERS))
    seen = [gap.to_us - gap.from_us for gap in gaps if not _is_too_short(gap)]
    if len(seen) < len(gaps):
        figures |= {"unavailable": sum(seen) / SECOND_US, "max_gap": max(seen, default=0) / SECOND_US}
    return figures


def _is_too_short(gap: Gap) -> bool:
    return {cause for cause, _ in gap.causes} == {GapCause.BROKER} and gap.to_us - gap.from_us <= SILENT_US


def spread(values: Sequence[Figures]) -> dict[str, tuple[float, float, float]]:
    """For each metric the smallest, the median and the largest value."""
    if not values:
        return {}
    ordered = {name: sorted(one[name] for one in values) for name in NAMES}
    return {name: (found[0], median(found), found[-1]) for name, found in ordered.items()}
