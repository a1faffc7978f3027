"""Rebalances: how many, how long they take, who falls out of the group, and whether the number of pods swings."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from kgctl.simulate.metrics.measured import SECOND, Measured, seconds, statistic_of
from kgctl.simulate.recording.traffic import LinearSeries
from kgctl.simulate.scenario.checks import Filters
from kgctl.simulate.scenario.metric import (
    BYTES,
    COUNT,
    OWNERS,
    PER_CENT,
    SECONDS,
    STATE,
    TIME,
    MostOfRun,
    metric,
    nothing_unless_scaled,
)
from kgctl.simulate.scenario.vocabulary import HEARTBEATS, REBALANCE_CAUSES, EventStage, rebalance_causes

STUCK_US = 60_000_000


def _logical(run: Measured) -> list[tuple[int, int]]:
    """Times in which the group is not settled, joined where next to nothing lies between."""
    near_us = run.near_us
    found: list[tuple[int, int]] = []
    for first, last in run.history.unsettled.until(run.end_us):
        if found and first - found[-1][1] < near_us:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def _within(run: Measured, filters: Filters) -> list[tuple[int, int]]:
    """The rebalances that begin within the window, of a cause, where one is named."""
    window = run.window(filters)
    found = [(first, last) for first, last in _logical(run) if window[0] <= first <= window[1]]
    cause = filters.cause
    return found if cause is None else [entry for entry in found if _cause(run, entry[0]) == cause]


def _cause(run: Measured, at_us: int) -> str:
    for when, trigger in run.history.triggers:
        if when == at_us:
            api = trigger.partition(" ")[0]
            return REBALANCE_CAUSES.get(api, api)
    return ""


@metric(COUNT)
def generations(run: Measured, filters: Filters) -> float:
    """How often the generation (the group epoch) grew."""
    first, last = run.window(filters)
    points = run.history.group
    return sum(
        max(point.generation - (points[position - 1].generation if position else 0), 0)
        for position, point in enumerate(points)
        if first <= point.at_us <= last
    )


@metric(COUNT, ("cause", *TIME), causes=rebalance_causes(), place=1, unmeasured=("cause",))
def rebalances(run: Measured, filters: Filters) -> float:
    """Logical rebalances: what belongs together counts once."""
    return len(_within(run, filters))


@metric(SECONDS, ("percentile", "mean", "max", *TIME), label="rebalance time")
def rebalance_time(run: Measured, filters: Filters) -> float | None:
    """From the trigger to the last member's taking its assignment over: the longest, or another statistic. None: none."""
    applied = run.history.applied_us
    starts = [first for first, _ in _logical(run)]
    lengths: Counter[int] = Counter()
    for first, last in _within(run, filters):
        following = bisect_right(starts, first)
        limit_us = starts[following] if following < len(starts) else run.end_us + 1
        position = bisect_left(applied, limit_us) - 1
        lengths[max(last, applied[position] if position >= 0 else last) - first] += 1
    return statistic_of(lengths, filters, percent=100)


@metric(COUNT, is_playable=False, about=OWNERS)
def aborted(run: Measured, filters: Filters) -> float:
    """Generations that another one overtook before the group was stable in them."""
    first, last = run.window(filters)
    number, generation, is_open = 0, 0, False
    for point in run.history.group:
        if point.generation > generation:
            number += is_open and first <= point.at_us <= last
            generation, is_open = point.generation, True
        if point.state in ("Stable", "Empty"):
            is_open = False
    return number


_BEATS = frozenset(HEARTBEATS.values())
_SIGNS = _BEATS | {"JoinGroup", "SyncGroup"}


@metric(COUNT, ("callback", "selector", *TIME), hint="calls of the application's", about=OWNERS)
def callbacks(run: Measured, filters: Filters) -> float:
    """Calls of the application's rebalance callbacks: all, those of a kind, or those that get no partition (``empty``)."""
    kinds = [word for word in filters.words if word != "empty"]
    return sum(
        (not kinds or entry.what in kinds) and not ("empty" in filters.words and entry.amount)
        for entry in run.select(run.history.callbacks, replace(filters, words=()))
    )


