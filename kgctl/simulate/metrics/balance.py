"""5.4: how evenly partitions and load are spread over the members: at the end, at a time, or over the whole window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from kgctl.simulate.metrics.measured import Compute, Measured
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.scenario.checks import Filters

Formula: TypeAlias = Callable[[Sequence[int]], float | None]


def spread_of(counts: Sequence[int]) -> float | None:
    """Return the difference between the largest and the smallest count."""
    return max(counts) - min(counts) if counts else None


def max_mean_of(counts: Sequence[int]) -> float | None:
    """Return the largest count divided by the mean."""
    return max(counts) * len(counts) / sum(counts) if sum(counts) else None


def jain_of(counts: Sequence[int]) -> float | None:
    """Return Jain's fairness index: 1 for even counts, 1/n for all on one member."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else None


def kip54_of(counts: Sequence[int]) -> float | None:
    """Return the balance score of KIP-54: the sum of the differences of all pairs."""
    ordered = sorted(counts)
    size = len(ordered)
    return sum(count * (2 * position - size + 1) for position, count in enumerate(ordered))


def idle_of(counts: Sequence[int]) -> float | None:
    """Return the number of members without a partition."""
    return sum(count == 0 for count in counts)


def balance(formula: Formula, worst: Callable[[Iterable[float]], float], *, by_load: bool = False) -> Compute:
    """The metric that is this formula of the members' partitions, or of the rates of these."""

    def metric(run: Measured, filters: Filters) -> float | None:
        if filters.statistic not in ("mean", "worst"):
            return formula(_counts(run, filters, run.at(filters), by_load=by_load))
        pieces = _over_time(run, filters, formula, by_load=by_load)
        if not pieces:
            return None
        if filters.statistic == "worst":
            return worst([value for _, value in pieces])
        total_us = sum(length for length, _ in pieces)
        return sum(length * value for length, value in pieces) / total_us if total_us else None

    return metric


def _counts(run: Measured, filters: Filters, at_us: int, *, by_load: bool) -> list[int]:
    counts = dict.fromkeys(run.members_at(at_us, filters), 0)
    for number in run.partitions(filters):
        owner = run.owner_at(number, at_us)
        if owner in counts:
            counts[owner] += run.ledger.arrivals.rate_uhz[number] if by_load else 1
    return list(counts.values())


def _over_time(run: Measured, filters: Filters, formula: Formula, *, by_load: bool) -> list[tuple[int, float]]:
    """(length, value) of each calm time: while partitions are on the move there is no balance to speak of."""
    calm = run.clip(run.history.calm.until(run.end_us), run.window(filters))
    values = ((last - first, formula(_counts(run, filters, first, by_load=by_load))) for first, last in calm)
    return [(length, value) for length, value in values if value is not None]


def cross_rack(run: Measured, filters: Filters) -> float | None:
    """The share of the load that is read from another rack than any replica's (without traffic: of the partitions)."""
    at_us = run.at(filters)
    total = crossing = 0
    for number in run.partitions(filters):
        owner = run.owner_at(number, at_us)
        topic, partition = run.recording.partitions.names[number]
        metadata = run.recording.image.topics.get(topic)
        if owner == NOBODY or metadata is None or partition >= len(metadata.partition_racks):
            continue
        weight = run.ledger.arrivals.rate_uhz[number] if run.recording.has_traffic else 1
        total += weight
        crossing += weight * (run.history.pods[owner].rack not in metadata.partition_racks[partition])
    return crossing / total if total else None


def copartitioned(run: Measured, filters: Filters) -> float | None:
    """The share of partition numbers that are with the same member in both topics."""
    at_us = run.at(filters)
    if len(filters.topics) != 2:
        return None
    owners = []
    for topic in filters.topics:
        numbers = [number for number in run.recording.partitions.by_topic.get(topic, ()) if run.exists_at(number, at_us)]
        owners.append({run.recording.partitions.names[number].partition: run.owner_at(number, at_us) for number in numbers})
    size = max(len(owners[0]), len(owners[1]))
    same = sum(owner != NOBODY and owners[1].get(partition, NOBODY) == owner for partition, owner in owners[0].items())
    return same / size if size else None


def members(run: Measured, filters: Filters) -> float:
    """Return the number of members of the group."""
    return len(run.members_at(run.at(filters), filters))
