"""How much of the time partitions are consumed, and why not."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from kgctl.simulate.metrics.measured import Measured, seconds, statistic_of
from kgctl.simulate.recording.owners import Gap
from kgctl.simulate.scenario.checks import NO_FILTERS, Filters
from kgctl.simulate.scenario.metric import (
    COUNT,
    OWNERS,
    PARTITION_SECONDS,
    SECONDS,
    SHARE,
    TIME,
    WHERE,
    metric,
    the_time,
    the_time_of_all,
)
from kgctl.simulate.scenario.vocabulary import GapCause


@metric(
    PARTITION_SECONDS,
    ("cause", *WHERE),
    label="unavailable p*s",
    hint="partition-seconds without a consumer",
    causes=tuple(cause.label for cause in GapCause),
    place=2,
    is_of_gaps=True,
    most=the_time_of_all,
)
def unavailable(run: Measured, filters: Filters) -> float:
    """Sum over the partitions of the time in which nobody consumes them; of one cause, where one is named."""
    gaps = run.gaps(filters)
    cause = filters.cause
    if cause is None:
        return seconds(sum(gap.length_us for gap in gaps))
    return seconds(sum(length for gap in gaps for found, length in gap.causes if found.label == cause))


@metric(SHARE, WHERE, is_better_higher=True, is_of_gaps=True)
def availability(run: Measured, filters: Filters) -> float | None:
    """1 - unavailable / the time in which the partitions exist."""
    window = run.window(filters)
    existing = [run.existence(number, window) for number in run.partitions(filters)]
    total_us = sum(max(last - first, 0) for first, last in existing)
    return 1 - unavailable(run, filters) / seconds(total_us) if total_us else None


@metric(SECONDS, WHERE, label="longest gap", hint="one partition, nobody", place=3, is_of_gaps=True, most=the_time)
def max_gap(run: Measured, filters: Filters) -> float:
    """The longest time without a consumer of any partition."""
    return seconds(max((gap.length_us for gap in run.gaps(filters)), default=0))


@metric(SECONDS, WHERE, label="gap p50", is_of_gaps=True, most=the_time)
def gap_p50(run: Measured, filters: Filters) -> float | None:
    """The median of the lengths of all gaps of all partitions. None: none."""
    return statistic_of(Counter(gap.length_us for gap in run.gaps(filters)), filters)


@metric(COUNT, WHERE, is_of_gaps=True)
def gaps(run: Measured, filters: Filters) -> float:
    """Times in which a partition has no consumer."""
    return len(run.gaps(filters))


@metric(
    PARTITION_SECONDS,
    WHERE,
    label="collateral p*s",
    hint="of partitions that did not move",
    is_of_gaps=True,
    about=OWNERS,
    most=the_time_of_all,
)
def collateral(run: Measured, filters: Filters) -> float:
    """Unavailable time of partitions whose consumer before and after is the same and lived through it."""
    return seconds(sum(gap.length_us for gap in run.gaps(filters) if _is_collateral(run, gap)))


def _is_collateral(run: Measured, gap: Gap) -> bool:
    if gap.before < 0 or gap.before != gap.after or gap.causes[0][0] in (GapCause.STALL, GapCause.BROKER):
        return False
    running = run.history.pods[gap.before].running.until(run.end_us + 1)
    return any(first <= gap.from_us and gap.to_us <= last for first, last in running)


@metric(
    SECONDS, ("share", "topic", *TIME), label="stop the world", hint="nobody consumed anything", is_of_gaps=True, most=the_time
)
def stop_the_world(run: Measured, filters: Filters) -> float:
    """The time in which there are members and no partition is consumed (or at most what the share leaves)."""
    window = run.window(filters)
    share = 1.0 if filters.share is None else filters.share
    changes: dict[int, list[int]] = {}

    def change(kind: int, first: int, last: int) -> None:
        changes.setdefault(first, [0, 0, 0])[kind] += 1
        changes.setdefault(last, [0, 0, 0])[kind] -= 1

    for gap in run.gaps(filters):
        change(0, gap.from_us, gap.to_us)
    for number in run.partitions(filters):
        first, last = run.existence(number, window)
        if first < last:
            change(1, first, last)
    for pod in run.history.pods:
        for first, last in run.clip(pod.running.until(window[1]), window):
            change(2, first, last)
    times = sorted(changes)
    dark, existing, members = (list(accumulate(changes[at_us][kind] for at_us in times)) for kind in range(3))
    return seconds(
        sum(
            times[position + 1] - times[position]
            for position in range(len(times) - 1)
            if members[position] and existing[position] and dark[position] >= share * existing[position]
        )
    )


def longest_gaps(run: Measured, filters: Filters = NO_FILTERS) -> dict[int, int]:
    """Return the longest gap of each partition that is meant, in microseconds; 0 where it had none."""
    found = dict.fromkeys(run.partitions(filters), 0)
    for gap in run.gaps(filters):
        found[gap.partition] = max(found.get(gap.partition, 0), gap.length_us)
    return found


@metric(
    SECONDS,
    ("percentile", "mean", "max", "min", *WHERE),
    label="longest gap, median of the partitions",
    is_of_gaps=True,
    most=the_time,
)
def partition_gap(run: Measured, filters: Filters) -> float | None:
    """Each partition's longest gap: the median of them, or another statistic. JSON has the list, as ``longest_gaps``."""
    return statistic_of(Counter(longest_gaps(run, filters).values()), filters)
