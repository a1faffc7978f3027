"""Records as a fluid, with numbers that can be worked out by hand."""

from __future__ import annotations

import pytest

from kgctl.simulate.recording.traffic import (
    Arrivals,
    Flow,
    LinearSeries,
    PositionLedger,
    QuietCommits,
    Wait,
    max_min_shares,
    split_rate,
)
from kgctl.simulate.scenario.quantities import UNIT_PR

S = 1_000_000
RATE = 1_000_000
"""One record a second."""


def ledger(*rates: int) -> PositionLedger:
    made = PositionLedger()
    made.add("t", len(rates), 0)
    made.set_rates(range(len(rates)), [rate * RATE for rate in rates], 0)
    return made


def test_arrivals_are_known_for_the_past() -> None:
    arrivals = Arrivals()
    arrivals.add(1, 0)
    arrivals.set_rate(0, 100 * RATE, 0)
    arrivals.set_rate(0, 10 * RATE, 5 * S)
    totals = [arrivals.total_pr(0, at_s * S) // UNIT_PR for at_s in (0, 1, 5, 7)]
    assert totals == [0, 100, 500, 520]
    assert [arrivals.arrived_us(0, amount * UNIT_PR) for amount in (100, 510)] == [1 * S, 6 * S]


@pytest.mark.parametrize(
    ("rate", "partitions", "weights", "shares"),
    [(10, 3, (), [4, 3, 3]), (10, 2, (3, 1), [8, 2]), (9, 3, (1, 2), [3, 4, 2]), (5, 2, (0,), [0, 0])],
)
def test_a_rate_is_split_without_a_rest(rate: int, partitions: int, weights: tuple[int, ...], shares: list[int]) -> None:
    assert split_rate(rate, partitions, weights) == shares


@pytest.mark.parametrize(
    ("rate", "needs", "shares"),
    [
        (100, {0: 10, 1: 20}, {0: 10, 1: 20}),
        (100, {0: 10, 1: None}, {0: 10, 1: 90}),
        (100, {0: None, 1: None, 2: 80}, {0: 33, 1: 33, 2: 33}),
        (0, {0: 5, 1: None}, {0: 0, 1: 0}),
        (10, {0: 0, 1: None}, {0: 0, 1: 10}),
    ],
)
def test_shares_are_max_min_fair(rate: int, needs: dict[int, int | None], shares: dict[int, int]) -> None:
    assert max_min_shares(rate, needs) == shares


def test_a_backlog_is_read_down_to_zero_and_then_followed() -> None:
    made = ledger(10)
    made.account_waiting(0, 6 * S)  # 60 records wait
    made.start(0, 0, 6 * S)
    flow = Flow(made, 30 * RATE, 6 * S)
    flow.partitions[0] = None
    flow.advance(8 * S)
    assert made.position(0, 8 * S) == 60
    flow.advance(100 * S)  # 20 left, read at 30 - 10 a second: empty after a second
    assert (made.is_caught_up[0], made.position(0, 100 * S)) == (True, 1000)
    backlog = made.backlog["t"]
    assert [backlog.value(at_s * S) // UNIT_PR for at_s in (3, 6, 8, 9, 50)] == [30, 60, 20, 0, 0]
    assert backlog.area(0, 9 * S) // (2 * UNIT_PR * S) == 6 * 60 // 2 + 3 * 60 // 2


def test_a_reader_that_is_too_slow_falls_behind() -> None:
    made = ledger(10, 30)
    flow = Flow(made, 20 * RATE, 0)
    for number in (0, 1):
        made.start(number, 0, 0)
        flow.partitions[number] = None
    flow.advance(10 * S)
    assert [made.position(number, 10 * S) for number in (0, 1)] == [100, 100]
    assert made.backlog["t"].value(10 * S) // UNIT_PR == 200


def test_a_reader_without_a_limit_reads_at_once() -> None:
    made = ledger(10)
    made.account_waiting(0, 5 * S)
    made.start(0, 0, 5 * S)
    flow = Flow(made, None, 5 * S)
    flow.partitions[0] = None
    flow.advance(5 * S + 1)
    assert made.backlog_pr(0, 5 * S + 1) == 0
    assert made.waits == [Wait(5 * S, 0, 50 * UNIT_PR, 0, 5 * S)]


def test_reading_from_an_older_offset_repeats_and_from_a_newer_one_skips() -> None:
    made = ledger(10)
    assert made.start(0, 0, 0) == (0, 0)
    made.stop(0, 10 * S)
    assert made.position(0, 10 * S) == 100
    assert made.start(0, 70, 12 * S) == (30, 0)
    made.stop(0, 12 * S)
    assert made.start(0, 120, 12 * S) == (0, 50)


def test_the_lag_grows_with_arrivals_and_falls_with_commits() -> None:
    made = ledger(10)
    made.store(0, 40, 5 * S)
    made.commit_quietly(QuietCommits({0: 100}, 5 * S, 11 * S, 0, {}))
    lag = made.lag["t"]
    assert [lag.value(at_s * S) // UNIT_PR for at_s in (4, 8, 11, 12)] == [40, 10, 10, 20]
    assert (made.committed, made.stored) == ([100], [40])


def test_each_commit_of_a_quiet_time_takes_its_records_off_the_lag() -> None:
    made = ledger(10)
    made.commit_quietly(QuietCommits({0: 110}, 0, 11 * S, 5 * S, {}))
    lag = made.lag["t"]
    assert [lag.value(at_s * S) // UNIT_PR for at_s in (1, 2, 6, 7, 11, 12)] == [10, 10, 50, 10, 50, 10]


def test_commits_of_a_partition_that_falls_behind_leave_what_was_not_read() -> None:
    made = ledger(10)
    made.commit_quietly(QuietCommits({0: 55}, 0, 11 * S, 5 * S, {0: 5 * UNIT_PR // S}))
    lag = made.lag["t"]
    assert [lag.value(at_s * S) // UNIT_PR for at_s in (1, 2, 6, 7, 11, 12)] == [10, 15, 55, 40, 80, 65]


def test_what_was_there_before_a_quiet_time_is_committed_at_its_beginning() -> None:
    made = ledger(10)
    made.commit_quietly(QuietCommits({0: 110}, 5 * S, 11 * S, 0, {}))
    lag = made.lag["t"]
    assert [lag.value(at_s * S) // UNIT_PR for at_s in (5, 6, 8, 11, 12)] == [50, 0, 0, 0, 10]


def test_of_very_many_commits_those_at_both_ends_are_steps_of_the_lag() -> None:
    made = ledger(10)
    made.commit_quietly(QuietCommits({0: 1_000_000}, 0, 100_000 * S, 5 * S, {}))
    lag = made.lag["t"]
    assert [lag.value(at_s * S) // UNIT_PR for at_s in (5, 6, 10, 50_000, 99_995, 99_996)] == [50, 10, 50, 0, 50, 10]
    assert len(lag.points(0, 100_000 * S)) < 200


def test_a_series_adds_pieces_up_in_any_order() -> None:
    series = LinearSeries()
    series.piece(10, 20, 0, 2)
    series.piece(0, 15, 5, 0)
    assert series.points(0, 30) == [(0, 0), (0, 5), (10, 5), (15, 15), (15, 10), (20, 20), (20, 0), (30, 0)]
    assert (series.value(12), series.points(12, 14)) == (9, [(12, 9), (14, 13)])
    assert LinearSeries.merged([series, series]).value(12) == 18
