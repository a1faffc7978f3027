"""How much of the time partitions are consumed and why not, how they come from one owner to the next, and how a group begins."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from itertools import accumulate, pairwise

from kgctl.simulate.metrics.measured import Compute, Measured, percentile, seconds
from kgctl.simulate.recording.owners import NOBODY, Gap
from kgctl.simulate.scenario.checks import NO_FILTERS, Filters
from kgctl.simulate.scenario.vocabulary import Cause


def unavailable(run: Measured, filters: Filters) -> float:
    """Sum over the partitions of the time in which nobody consumes them; of one cause, where one is named."""
    gaps = run.gaps(filters)
    cause = filters.cause or filters.word
    if cause is None:
        return seconds(sum(gap.length_us for gap in gaps))
    return seconds(sum(length for gap in gaps for found, length in gap.causes if found.label == cause))


def availability(run: Measured, filters: Filters) -> float | None:
    """1 - unavailable / the time in which the partitions exist."""
    window = run.window(filters)
    existing = [run.existence(number, window) for number in run.partitions(filters)]
    total_us = sum(max(last - first, 0) for first, last in existing)
    return 1 - unavailable(run, filters) / seconds(total_us) if total_us else None


def max_gap(run: Measured, filters: Filters) -> float:
    """The longest time without a consumer of any partition."""
    return seconds(max((gap.length_us for gap in run.gaps(filters)), default=0))


def gap_percentile(percent: float) -> Compute:
    """The metric that is this percentile of all gaps' lengths."""

    def gap(run: Measured, filters: Filters) -> float:
        return seconds(percentile([gap.length_us for gap in run.gaps(filters)], percent))

    return gap


def gaps(run: Measured, filters: Filters) -> float:
    return len(run.gaps(filters))


def collateral(run: Measured, filters: Filters) -> float:
    """Unavailable time of partitions whose consumer before and after is the same and lived through it."""
    return seconds(sum(gap.length_us for gap in run.gaps(filters) if _is_collateral(run, gap)))


def _is_collateral(run: Measured, gap: Gap) -> bool:
    if gap.before < 0 or gap.before != gap.after or gap.causes[0][0] in (Cause.STALL, Cause.BROKER):
        return False
    running = run.history.pods[gap.before].running.until(run.end_us + 1)
    return any(first <= gap.from_us and gap.to_us <= last for first, last in running)


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


HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat")
_SIGNS = (*HEARTBEATS, "JoinGroup", "SyncGroup")


def takeover(percent: float) -> Compute:
    """Return the metric that is this percentile of the times in which a partition goes from one consumer to another."""

    def found(run: Measured, filters: Filters) -> float | None:
        gone = [gap for gap in run.gaps(filters) if gap.before != gap.after and NOBODY not in (gap.before, gap.after)]
        lengths = [gap.length_us for gap in gone]
        return seconds(percentile(lengths, percent)) if lengths else None

    found.__doc__ = (
        f"How long nobody reads a partition that goes from one consumer to another: {_NAMES[percent]} of all such times. "
        "None: none went."
    )
    return found


_NAMES = {0.0: "the shortest", 50.0: "the median", 100.0: "the longest"}


def longest_gaps(run: Measured, filters: Filters = NO_FILTERS) -> dict[int, int]:
    """Return the longest gap of each partition that is meant, in microseconds; 0 where it had none."""
    found = dict.fromkeys(run.partitions(filters), 0)
    for gap in run.gaps(filters):
        found[gap.partition] = max(found.get(gap.partition, 0), gap.length_us)
    return found


def partition_gap(run: Measured, filters: Filters) -> float | None:
    """Each partition's longest gap: the median of them, or another statistic. JSON has the list, as ``longest_gaps``."""
    return _statistic(Counter(longest_gaps(run, filters).values()), filters)


