"""5.5: what is written and not committed, not read, and how long it waits. Amounts are records."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.simulate.metrics.measured import SECOND, Measured, seconds
from kgctl.simulate.recording.traffic import UNIT_PR, LinearSeries
from kgctl.simulate.scenario.checks import Filters


def _records(amount_pr: int) -> float:
    return round(amount_pr / UNIT_PR, 6)


def _series(run: Measured, found: dict[str, LinearSeries], filters: Filters) -> list[LinearSeries]:
    run.recording.settle_traffic()
    return [series for topic, series in found.items() if not filters.topics or topic in filters.topics]


def _peak(all_series: Iterable[LinearSeries], first: int, last: int) -> int:
    """Return the highest value of the sum of several series."""
    merged = LinearSeries.merged(all_series)
    return max((value for _, value in merged.points(first, last)), default=0)


def lag(run: Measured, filters: Filters) -> float:
    """Written and not committed, as Kafka's tools show it: at the end, at a time, or its mean or peak."""
    return _amount(run, run.ledger.lag, filters)


def backlog(run: Measured, filters: Filters) -> float:
    """Return the records that are written and not yet read."""
    return _amount(run, run.ledger.backlog, filters)


def _amount(run: Measured, found: dict[str, LinearSeries], filters: Filters) -> float:
    series = _series(run, found, filters)
    first, last = run.window(filters)
    if filters.statistic in ("max", "peak", "worst"):
        return max(_records(_peak(series, first, last)), 0.0)
    if filters.statistic == "mean":
        return _records(sum(entry.area(first, last) for entry in series) // (2 * max(last - first, 1)))
    return max(_records(sum(entry.value(run.at(filters)) for entry in series)), 0.0)


def lag_peak(run: Measured, filters: Filters) -> float:
    """Return the highest lag."""
    return max(_records(_peak(_series(run, run.ledger.lag, filters), *run.window(filters))), 0.0)


def backlog_peak(run: Measured, filters: Filters) -> float:
    """Return the highest backlog."""
    return _records(_peak(_series(run, run.ledger.backlog, filters), *run.window(filters)))


def lag_area(run: Measured, filters: Filters) -> float:
    """The backlog summed up over time, in records times seconds."""
    first, last = run.window(filters)
    doubled = sum(entry.area(first, last) for entry in _series(run, run.ledger.backlog, filters))
    return round(doubled / 2 / UNIT_PR / SECOND, 6)


def latency_mean(run: Measured, filters: Filters) -> float | None:
    """How long a record waits in the mean, by Little's law: `lag_area` over the records written."""
    first, last = run.window(filters)
    written = sum(
        run.ledger.arrivals.total_pr(number, last) - run.ledger.arrivals.total_pr(number, first)
        for number in run.partitions(filters)
    )
    return lag_area(run, filters) / (written / UNIT_PR) if written else None


def latency_p99(run: Measured, filters: Filters) -> float | None:
    """The time that 99 % of the records wait at most between being written and being read."""
    run.recording.settle_traffic()
    first, last = run.window(filters)
    written = sum(
        run.ledger.arrivals.total_pr(number, last) - run.ledger.arrivals.total_pr(number, first)
        for number in run.partitions(filters)
    )
    return seconds(_slowest(run.ledger.waits, written // 100)) if written else None


def _slowest(waits: list[tuple[int, int, int]], amount: int) -> int:
    """The wait that only this amount exceeds; within an entry waits are spread evenly."""
    low, high = 0, max((longest for _, _, longest in waits), default=0)
    while low < high:
        middle = (low + high) // 2
        above = 0
        for mass, shortest, longest in waits:
            if shortest >= middle:
                above += mass
            elif longest > middle:
                above += mass * (longest - middle) // (longest - shortest)
        if above > amount:
            low = middle + 1
        else:
            high = middle
    return low


def lag_age(run: Measured, filters: Filters) -> float:
    """How old the oldest record is that is not committed."""
    run.recording.settle_traffic()
    at_us = run.end_us
    ages = [0]
    for number in run.partitions(filters):
        committed = max(run.ledger.committed[number], 0) * UNIT_PR
        if run.ledger.arrivals.total_pr(number, at_us) - committed >= UNIT_PR:
            ages.append(at_us - run.ledger.arrivals.arrived_us(number, committed))
    return seconds(max(ages))


def drain_time(run: Measured, filters: Filters) -> float | None:
    """From an event until the backlog is no higher than just before it, or 1 % above; never: infinite."""
    since_us = run.event_us(filters)
    if since_us is None:
        return None
    merged = LinearSeries.merged(_series(run, run.ledger.backlog, Filters(topics=filters.topics)))
    before = merged.value(max(since_us - 1, 0))
    limit = before + before // 100 + UNIT_PR
    points = merged.points(since_us, run.end_us)
    above = [position for position, (_, value) in enumerate(points) if value > limit]
    if not above:
        return 0.0
    if above[-1] == len(points) - 1:
        return float("inf")
    (left_us, left), (right_us, right) = points[above[-1]], points[above[-1] + 1]
    crossing = left_us + (right_us - left_us) * (left - limit) // max(left - right, 1)
    return seconds(crossing - since_us)