@metric(
    SECONDS,
    ("percentile", "mean", "max", "min", "selector", *TIME),
    label="between heartbeats",
    is_playable=False,
    about=OWNERS,
)
def heartbeat_time(run: Measured, filters: Filters) -> float | None:
    """From a heartbeat of a member, or its JoinGroup or SyncGroup, to its next heartbeat: the median, or another statistic."""
    window = run.window(filters)
    signs = [(each.pod, each.at_us, int(each.what in _BEATS)) for each in run.history.requests if each.what in _SIGNS]
    signs += [(each.pod, each.at_us, each.amount) for each in run.history.skipped_beats]
    lengths: Counter[int] = Counter()
    for (pod, before_us, _), (same, at_us, beats) in pairwise(sorted(signs)):
        if beats and pod == same and window[0] <= at_us <= window[1] and run.is_meant(pod, filters):
            lengths[(at_us - before_us) // beats] += beats
    return statistic_of(lengths, filters)


@metric(SECONDS, ("event", "at"), label="time to stable", hint="after the last event", place=6)
def time_to_stable(run: Measured, filters: Filters) -> float | None:
    """From the end of the last event, or of the one that is named, until the group is settled with every partition where it
    belongs and stays so: for two heartbeats, and to the end or the next event; never: infinite."""
    times = _disturbed_until(run, filters)
    if times is None:
        return None
    since_us, until_us = times
    for first, last in reversed(run.history.calm.until(run.end_us)):
        if first <= until_us:
            start = max(first, since_us)
            is_open = last == run.end_us and run.history.calm.since_us is not None
            lasts = last >= until_us and (last - start >= _calm_us(run) or is_open)
            return seconds(start - since_us) if lasts else float("inf")
    return float("inf")


def _disturbed_until(run: Measured, filters: Filters) -> tuple[int, int] | None:
    """(when what is asked about was over, when the next event begins, or the run's end)."""
    if filters.at_us is not None:
        return run.start_us + filters.at_us, run.end_us
    if not filters.words:
        lifted = (mark.at_us for mark in run.history.events if mark.lifts)
        over = [at_us for at_us in (*run.history.disturbances, *lifted) if at_us >= run.start_us]
        return max(over, default=run.start_us), run.end_us
    marks = [
        mark.at_us
        for mark in run.history.events
        if mark.event in filters.words and mark.what in (EventStage.BEGINS, EventStage.ENDS)
    ]
    if not marks:
        return None
    following = [mark.at_us for mark in run.history.events if mark.what is EventStage.BEGINS and mark.at_us > marks[-1]]
    return marks[-1], min(following, default=run.end_us)


def _calm_us(run: Measured) -> int:
    """Two heartbeats: how long a group has to be calm to count as stable."""
    interval_ms = max((pod.heartbeat_ms for pod in run.history.pods), default=0)
    if not interval_ms or run.recording.uses_consumer_protocol:
        interval_ms = run.recording.server_heartbeat_ms
    return 2000 * interval_ms


@metric(COUNT, ("selector", *TIME))
def kicked(run: Measured, filters: Filters) -> float:
    """Members that were taken out while their process lived: by a timer, or by their client past max.poll.interval.ms."""
    return run.total(run.history.kicked, filters)


@metric(COUNT, ("selector", *TIME), is_playable=False, about=OWNERS)
def fenced(run: Measured, filters: Filters) -> float:
    """Answers that told a member that another has its place."""
    return run.total(run.history.fenced, filters)


def _nobody_in_less(run: MostOfRun, filters: Filters) -> float:
    """Nobody is stuck in a shorter time."""
    return math.inf if run.window_s(filters) > STUCK_US / SECOND else 0.0


@metric(COUNT, ("selector", *TIME), is_grave=True, most=_nobody_in_less)
def stuck_members(run: Measured, filters: Filters) -> float:
    """Pods whose consumer ran for more than 60 s at a stretch without being in the group."""
    return sum(stuck_since(run, pod, run.window(filters)) is not None for pod in run.pods(filters))


def stuck_since(run: Measured, pod: int, window: tuple[int, int]) -> int | None:
    """From when on its consumer ran for more than 60 s outside of the group; None: at no time."""
    history = run.history.pods[pod]
    inside = history.in_group.until(window[1])
    for first, last in run.clip(history.running.until(window[1]), window):
        free = first
        for start, stop in [*(entry for entry in inside if entry[1] > first), (last, last)]:
            if min(start, last) - free > STUCK_US:
                return free
            free = max(free, stop)
    return None


@metric(SECONDS, ("selector", *TIME), label="detection time")
def detection_time(run: Measured, filters: Filters) -> float | None:
    """From the end of a process to its member's being taken out, where its pod is not back by then: the longest. None: none."""
    found = run.select(run.history.detections, filters)
    return seconds(max(entry.amount for entry in found)) if found else None


@metric(SECONDS, ("topic", *TIME), label="discovery delay")
def discovery_delay(run: Measured, filters: Filters) -> float | None:
    """From the creation of a partition to its first consumer: the longest. Infinite: one has had none yet."""
    table = run.recording.partitions
    created = [number for number in run.partitions(filters) if table.created_us[number] > 0 and table.deleted_us[number] is None]
    if any(run.owners.last_owner[number] < 0 for number in created):
        return float("inf")
    found = run.select(run.history.discoveries, filters)
    return seconds(max(entry.amount for entry in found)) if found else None


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
        for first, last in run.clip(getattr(run.history.pods[pod], which).until(window[1]), window):
            changes[first] += 1
            changes[last] -= 1
    found, number = [], 0
    for at_us in sorted(changes):
        number += changes[at_us]
        if at_us < window[1]:
            found.append((at_us, number))
    return found


@metric(
    PER_CENT,
    ("series", *TIME),
    label="thrash %",
    hint="up and down again; 0: one direction only",
    unmeasured=("lag",),
    most=nothing_unless_scaled,
)
def thrash(run: Measured, filters: Filters) -> float:
    """How much ``replicas``, ``members`` or ``lag`` goes up and down again, in per cent of its range."""
    what = filters.word or "replicas"
    if what == "lag":
        run.recording.settle_traffic()
        merged = LinearSeries.merged(series for _, series in run.ledger.lags())
        return thrash_of([float(value) for _, value in merged.points(*run.window(filters))])
    which = "in_group" if what == "members" else "wanted"
    return thrash_of([float(number) for _, number in _counts(run, which, filters)])


@metric(COUNT, ("selector", *TIME), hint="changes of direction within 10 minutes", most=nothing_unless_scaled)
def flaps(run: Measured, filters: Filters) -> float:
    """Changes of direction of the number of replicas within 10 minutes."""
    points = list(_counts(run, "wanted", filters))
    steps = [(right[0], right[1] - left[1]) for left, right in pairwise(points) if right[1] != left[1]]
    return sum((left[1] > 0) != (right[1] > 0) and right[0] - left[0] <= FLAP_US for left, right in pairwise(steps))


@metric(COUNT, ("selector", "at", "max", "min", *TIME), hint="pods wanted, at the end", counts_pods=True)
def replicas(run: Measured, filters: Filters) -> float:
    """Pods that are wanted: at the end, at a time, or the most or fewest."""
    points = _counts(run, "wanted", filters)
    if filters.statistic in ("max", "peak"):
        return max(number for _, number in points)
    if filters.statistic == "min":
        return min(number for _, number in points)
    at_us = run.at(filters)
    return next((number for when, number in reversed(points) if when <= at_us), 0)


@metric(SECONDS, ("selector", *TIME), label="member seconds", counts_pods=True)
def member_seconds(run: Measured, filters: Filters) -> float:
    """The sum over the pods of the time in which their consumers ran."""
    window = run.window(filters)
    total = 0
    for pod in run.pods(filters):
        total += sum(last - first for first, last in run.clip(run.history.pods[pod].running.until(window[1]), window))
    return seconds(total)


@metric(COUNT, ("api", "peak", "selector", *TIME), is_playable=False)
def requests(run: Measured, filters: Filters) -> float:
    """Requests that the brokers got, those of quiet times included where no time is named; ``peak``: in the busiest second."""
    found = run.select(run.history.requests, filters)
    if filters.statistic is not None:
        return max(Counter(entry.at_us // 1_000_000 for entry in found).values(), default=0)
    number = len(found)
    if filters.before_us is None and filters.after_us is None and filters.selector is None:
        skipped = run.history.skipped_requests
        number += sum(count for api, count in skipped.items() if not filters.words or api in filters.words)
    return number


@metric(BYTES, (), is_playable=False, about=OWNERS)
def record_bytes(run: Measured, filters: Filters) -> float:  # noqa: ARG001  # there is nothing to choose from
    """The largest GroupMetadata record that was written (a classic group has one record for all its members)."""
    from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey
    from kgctl.serde.coordinator_records import encode_record

    largest = run.recording.largest
    if largest is None:
        return 0
    key, value = encode_record(CoordinatorRecord(GroupMetadataKey(run.recording.scenario.group_id), largest))
    return len(key) + len(value or b"")


@metric(STATE, ("at",), is_summary=False)
def state(run: Measured, filters: Filters) -> str:
    """The group's state, by Kafka's name: now, or at a time."""
    at_us = run.at(filters)
    return next((point.state for point in reversed(run.history.group) if point.at_us <= at_us), "Dead")
