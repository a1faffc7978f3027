"""What is written and not committed, not read, how long it waits; what is processed twice or not at all. Amounts are records."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from kgctl.simulate.metrics.measured import Measured, seconds
from kgctl.simulate.recording.traffic import LinearSeries, Wait
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.fields import full_batch_us, member_config
from kgctl.simulate.scenario.metric import COUNT, OWNERS, PARTITION_SECONDS, RECORDS, SECONDS, TIME, WHERE, metric
from kgctl.simulate.scenario.quantities import UNIT_PR

Sums: TypeAlias = Callable[[], Iterable[tuple[str, LinearSeries]]]
"""Gives topics with their sums, up to the present once the traffic is settled; those of one topic add up."""


def _records(amount_pr: int) -> float:
    return round(amount_pr / UNIT_PR, 6)


def _series(run: Measured, found: Sums, filters: Filters) -> list[LinearSeries]:
    """Return the sums of the topics that are named, or of all to which a member of the group subscribes."""
    run.recording.settle_traffic()
    table = run.recording.partitions
    read = {table.names[number].topic for number in range(len(table)) if table.counted[number]}
    return [series for topic, series in found() if topic in (filters.topics or read)]


def _peak(all_series: Iterable[LinearSeries], first: int, last: int) -> int:
    """Return the highest value of the sum of several series."""
    merged = LinearSeries.merged(all_series)
    return max((value for _, value in merged.points(first, last)), default=0)


@metric(RECORDS, ("topic", "at", "mean", "peak", *TIME))
def lag(run: Measured, filters: Filters) -> float:
    """Written and not committed (share groups: not acknowledged), as Kafka's tools show it: at the end, at a time, or its mean or
    peak."""
    return amount_of(run, "lag", run.ledger.lags, filters)


@metric(RECORDS, ("topic", "at", "mean", "peak", *TIME))
def backlog(run: Measured, filters: Filters) -> float:
    """The records that are written and not yet read (share groups: that no member has): at the end, at a time, or their mean or
    peak."""
    return amount_of(run, "backlog", run.ledger.backlog.items, filters)


def amount_of(run: Measured, what: str, found: Sums, filters: Filters) -> float:
    """Return a sum of records at the end, at a time, or its mean or peak."""
    first, last = run.window(filters)
    if filters.statistic in ("max", "peak", "worst"):
        return max(_records(_peak(_series(run, found, filters), first, last)), 0.0)
    if filters.statistic == "mean":
        area = sum(entry.area(first, last) for entry in _series(run, found, filters))
        return _records(area // (2 * max(last - first, 1)))
    if filters.at_us is None:
        return max(_records(sum(entry.value(last) for entry in _series(run, found, filters))), 0.0)
    pieces = run.kept((what, filters.topics), lambda: LinearSeries.merged(_series(run, found, filters)).pieces(run.end_us))
    return max(_records(_value_in(pieces, run.at(filters))), 0.0)


def _value_in(pieces: Sequence[tuple[int, int, int, int]], at_us: int) -> int:
    """What it had come to by then, without a jump of that very moment."""
    from_us, to_us, first, last = pieces[max(bisect_left(pieces, at_us, key=itemgetter(0)) - 1, 0)]
    return first + (last - first) * (at_us - from_us) // (to_us - from_us) if to_us > from_us else last


@metric(RECORDS, ("topic", *TIME))
def lag_peak(run: Measured, filters: Filters) -> float:
    """The highest lag."""
    return max(_records(_peak(_series(run, run.ledger.lags, filters), *run.window(filters))), 0.0)


@metric(RECORDS, ("topic", *TIME))
def backlog_peak(run: Measured, filters: Filters) -> float:
    """The highest backlog."""
    return _records(_peak(_series(run, run.ledger.backlog.items, filters), *run.window(filters)))


@metric(SECONDS, ("topic", *TIME), label="latency p99", is_of_records=True, is_wait=True)
def latency_p99(run: Measured, filters: Filters) -> float | None:
    """The time that 99 % of the records wait at most between being written and being read, or have waited when the run ends."""
    run.recording.settle_traffic()
    first, last = run.window(filters)
    written = sum(
        run.ledger.arrivals.total_pr(number, last) - run.ledger.arrivals.total_pr(number, first)
        for number in run.partitions(filters)
    )
    meant = frozenset(run.partitions(filters))
    waits = [wait for wait in run.ledger.waits if first < wait.at_us <= last and wait.number in meant]
    waits += _still_waiting(run, meant) if last == run.end_us else ()
    return seconds(_slowest(waits, written // 100)) if written else None


def _still_waiting(run: Measured, numbers: Iterable[int]) -> Iterator[Wait]:
    """Yield what is written and not read, with how long it has waited."""
    at_us, arrivals = run.end_us, run.ledger.arrivals
    for number in numbers:
        position_pr = run.ledger.position_pr(number, at_us)
        unread_pr = arrivals.total_pr(number, at_us) - position_pr
        if unread_pr >= UNIT_PR:
            yield Wait(at_us, number, unread_pr, 0, at_us - arrivals.arrived_us(number, position_pr))


def _slowest(waits: list[Wait], amount: int) -> int:
    """The wait that only this amount exceeds; within an entry waits are spread evenly."""
    low, high = 0, max((wait.longest_us for wait in waits), default=0)
    while low < high:
        middle = (low + high) // 2
        above = 0
        for _, _, mass, shortest, longest in waits:
            if shortest >= middle:
                above += mass
            elif longest > middle:
                above += mass * (longest - middle) // (longest - shortest)
        if above > amount:
            low = middle + 1
        else:
            high = middle
    return low


@metric(SECONDS, ("topic",), label="lag age", is_of_records=True, about=OWNERS)
def lag_age(run: Measured, filters: Filters) -> float | None:
    """How old the oldest record is that is not committed. None: none was written."""
    run.recording.settle_traffic()
    at_us = run.end_us
    if not any(run.ledger.arrivals.total_pr(number, at_us) for number in run.partitions(filters)):
        return None
    ages = [0]
    for number in run.partitions(filters):
        committed = max(run.ledger.committed_by(number), 0) * UNIT_PR
        if run.ledger.arrivals.total_pr(number, at_us) - committed >= UNIT_PR:
            ages.append(at_us - run.ledger.arrivals.arrived_us(number, committed))
    return seconds(max(ages))


@metric(SECONDS, ("event", "at", "topic"), label="time to drain", is_playable=False, is_of_records=True, is_wait=True)
def drain_time(run: Measured, filters: Filters) -> float | None:
    """From an event (none: the last) until the backlog is as before it (none: the first), or 1 % above; never: infinite."""
    since_us = run.event_us(filters)
    if since_us is None:
        return None
    is_meant = filters.words or filters.at_us is not None
    calm_us = since_us if is_meant else run.touched_us[0]
    merged = LinearSeries.merged(_series(run, run.ledger.backlog.items, Filters(topics=filters.topics)))
    before = merged.value(max(calm_us - 1, 0))
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


@metric(RECORDS, WHERE, hint="records processed twice", place=5)
def duplicates(run: Measured, filters: Filters) -> float:
    """Records that are processed again: read and not committed when a partition was lost, and the work of zombies."""
    return run.total(run.history.duplicates, filters) + _zombie_work(run, filters)


def _zombie_work(run: Measured, filters: Filters) -> int:
    """What processes read of partitions that others read already.

    One that stood still finds everything that was written meanwhile, and reads it in polls until it hears that it is out.
    """
    if run.recording.is_played:
        return 0
    window = run.window(filters)
    unread_pr: dict[tuple[int, int, int], int] = {}
    for number, first, last, pod in run.owners.double_owned:
        if run.is_meant(pod, filters) and window[0] <= last <= window[1]:
            found_pr = run.ledger.arrivals.total_pr(number, last) - _position_pr(run, number, pod, first)
            unread_pr[pod, first, last] = unread_pr.get((pod, first, last), 0) + max(found_pr, 0)
    read_pr = (min(found_pr, _readable_pr(run, pod, last - first)) for (pod, first, last), found_pr in unread_pr.items())
    return sum(read_pr) // UNIT_PR


def _position_pr(run: Measured, number: int, pod: int, at_us: int) -> int:
    """Return the pod's read position when the other pod began to read."""
    own = (number, run.history.pods[pod].name)
    marks = [mark for mark in run.history.overtaken if (mark.number, mark.pod) == own and mark.at_us <= at_us]
    return marks[-1].position_pr if marks else run.ledger.arrivals.total_pr(number, at_us)


