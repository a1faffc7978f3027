"""Which partitions change their consumer and how many had to, and how evenly partitions and load are spread over the members.

Who counts as another consumer is the run's `Identity`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeAlias

from kgctl.model.values import frozen_in_order
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.scenario.checks import NO_FILTERS, Filters
from kgctl.simulate.scenario.metric import BALANCE, COUNT, OWNERS, PARTITIONS, SHARE, TIME, Compute, metric

if TYPE_CHECKING:
    from kgctl.simulate.recording.recording import MemberKey

Held = tuple[int, str]
"""A partition as far as it matters: who had it (negative: somebody who is gone), and its topic."""

LARGEST = 60_000
"""Members squared times partitions, up to which it is worked out."""


def is_small(members: int, partitions: int) -> bool:
    """Whether `fewest_moves` answers soon enough to be asked after each run."""
    return members * members * partitions <= LARGEST


def fewest_moves(partitions: Sequence[Held], readers: Mapping[str, Sequence[int]], members: int) -> int:
    """How many of these have to move. ``readers``: topic -> the members, 0 to ``members`` - 1, that subscribe to it."""
    holds: list[Counter[Held]] = [Counter() for _ in range(members)]
    loads = [0] * members
    for home, topic in partitions:
        able = readers.get(topic, ())
        if able:
            holder = home if home in able else min(able, key=lambda member: loads[member])
            holds[holder][home, topic] += 1
            loads[holder] += 1
    while cycle := _negative_cycle(holds, loads, readers):
        for giver, taker, held in cycle:
            holds[giver][held] -= 1
            holds[taker][held] += 1
            loads[giver] -= 1
            loads[taker] += 1
    return sum(count for member, held in enumerate(holds) for (home, _), count in held.items() if home != member)


def _negative_cycle(
    holds: Sequence[Counter[Held]], loads: Sequence[int], readers: Mapping[str, Sequence[int]]
) -> list[tuple[int, int, Held]]:
    """(giver, taker, what) of a cycle that makes it better; empty if there is none."""
    sink = len(holds)
    weight = 4 * (sink + 1)
    arcs: dict[tuple[int, int], tuple[int, Held]] = {}
    for giver, held in enumerate(holds):
        for (home, topic), count in held.items():
            for taker in readers[topic] if count else ():
                cost = (taker != home) - (giver != home) if home >= 0 else 0
                if taker != giver and ((giver, taker) not in arcs or cost < arcs[giver, taker][0]):
                    arcs[giver, taker] = cost, (home, topic)
    costs = {ends: cost for ends, (cost, _) in arcs.items()}
    costs |= {(member, sink): weight * (2 * load + 1) for member, load in enumerate(loads)}
    costs |= {(sink, member): -weight * (2 * load - 1) for member, load in enumerate(loads) if load}
    nodes = _cycle_of(costs, sink + 1)
    return [(giver, taker, arcs[giver, taker][1]) for giver, taker in nodes if sink not in (giver, taker)]


def _cycle_of(costs: Mapping[tuple[int, int], int], nodes: int) -> list[tuple[int, int]]:
    """The arcs of a cycle whose costs come to less than nothing (Bellman and Ford)."""
    distance, before = [0] * nodes, [-1] * nodes
    last = -1
    for _ in range(nodes):
        last = -1
        for (first, second), cost in costs.items():
            if distance[first] + cost < distance[second]:
                distance[second] = distance[first] + cost
                before[second] = last = first
        if last < 0:
            return []
    for _ in range(nodes):
        last = before[last]
    found, node = [], last
    while True:
        found.append((before[node], node))
        node = before[node]
        if node == last:
            return found


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
def moves_min(run: Measured, filters: Filters) -> float:
    """The fewest moves with which any assignor could have gone from each balanced state to the next."""
    snapshots = _snapshots(run, filters)
    key = ("moves_min", run.window(filters), filters.topics)
    found: int = run.kept(key, lambda: sum(_fewest(run, before, after) for before, after in itertools.pairwise(snapshots)))
    return found


def _fewest(run: Measured, before: PlacementSnapshot, after: PlacementSnapshot) -> int:
    """Partitions of members that are gone, and what those that stay have above their quota.

    Quotas are for members with the same subscriptions. With different ones it is worked out (`fewest_moves`), and never more than
    what moved; of large groups only the first part counts, still a lower bound.
    """
    there = frozenset(after.members)
    still = {number: owner for number, owner in before.owners.items() if number in after.owners}
    orphans = sum(owner not in there for owner in still.values())
    if not there:
        return orphans
    topics = {member: run.recording.topics_of(run.history.pods[member[0]].members) for member in after.members}
    if len(set(topics.values())) > 1:
        moved = sum(after.owners[number] != owner for number, owner in still.items())
        return min(_with_unequal_subscriptions(run, still, topics), moved) if is_small(len(there), len(still)) else orphans
    counts = dict.fromkeys(after.members, 0)
    for owner in still.values():
        if owner in counts:
            counts[owner] += 1
    floor, ceilings = divmod(len(after.owners), len(counts))
    ordered = sorted(counts.values(), reverse=True)
    return orphans + sum(max(count - floor - (position < ceilings), 0) for position, count in enumerate(ordered))


def _with_unequal_subscriptions(run: Measured, owners: dict[int, MemberKey], topics: dict[MemberKey, tuple[str, ...]]) -> int:
    places = {member: place for place, member in enumerate(topics)}
    readers: dict[str, list[int]] = {}
    for member, names in topics.items():
        for name in names:
            readers.setdefault(name, []).append(places[member])
    names_of = run.recording.partitions.names
    held = [(places.get(owner, -1), names_of[number].topic) for number, owner in owners.items()]
    return fewest_moves(held, readers, len(places))


@metric(COUNT, ("topic", *TIME), about=OWNERS)
def excess_moves(run: Measured, filters: Filters) -> float:
    """The moves above the fewest."""
    return moves(run, filters) - moves_min(run, filters)


Formula: TypeAlias = Callable[[Sequence[int]], float | None]


def _balance(*, by_load: bool = False, worst: Callable[[Iterable[float]], float] = max) -> Callable[[Formula], Compute]:
    """What makes a formula of the members' partitions, or of the rates of these, a metric's function."""

    def of(formula: Formula) -> Compute:
        @wraps(formula)
        def compute(run: Measured, filters: Filters) -> float | None:
            if filters.statistic not in ("mean", "worst"):
                return formula(_counts(run, filters, run.at(filters), by_load=by_load))
            pieces = _over_time(run, filters, formula, by_load=by_load)
            if not pieces:
                return None
            if filters.statistic == "worst":
                return worst([value for _, value in pieces])
            total_us = sum(length for length, _ in pieces)
            return sum(length * value for length, value in pieces) / total_us if total_us else None

        return compute

    return of


@metric(PARTITIONS, BALANCE, about=OWNERS)
@_balance()
def spread(counts: Sequence[int]) -> float | None:
    """The most partitions of a member less the fewest of one."""
    return max(counts) - min(counts) if counts else None


@metric(SHARE, BALANCE, label="Jain's index of load", is_better_higher=True, is_playable=False, about=OWNERS)
@_balance(by_load=True, worst=min)
def load_jain(rates: Sequence[int]) -> float | None:
    """Jain's fairness index of what is written to the members' partitions: 1 is even, 1/n is everything with one of n members."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