def _statistic(lengths: Counter[int], filters: Filters) -> float | None:
    """Return the median of lengths, of which there are so many each, or the statistic that is named; None of nothing."""
    number = lengths.total()
    if not number:
        return None
    if filters.statistic == "mean":
        return seconds(sum(length * count for length, count in lengths.items()) // number)
    if filters.statistic in ("max", "min"):
        return seconds(max(lengths) if filters.statistic == "max" else min(lengths))
    percent = 50 if filters.percentile is None else filters.percentile
    rank = max(-(-number * round(percent * 100) // 10_000), 1)
    for length in sorted(lengths):
        rank -= lengths[length]
        if rank <= 0:
            return seconds(length)
    return None


def callbacks(run: Measured, filters: Filters) -> float:
    """Calls of the application's rebalance callbacks: all, those of a kind, or those that get no partition (``empty``)."""
    kinds = [word for word in filters.words if word != "empty"]
    return sum(
        (not kinds or entry.what in kinds) and not ("empty" in filters.words and entry.amount)
        for entry in run.select(run.history.callbacks, replace(filters, words=()))
    )


def heartbeat_time(run: Measured, filters: Filters) -> float | None:
    """From a heartbeat of a member, or its JoinGroup or SyncGroup, to its next heartbeat: the median, or another statistic."""
    window = run.window(filters)
    signs = [(each.pod, each.at_us, int(each.what in HEARTBEATS)) for each in run.history.requests if each.what in _SIGNS]
    signs += [(each.pod, each.at_us, each.amount) for each in run.history.skipped_beats]
    lengths: Counter[int] = Counter()
    for (pod, before_us, _), (same, at_us, beats) in pairwise(sorted(signs)):
        if beats and pod == same and window[0] <= at_us <= window[1] and run.is_meant(pod, filters):
            lengths[(at_us - before_us) // beats] += beats
    return _statistic(lengths, filters)


def _cold_start_us(run: Measured) -> int | None:
    """Return when a consumer ran last after a time without any; None: none ever ran."""
    ran = [interval for pod in run.history.pods for interval in pod.running.until(run.end_us)]
    changes = [(first, 1) for first, _ in ran] + [(last, -1) for _, last in ran]
    number, found = 0, None
    for at_us, change in sorted(changes):
        if number == 0 and change > 0:
            found = at_us
        number += change
    return found


def first_owned(run: Measured, filters: Filters) -> float | None:
    """From the start of a group in which no consumer ran (the last such start, be it in the warm-up) until one reads some
    partition; never: infinite. None: none ever started."""
    start_us = _cold_start_us(run)
    if start_us is None:
        return None
    found = [at_us for number in run.partitions(filters) if (at_us := _owned_from(run, number, start_us)) is not None]
    return seconds(min(found) - start_us) if found else float("inf")


def all_owned(run: Measured, filters: Filters) -> float | None:
    """From the start of a group in which no consumer ran until every partition that there is is read at the same time; never:
    infinite. None: none ever started."""
    start_us = _cold_start_us(run)
    numbers = run.partitions(filters)
    if start_us is None or not numbers:
        return None
    at_us, limit_us = start_us, run.end_us
    while True:
        there = [number for number in numbers if run.exists_at(number, at_us)]
        later = [_owned_from(run, number, at_us) for number in there]
        if any(when is None for when in later):
            return float("inf")
        next_us = max((when for when in later if when is not None), default=at_us)
        if next_us == at_us:
            return seconds(at_us - start_us)
        if next_us > limit_us:
            return float("inf")
        at_us = next_us


def _owned_from(run: Measured, number: int, from_us: int) -> int | None:
    """Return the first moment, this one or a later one, at which somebody consumes the partition; None: nobody does any more."""
    lane = run.owners.changes[number]
    times, values = lane[::2], lane[1::2]
    position = max(bisect_right(times, from_us) - 1, 0)
    for at_us, value in zip(times[position:], values[position:], strict=True):
        if value >= 0:
            return max(at_us, from_us)
    return None