def _readable_pr(run: Measured, pod: int, length_us: int) -> int:
    """What it can read in this time: a batch with each poll() but the first, and no more than it processes.

    The first returns what had been fetched before the process stood still, next to nothing, and only then asks for more.
    """
    found = run.history.pods[pod]
    config = member_config(found.members, found.settings)
    turn_us = full_batch_us(found.members, config) + found.members.poll.mean_us
    polls = max(-(-max(length_us - 2 * found.latency_us, 0) // max(turn_us, 1_000)) - 1, 0)
    return polls * config.max_poll_records * UNIT_PR


@metric(PARTITION_SECONDS, ("selector", *TIME), label="two owners p*s", about=OWNERS)
def double_owned(run: Measured, filters: Filters) -> float:
    """Partition-seconds in which two processes consumed one."""
    window = run.window(filters)
    ended = [(first, last) for _, first, last, pod in run.owners.double_owned if run.is_meant(pod, filters)]
    still = [(since, run.end_us) for _, pod, since in run.owners.older_consumers() if run.is_meant(pod, filters)]
    return seconds(sum(last - first for first, last in run.clip([*ended, *still], window)))


@metric(COUNT, ("error", "selector", *TIME), about=OWNERS)
def fenced_commits(run: Measured, filters: Filters) -> float:
    """Commits that were refused because the member was out, or behind."""
    return run.total(run.history.fenced_commits, filters)


@metric(RECORDS, WHERE, about=OWNERS)
def lost(run: Measured, filters: Filters) -> float:
    """The records that nobody processes."""
    return run.total(run.history.lost, filters)


@metric(COUNT, ("error", "selector", *TIME), is_grave=True)
def errors(run: Measured, filters: Filters) -> float:
    """Answers with an error, and what consumers threw; of one code, where one is named. Not what every rebalance has."""
    return run.total(run.history.errors, filters)


@metric(COUNT, ("partition",), is_summary=False, about=OWNERS)
def owners(run: Measured, _: Filters) -> float:
    """The most processes that consume one partition now."""
    lanes = run.owners
    if lanes.has_doubles:
        return max(lanes.consumers(number) for number in range(len(lanes.owner)))
    return 1 if lanes.unowned < len(lanes.owner) else 0


@metric(RECORDS, ("topic",), is_better_higher=True)
def processed(run: Measured, filters: Filters) -> float:
    """The records that were read for the first time."""
    run.recording.settle_traffic()
    at_us = run.end_us
    return sum(run.ledger.position_pr(number, at_us) for number in run.partitions(filters)) // UNIT_PR


def bends(run: Measured, first: int, last: int) -> list[int]:
    """The times between two at which a lag, a backlog or what is in flight bends or jumps: between these they are even."""
    run.recording.settle_traffic()
    share = run.recording.share
    sums = chain(run.ledger.lags(), run.ledger.backlog.items(), () if share is None else share.in_flight.items())
    return sorted({at_us for _, series in sums for at_us in series.changes(first, last)})
