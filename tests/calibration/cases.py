"""The scenarios of this folder, what was measured of them, and what the simulation says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.sources import read_source
from tests.calibration.figures import NAMES, Figures

FOLDER = Path(__file__).parent
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
    summaries = [run(case.scenario, seed).summary() for seed in range(first, first + seeds)]
    return [{name: float(summary[name] or 0) for name in NAMES} for summary in summaries]


def spread(values: Sequence[Figures]) -> dict[str, tuple[float, float, float]]:
    """For each metric the smallest, the median and the largest value."""
    if not values:
        return {}
    ordered = {name: sorted(one[name] for one in values) for name in NAMES}
    return {name: (found[0], median(found), found[-1]) for name, found in ordered.items()}
