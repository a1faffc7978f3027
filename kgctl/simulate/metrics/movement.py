"""Which partitions change their consumer and how many had to, and how evenly partitions and load are spread over the members.

Who counts as another consumer is the run's `Identity`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

from kgctl.model.values import frozen_in_order
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.scenario.checks import NO_FILTERS, Filters
from kgctl.simulate.scenario.metric import BALANCE, COUNT, OWNERS, PARTITIONS, SHARE, TIME, Compute, metric

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import MemberKey


@frozen_in_order
class PlacementSnapshot:
    """A moment in which all was in its place: who had what, and who was there."""

    at_us: int
    owners: dict[int, MemberKey]
    members: tuple[MemberKey, ...]


def _owners(run: Measured, number: int, window: tuple[int, int]) -> Sequence[tuple[int, int, MemberKey]]:
    """(from, to, owner) of a partition, gaps skipped, neighbours of one owner joined; first who had it before the window."""
    found: Sequence[tuple[int, int, MemberKey]] = run.kept(("owners", number, window), lambda: _owners_of(run, number, window))
    return found


def _owners_of(run: Measured, number: int, window: tuple[int, int]) -> list[tuple[int, int, MemberKey]]:
    before = run.owners.owner_before(number, window[0])
    found = [] if before == NOBODY else [(window[0], window[0], run.member_at(before, window[0]))]
    for first, last, value in run.segments(number, window):
        if value < 0:
            continue
        owner = run.member_at(value, first)
        if found and found[-1][2] == owner:
            found[-1] = (found[-1][0], last, owner)
        else:
            found.append((first, last, owner))
    return found


@metric(COUNT, ("topic", *TIME), label="partitions moved", place=4, about=OWNERS)
def moves(run: Measured, filters: Filters) -> float:
    """How often partitions changed their consumer, not counting gaps."""
    window = run.window(filters)
    return sum(max(len(_owners(run, number, window)) - 1, 0) for number in run.partitions(filters))


def _snapshots(run: Measured, filters: Filters) -> Sequence[PlacementSnapshot]:
    """The group in each of its calm times of the window."""
    key = ("snapshots", run.window(filters), filters.topics)
    found: Sequence[PlacementSnapshot] = run.kept(key, lambda: _snapshots_of(run, filters))
    return found


def _snapshots_of(run: Measured, filters: Filters) -> list[PlacementSnapshot]:
    window = run.window(filters)
    calm = run.calm_times(window)
    times = [first for first, _ in calm]
    owners: list[dict[int, MemberKey]] = [{} for _ in times]
    for number in run.partitions(filters):
        segments = run.segments(number, (times[0], window[1] + 1)) if times else []
        position = 0
        for index, at_us in enumerate(times):
            while position < len(segments) and segments[position][1] <= at_us:
                position += 1
            if position < len(segments) and segments[position][0] <= at_us and segments[position][2] >= 0:
                first, _, pod = segments[position]
                owners[index][number] = run.member_at(pod, first)
    return [PlacementSnapshot(at_us, owners[index], _members(run, at_us)) for index, at_us in enumerate(times)]


def _members(run: Measured, at_us: int) -> tuple[MemberKey, ...]:
    return tuple(run.member_at(pod, at_us) for pod in run.members_at(at_us, NO_FILTERS))


@metric(COUNT, ("topic", *TIME), about=OWNERS)
def moves_min(run: Measured, filters: Filters) -> float | None:
    """The fewest moves with which any assignor could have gone from each balanced state to the next. None: not all members
    subscribe to the same topics."""
    if len({run.recording.topics_of(pod.members) for pod in run.history.pods}) > 1:
        return None
    snapshots = _snapshots(run, filters)
    key = ("moves_min", run.window(filters), filters.topics)
    found: int = run.kept(key, lambda: sum(_fewest(before, after) for before, after in itertools.pairwise(snapshots)))
    return found


def _fewest(before: PlacementSnapshot, after: PlacementSnapshot) -> int:
    """Partitions of members that are gone, and what those that stay have above their quota."""
    there = frozenset(after.members)
    still = {number: owner for number, owner in before.owners.items() if number in after.owners}
    orphans = sum(owner not in there for owner in still.values())
    if not there:
        return orphans
    counts = dict.fromkeys(after.members, 0)
    for owner in still.values():
        if owner in counts:
            counts[owner] += 1
    floor, ceilings = divmod(len(after.owners), len(counts))
    ordered = sorted(counts.values(), reverse=True)
    return orphans + sum(max(count - floor - (position < ceilings), 0) for position, count in enumerate(ordered))


@metric(COUNT, ("topic", *TIME), about=OWNERS)
def excess_moves(run: Measured, filters: Filters) -> float | None:
    """The moves above the fewest, where these are known."""
    fewest = moves_min(run, filters)
    return None if fewest is None else moves(run, filters) - fewest


Formula: TypeAlias = Callable[[Sequence[int]], float | None]


def _balance(formula: Formula) -> Compute:
    """Make a metric's function of a formula of the members' partitions."""

    @wraps(formula)
    def compute(run: Measured, filters: Filters) -> float | None:
        if filters.statistic not in ("mean", "worst"):
            return formula(_counts(run, filters, run.at(filters)))
        pieces = _over_time(run, filters, formula)
        if not pieces:
            return None
        if filters.statistic == "worst":
            return max(value for _, value in pieces)
        total_us = sum(length for length, _ in pieces)
        return sum(length * value for length, value in pieces) / total_us if total_us else None

    return compute


@metric(PARTITIONS, BALANCE, about=OWNERS)
@_balance
def spread(counts: Sequence[int]) -> float | None:
    """The most partitions of a member less the fewest of one."""
    return max(counts) - min(counts) if counts else None


@metric(COUNT, BALANCE, about=OWNERS)
@_balance
def idle_members(counts: Sequence[int]) -> float | None:
    """Members without a partition."""
    return sum(count == 0 for count in counts)


def _counts(run: Measured, filters: Filters, at_us: int) -> list[int]:
    counts = dict.fromkeys(run.members_at(at_us, filters), 0)
    for number in run.partitions(filters):
        owner = run.owner_at(number, at_us)
        if owner in counts:
            counts[owner] += 1
    return list(counts.values())


def _over_time(run: Measured, filters: Filters, formula: Formula) -> list[tuple[int, float]]:
    """(length, value) of each calm time: while partitions are on the move there is no balance to speak of."""
    calm = run.calm_times(run.window(filters))
    values = ((last - first, formula(_counts(run, filters, first))) for first, last in calm)
    return [(length, value) for length, value in values if value is not None]


@metric(SHARE, ("topic", "at"), label="cross-rack", is_playable=False, about=OWNERS)
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


@metric(COUNT, ("selector", "at"), is_better_higher=True, counts_pods=True)
def members(run: Measured, filters: Filters) -> float:
    """Members of the group: at the end, or at a time."""
    return len(run.members_at(run.at(filters), filters))
