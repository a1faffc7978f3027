"""5.7: does it swing, and what does it cost?"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

from kgctl.simulate.metrics.measured import Measured, seconds
from kgctl.simulate.recording.history import Intervals
from kgctl.simulate.recording.traffic import LinearSeries
from kgctl.simulate.scenario.filters import Filters

FLAP_US = 600_000_000


def thrash_of(values: list[float]) -> float:
    """CockroachDB's trend-discounting total variation, in per cent of the range: 0 for what only rises or only falls."""
    up = sum(max(right - left, 0) for left, right in pairwise(values))
    down = sum(max(left - right, 0) for left, right in pairwise(values))
    if not values or min(up, down) == 0:
        return 0.0
    alpha = math.pow(min(up, down) / max(up, down), 0.8)
    return 100 * (alpha * (up + down) + (1 - alpha) * min(up, down)) / (max(values) - min(values))


def _counts(run: Measured, which: str, filters: Filters) -> list[tuple[int, int]]:
    """(time, how many) of pods that are wanted, that run, or that are in the group."""
    window = run.window(filters)
    changes: Counter[int] = Counter({window[0]: 0})
    for pod in run.pods(filters):
        intervals: Intervals = getattr(run.history.pods[pod], which)
        for first, last in run.clip(intervals.until(window[1]), window):
            changes[first] += 1
            changes[last] -= 1
    found, number = [], 0
    for at_us in sorted(changes):
        number += changes[at_us]
        if at_us < window[1]:
            found.append((at_us, number))
    return found


def thrash(run: Measured, filters: Filters) -> float:
    """Of ``replicas``, ``members`` or ``lag``."""
    what = filters.word or "replicas"
    if what == "lag":
        run.recording.settle_traffic()
        merged = LinearSeries.merged(run.ledger.lag.values())
        return thrash_of([float(value) for _, value in merged.points(*run.window(filters))])
    which = "in_group" if what == "members" else "wanted"
    return thrash_of([float(number) for _, number in _counts(run, which, filters)])


def flaps(run: Measured, filters: Filters) -> float:
    """Changes of direction of the number of replicas within 10 minutes."""
    points = list(_counts(run, "wanted", filters))
    steps = [(right[0], right[1] - left[1]) for left, right in pairwise(points) if right[1] != left[1]]
    return sum((left[1] > 0) != (right[1] > 0) and right[0] - left[0] <= FLAP_US for left, right in pairwise(steps))


def replicas(run: Measured, filters: Filters) -> float:
    """Pods that are wanted: at the end, at a time, or the most or fewest."""
    points = _counts(run, "wanted", filters)
    if filters.statistic in ("max", "peak"):
        return max(number for _, number in points)
    if filters.statistic == "min":
        return min(number for _, number in points)
    at_us = run.at(filters)
    return next((number for when, number in reversed(points) if when <= at_us), 0)


def member_seconds(run: Measured, filters: Filters) -> float:
    """The sum over the pods of the time in which their consumers ran."""
    window = run.window(filters)
    total = 0
    for pod in run.pods(filters):
        total += sum(last - first for first, last in run.clip(run.history.pods[pod].running.until(window[1]), window))
    return seconds(total)


def requests(run: Measured, filters: Filters) -> float:
    """Requests that the brokers got, those of quiet times included where no time is named; ``peak``: in the busiest second."""
    found = run.select(run.history.requests, filters)
    if filters.statistic == "peak":
        return max(Counter(entry.at_us // 1_000_000 for entry in found).values(), default=0)
    number = len(found)
    if filters.before_us is None and filters.after_us is None and filters.selector is None:
        skipped = run.history.skipped_requests
        number += sum(count for api, count in skipped.items() if not filters.words or api in filters.words)
    return number


def record_bytes(run: Measured, filters: Filters) -> float:  # noqa: ARG001  # there is nothing to choose from
    """The largest GroupMetadata record that was written (a classic group has one record for all its members)."""
    from kgctl.model.records import CoordinatorRecord, GroupMetadataKey
    from kgctl.serde.coordinator_records import encode_record

    largest = run.recording.largest
    if largest is None:
        return 0
    key, value = encode_record(CoordinatorRecord(GroupMetadataKey(run.recording.scenario.group_id), largest))
    return len(key) + len(value or b"")


def state(run: Measured, filters: Filters) -> str:
    """The group's state, by Kafka's name: now, or at a time."""
    at_us = run.at(filters)
    return next((point.state for point in reversed(run.history.group) if point.at_us <= at_us), "Dead")
