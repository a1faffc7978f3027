"""Heartbeats: period, drift, and skipping many at once."""

from __future__ import annotations

from itertools import pairwise
from random import Random  # the seeded source that members are handed
from statistics import mean, pstdev

import pytest

from kgctl.member.config import HeartbeatDrift
from kgctl.member.runtime import HeartbeatClock

INTERVAL_US = 3_000_000
JAVA = HeartbeatDrift(constant_us=20_000, walk_us=20_000, jitter_us=36_000)


def clock_of(drift: HeartbeatDrift, seed: int = 1) -> HeartbeatClock:
    clock = HeartbeatClock(drift, Random(seed))
    clock.restart(0, INTERVAL_US)
    return clock


def beats(clock: HeartbeatClock, count: int) -> list[int]:
    times = []
    for _ in range(count):
        times.append(clock.next_us)
        clock.beat(clock.next_us)
    return times


def test_punctual_beats_are_an_interval_apart() -> None:
    assert beats(clock_of(HeartbeatDrift()), 3) == [3_000_000, 6_000_000, 9_000_000]


def test_the_timer_starts_anew_with_a_beat_before_its_time() -> None:
    clock = clock_of(HeartbeatDrift())
    for now_us in (3_000_000, 3_100_000, 3_300_000, 3_700_000):
        clock.beat(now_us)
    assert clock.next_us == 6_700_000


def test_constant_drift_adds_to_every_beat() -> None:
    assert beats(clock_of(HeartbeatDrift(constant_us=20_000)), 2) == [3_020_000, 6_040_000]


def test_jitter_does_not_add_up() -> None:
    times = beats(clock_of(HeartbeatDrift(jitter_us=10_000)), 500)

    assert all(abs(at - (number + 1) * INTERVAL_US) <= 10_000 for number, at in enumerate(times))


def test_java_beats_have_the_measured_period_and_spread() -> None:
    members = [beats(clock_of(JAVA, seed), 132) for seed in range(40)]
    periods = [later - earlier for times in members for earlier, later in pairwise(times)]

    assert mean(periods) == pytest.approx(3_020_000, abs=1_000)
    assert pstdev(periods) == pytest.approx(32_000, abs=2_000)
    assert min(periods) >= 2_900_000
    assert max(periods) <= 3_140_000
    # 8 of 40 spread over 2.85 deviations, on average: 0.3 to 0.5 s were measured after 400 s.
    assert 0.3e6 <= 2.85 * pstdev([times[-1] for times in members]) <= 0.55e6


def test_random_phase_begins_anywhere_within_the_interval() -> None:
    firsts = [clock_of(HeartbeatDrift(phase_locked=False), seed).next_us for seed in range(50)]

    assert min(firsts) < 500_000
    assert max(firsts) > 2_500_000
    assert max(firsts) <= INTERVAL_US


def test_late_beat_moves_the_phase() -> None:
    clock = clock_of(HeartbeatDrift())
    clock.beat(4_000_000)

    assert clock.next_us == 7_000_000


@pytest.mark.parametrize("until_us", [3_000_001, 9_000_000, 9_000_001, 86_400_000_000])
def test_skip_of_punctual_beats_is_what_single_beats_would_be(until_us: int) -> None:
    clock = clock_of(HeartbeatDrift())
    expected = -(-until_us // INTERVAL_US) - 1

    assert clock.skip(until_us) == (expected, expected * INTERVAL_US)
    assert clock.next_us == (expected + 1) * INTERVAL_US


@pytest.mark.parametrize("drift", [JAVA, HeartbeatDrift(constant_us=50_000, walk_us=50_000), HeartbeatDrift(phase_locked=False)])
@pytest.mark.parametrize("until_us", [3_500_000, 40_000_000, 86_400_000_000])
def test_skip_lands_within_a_period_and_counts_the_beats(drift: HeartbeatDrift, until_us: int) -> None:
    for seed in range(20):
        clock = clock_of(drift, seed)
        count, last_us = clock.skip(until_us)

        assert abs(count - until_us / clock.period_us) <= 1.1
        assert last_us < until_us <= clock.next_us
        assert clock.next_us - until_us <= clock.period_us + 2 * drift.jitter_us
