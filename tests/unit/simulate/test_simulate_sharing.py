"""What Java's share consumers did with Apache Kafka 4.3.1 is what simulated ones do.

The figures are in tests/calibration/sharing.json; ``python -m tests.calibration.sharing --save`` measures again.
"""

from __future__ import annotations

import pytest

from tests.calibration.sharing import NAMES, cases, measured, simulated

SLACK = {"acknowledged": (1.03, 20), "lag": (1.1, 60), "duplicates": (1.2, 25), "refused": (1.2, 25), "redelivered": (1.05, 5)}
"""Figure -> by what factor, and by how much on top, a run in real time may lie outside."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.deep) for name in cases()])
def test_real_share_groups_are_within_what_is_simulated(name: str) -> None:
    ours = simulated(cases()[name], range(1, 21))
    for figure in NAMES[:-1]:
        factor, more = SLACK.get(figure, (1.0, 1))
        low, high = min(each[figure] for each in ours), max(each[figure] for each in ours)
        real = sorted(each[figure] for each in measured()[name])[1]  # the median of three
        assert low / factor - more <= real <= high * factor + more, (figure, real, low, high)


def test_each_case_was_played_three_times() -> None:
    assert {name: len(found) for name, found in measured().items()} == dict.fromkeys(cases(), 3)
