"""Kafka Streams 4.3.1 on Apache Kafka 4.3.1, three cases with both protocols, beside the simulation."""

from __future__ import annotations

from statistics import median

import pytest

from tests.calibration.streams.compare import MEASURED, METRICS, simulated, table
from tests.docs.pages import MANUAL

BUSY = frozenset({"scale-out:classic"})
"""What is measured there is the closing and opening of stores, which takes no time in a simulation."""


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_lies_within_the_seeds(name: str) -> None:
    model = simulated(name)
    for metric in METRICS:
        world = median(play[metric] for play in MEASURED[name])
        low, high = model[metric][0], model[metric][-1]
        room = 6 if name in BUSY else max(0.1 * world, 0.25)
        assert low - room <= world <= high + room, (name, metric, world, (low, high))


def test_the_page_has_the_figures() -> None:
    assert table() in (MANUAL / "streams.md").read_text(encoding="utf-8")
