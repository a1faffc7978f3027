"""Scaling policies, windows and targets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kgctl.simulate.scenario.autoscale import TARGETS, ScaleMetric, period, policies, policy, window

S = 1_000_000


@pytest.mark.parametrize(
    ("raw", "amount", "is_percent", "period_s"),
    [
        ("100% per 15s", 100, True, 15),
        ("1 per 2m", 1, False, 120),
        ("4 pods per 1m30s", 4, False, 90),
        ("900 % per 30m", 900, True, 1_800),
    ],
)
def test_a_policy_is_so_much_in_a_time(raw: str, amount: int, is_percent: bool, period_s: int) -> None:
    found = policy(raw)
    assert (found.amount, found.is_percent, found.period_us) == (amount, is_percent, period_s * S)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("fast", "'fast' is no scaling policy"),
        ("0 per 15s", "'0 per 15s' is no scaling policy"),
        ("-1 per 15s", "is no scaling policy"),
        ("1 per 15", "15"),
        (5, "5 is no scaling policy"),
        ("1 per 31m", "1s to 30m in Kubernetes, not 31m"),
        ("1 per 500ms", "1s to 30m in Kubernetes, not 500ms"),
    ],
)
def test_what_is_no_policy_is_told(raw: Any, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        policy(raw)


def test_policies_are_one_or_several() -> None:
    assert [str(each) for each in policies("1 per 2m")] == ["1 per 120s"]
    assert [str(each) for each in policies(["1 per 2m", "10% per 1m"])] == ["1 per 120s", "10% per 60s"]


def test_windows_are_an_hour_at_most_and_periods_more_than_nothing() -> None:
    assert (window("1h"), window("0s"), period("1s")) == (3_600 * S, 0, S)
    with pytest.raises(ValueError, match="at most 1h"):
        window("61m")
    with pytest.raises(ValueError, match="more than 0s"):
        period("0s")


@pytest.mark.parametrize(
    ("metric", "raw"),
    [("lag", "10"), ("lag", 1.5), ("lag", True), ("lag-age", 10), ("lag-age", "0s"), ("cpu", "101%"), ("cpu", 70), ("cpu", "0%")],
)
def test_targets_are_of_their_metrics_kind(metric: str, raw: Any) -> None:
    with pytest.raises(ValueError, match=f"the target of {metric} is"):
        TARGETS[ScaleMetric(metric)](raw)
