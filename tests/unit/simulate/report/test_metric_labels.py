"""How figures are shown."""

from __future__ import annotations

import math

import pytest

from kgctl.simulate.report.outcome import COUNT, PARTITION_SECONDS, Look, Observed, duration, look_of, show


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        ("rebalances", 80, "80"),
        ("rebalances", 0.0, "0"),
        ("unavailable", 7689.4, "7,689"),
        ("unavailable", 12.345, "12.3"),
        ("unavailable(cause boot)", 0.01234, "0.0123"),
        ("max_gap", 3.2000001, "3.2s"),
        ("max_gap", 188.0, "188s"),
        ("max_gap", 0.0512, "0.051s"),
        ("max_gap", 0.00002, "<0.001s"),
        ("max_gap(app/3)", 0, "0s"),
        ("time_to_stable", math.inf, "never"),
        ("lag_peak", math.inf, "infinite"),
        ("jain", 0.99871, "0.9987"),
        ("moves", math.nan, "-"),
        ("moves", None, "-"),
        ("state", "Stable", "Stable"),
        ("owners(partition)", True, "true"),
    ],
)
def test_value_is_shown_with_its_metrics_unit(metric: str, value: Observed, shown: str) -> None:
    assert show(metric, value) == shown


def test_unknown_metric_is_shown_under_its_own_name() -> None:
    assert look_of("errors(INVALID_CONFIG)") == Look("errors(INVALID_CONFIG)", COUNT)
    assert look_of("unavailable(cause boot)") == Look("unavailable(cause boot)", PARTITION_SECONDS)


@pytest.mark.parametrize(
    ("us", "shown"),
    [(0, "0s"), (250_000, "0.25s"), (-5_000_000, "-5s"), (90_000_000, "1m 30s"), (7_200_000_000, "2h"), (3_660_000_000, "1h 1m")],
)
def test_virtual_time_is_shown_in_hours_minutes_and_seconds(us: int, shown: str) -> None:
    assert duration(us) == shown
