"""Groups watched over time: rates and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kgctl.admin.group_rates import Position, RateWatch, Sample, Verdict
from kgctl.model.groups import GroupListing, GroupState, TopicPartition
from kgctl.model.lag import Flag, lag_of

P, Q = (TopicPartition("t", number) for number in (0, 1))


def test_a_share_group_reads_what_it_acknowledges_past_its_start_offset() -> None:
    watch, listing = RateWatch(), GroupListing("g", "share", GroupState.STABLE)
    for number, lag in enumerate((90, 60)):
        watch.add(Sample(number * 10_000, {"g": listing}, {"g": {P: Position(10, 0, 100 + 10 * number, None, lag)}}))

    (rate,) = watch.rates()

    assert (rate.lag, rate.consumed_per_s, rate.produced_per_s) == (60, 4.0, 1.0)


def watched(positions: Sequence[tuple[int, int]]) -> RateWatch:
    """One group's partition, a sample each ten seconds: (committed, end)."""
    watch = RateWatch()
    listing = GroupListing("g", "consumer", GroupState.STABLE)
    for number, (committed, end) in enumerate(positions):
        watch.add(
            Sample(number * 10_000, {"g": listing}, {"g": {P: Position(committed, 0, end, None, lag_of(committed, 0, end))}})
        )
    return watch


@pytest.mark.parametrize(
    ("positions", "lag", "consumed", "produced", "drain", "verdict"),
    [
        ([(0, 100)], 100, None, None, None, Verdict.UNKNOWN),
        ([(100, 100)], 0, None, None, None, Verdict.OK),
        ([(0, 100), (50, 110)], 60, 5.0, 1.0, 15.0, Verdict.OK),
        ([(0, 100), (10, 150), (20, 200)], 180, 1.0, 5.0, None, Verdict.WARN),
        ([(10, 100), (10, 150), (10, 200)], 190, 0.0, 5.0, None, Verdict.STALL),
        ([(50, 100), (10, 100), (20, 100)], 80, -1.5, 0.0, None, Verdict.REWIND),
        ([(100, 100), (100, 150), (100, 200)], 100, 0.0, 5.0, None, Verdict.OK),
        ([(0, 100), (100, 100)], 0, 10.0, 0.0, 0.0, Verdict.OK),
    ],
)
def test_rates_and_verdicts(
    positions: Sequence[tuple[int, int]],
    lag: int,
    consumed: float | None,
    produced: float | None,
    drain: float | None,
    verdict: Verdict,
) -> None:
    (found,) = watched(positions).rates()
    assert (found.lag, found.consumed_per_s, found.produced_per_s, found.drain_s) == (lag, consumed, produced, drain)
    assert found.verdict is verdict


def test_a_commit_out_of_its_log_is_lost_and_a_log_that_cannot_be_asked_is_not_well() -> None:
    (found,) = watched([(50, 100), (50, 20)]).rates()
    assert (found.lag, found.drain_s, found.verdict, found.flags) == (None, None, Verdict.LOST, (Flag.PAST_LOG_END,))
    watch, listing = RateWatch(), GroupListing("g", "consumer", GroupState.STABLE)
    for at_ms in (0, 1000):
        watch.add(
            Sample(at_ms, {"g": listing}, {"g": {P: Position(5, 0, 5, None, 0), Q: Position(5, None, None, Flag.NO_LEADER)}})
        )
    (found,) = watch.rates()
    assert (found.lag, found.produced_per_s, found.verdict, found.flags) == (None, None, Verdict.UNKNOWN, (Flag.NO_LEADER,))


def test_group_without_commits_is_unknown() -> None:
    watch = RateWatch()
    watch.add(Sample(0, {"g": GroupListing("g")}, {"g": {}}))
    (found,) = watch.rates()
    assert (found.lag, found.verdict) == (None, Verdict.UNKNOWN)


def test_only_the_window_counts() -> None:
    history = [(100, 100), *[(10, 100 + number) for number in range(10)]]
    assert watched(history).rates()[0].verdict is Verdict.STALL
