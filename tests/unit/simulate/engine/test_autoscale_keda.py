"""KEDA's Kafka scaler: from offsets to the number that the HPA gets, and the way from and to no pods."""

from __future__ import annotations

from typing import Any

from kgctl.simulate.engine.autoscale import KafkaScaler, Lag, Offsets
from kgctl.simulate.scenario.autoscale import Autoscale

S = 1_000_000


def scaler(*, from_start: bool = False, **keys: Any) -> KafkaScaler:
    return KafkaScaler(Autoscale(members="app", target=100, **keys), from_start=from_start)


def offsets(*lags: int) -> list[Offsets]:
    return [Offsets(number, 1_000, 1_000 - lag) for number, lag in enumerate(lags)]


def test_lag_is_the_sum() -> None:
    assert scaler().lag(offsets(30, 0, 12)) == Lag(42, 42)


def test_lag_is_cut_to_partitions_times_target() -> None:
    assert scaler().lag(offsets(900, 0, 0)) == Lag(300, 900)
    assert scaler().lag(offsets(399, 0, 0)) == Lag(399, 399)  # KEDA divides whole numbers: 3 is not above 3
    assert scaler(allow_idle_consumers=True).lag(offsets(900, 0, 0)) == Lag(900, 900)
    assert scaler(limit_to_partitions_with_lag=True).lag(offsets(900, 0, 0)) == Lag(100, 900)


def test_a_partition_without_a_commit_counts_as_one_record_or_as_all() -> None:
    new = [Offsets(0, 50, None), Offsets(1, 70, None)]
    assert scaler().lag(new) == Lag(2, 2)
    assert scaler(from_start=True).lag(new) == Lag(120, 120)


def test_partitions_that_stand_still_can_be_left_out() -> None:
    one = scaler(exclude_persistent_lag=True)
    assert one.lag([Offsets(0, 50, 10), Offsets(1, 50, 20)]) == Lag(70, 70)
    assert one.lag([Offsets(0, 60, 10), Offsets(1, 60, 25)]) == Lag(35, 85)
    assert one.lag([Offsets(0, 60, 11), Offsets(1, 60, 25)]) == Lag(49, 84)


def test_the_first_pod_starts_above_the_activation_and_the_last_one_goes_after_the_cooldown() -> None:
    one = scaler(minimum=0, activation=5, cooldown_us=300 * S)
    assert one.polled(0, 0, 5) == 0
    assert one.polled(30 * S, 0, 6) == 1
    assert one.polled(60 * S, 7, 0) == 7
    assert one.polled(329 * S, 7, 0) == 7
    assert one.polled(330 * S, 7, 0) == 0


def test_with_a_minimum_there_are_at_least_so_many() -> None:
    one = scaler(minimum=3)
    assert (one.polled(0, 0, 9), one.polled(S, 2, 0), one.polled(9_999 * S, 5, 0)) == (3, 3, 5)