@metric(COUNT, BALANCE, about=OWNERS)
@_balance()
def idle_members(counts: Sequence[int]) -> float | None:
    """Members without a partition."""
    return sum(count == 0 for count in counts)


def _counts(run: Measured, filters: Filters, at_us: int, *, by_load: bool) -> list[int]:
    counts = dict.fromkeys(run.members_at(at_us, filters), 0)
    for number in run.partitions(filters):
        owner = run.owner_at(number, at_us)
        if owner in counts:
            counts[owner] += run.ledger.arrivals.rate_uhz[number] if by_load else 1
    return list(counts.values())


def _over_time(run: Measured, filters: Filters, formula: Formula, *, by_load: bool) -> list[tuple[int, float]]:
    """(length, value) of each calm time: while partitions are on the move there is no balance to speak of."""
    calm = run.calm_times(run.window(filters))
    values = ((last - first, formula(_counts(run, filters, first, by_load=by_load))) for first, last in calm)
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


@metric(SHARE, ("topic", "topic", "at"), label="co-partitioned", is_summary=False, about=OWNERS)
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


@metric(COUNT, ("selector", "at"), is_better_higher=True, counts_pods=True)
def members(run: Measured, filters: Filters) -> float:
    """Members of the group: at the end, or at a time."""
    return len(run.members_at(run.at(filters), filters))
