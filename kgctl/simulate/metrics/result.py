"""What computes each metric, one line each, and a run with its metrics. Names and formulas do not change between versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import UsageError
from kgctl.simulate.engine import run as engine
from kgctl.simulate.engine.run import NO_LIMITS, RunLimits
from kgctl.simulate.metrics import availability, movement, rebalances, records
from kgctl.simulate.metrics.measured import Compute, Measured
from kgctl.simulate.recording.owners import cause_of
from kgctl.simulate.recording.recording import Identity, Recording
from kgctl.simulate.recording.trace import Observer
from kgctl.simulate.scenario.checks import Filters, parse_filters
from kgctl.simulate.scenario.model import Scenario
from kgctl.simulate.scenario.vocabulary import METRIC_SPECS

_EVEN, _UNEVEN = min, max
COMPUTE: Mapping[str, Compute] = {
    "unavailable": availability.unavailable,
    "availability": availability.availability,
    "max_gap": availability.max_gap,
    "gap_p50": availability.gap_percentile(50),
    "gap_p95": availability.gap_percentile(95),
    "gap_p99": availability.gap_percentile(99),
    "gaps": availability.gaps,
    "partition_gap": availability.partition_gap,
    "takeover_min": availability.takeover(0),
    "takeover_p50": availability.takeover(50),
    "takeover_max": availability.takeover(100),
    "first_owned": availability.first_owned,
    "all_owned": availability.all_owned,
    "stop_the_world": availability.stop_the_world,
    "collateral": availability.collateral,
    "generations": rebalances.generations,
    "rebalances": rebalances.rebalances,
    "rebalance_time": rebalances.rebalance_time,
    "rounds": rebalances.rounds,
    "aborted": rebalances.aborted,
    "callbacks": availability.callbacks,
    "heartbeat_time": availability.heartbeat_time,
    "time_to_stable": rebalances.time_to_stable,
    "kicked": rebalances.kicked,
    "fenced": rebalances.fenced,
    "stuck_members": rebalances.stuck_members,
    "detection_time": rebalances.detection_time,
    "discovery_delay": rebalances.discovery_delay,
    "moves": movement.moves,
    "moves_min": movement.moves_min,
    "excess_moves": movement.excess_moves,
    "stickiness": movement.stickiness,
    "ping_pong": movement.ping_pong,
    "r_score": movement.r_score,
    "state_moved": movement.state_moved,
    "spread": movement.balance(movement.spread_of, _UNEVEN),
    "max_mean": movement.balance(movement.max_mean_of, _UNEVEN),
    "jain": movement.balance(movement.jain_of, _EVEN),
    "load_jain": movement.balance(movement.jain_of, _EVEN, by_load=True),
    "kip54": movement.balance(movement.kip54_of, _UNEVEN),
    "idle_members": movement.balance(movement.idle_of, _UNEVEN),
    "members": movement.members,
    "cross_rack": movement.cross_rack,
    "copartitioned": movement.copartitioned,
    "lag": records.lag,
    "lag_peak": records.lag_peak,
    "backlog": records.backlog,
    "backlog_peak": records.backlog_peak,
    "lag_area": records.lag_area,
    "lag_age": records.lag_age,
    "latency_mean": records.latency_mean,
    "latency_p99": records.latency_p99,
    "drain_time": records.drain_time,
    "processed": records.processed,
    "duplicates": records.duplicates,
    "duplicates_bound": records.duplicates_bound,
    "double_owned": records.double_owned,
    "fenced_commits": records.fenced_commits,
    "lost": records.lost,
    "errors": records.errors,
    "thrash": rebalances.thrash,
    "flaps": rebalances.flaps,
    "replicas": rebalances.replicas,
    "member_seconds": rebalances.member_seconds,
    "requests": rebalances.requests,
    "record_bytes": rebalances.record_bytes,
    "owners": records.owners,
    "state": rebalances.state,
}
"""Metric of `kgctl.simulate.scenario.vocabulary` -> what computes it."""


class MetricView:
    """The metrics of one run, so far or whole. Asking changes nothing."""

    def __init__(self, recording: Recording) -> None:
        self.measured = Measured(recording)
        self._parsed: dict[tuple[str, ...], Filters] = {}

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """The value; None where there is none. Seconds, records and shares as numbers; infinite for "never".

        Raises:
            UsageError: there is no such metric, or a filter is none.
        """
        compute = COMPUTE.get(name)
        if compute is None:
            raise UsageError(f"unknown metric {name!r}")
        parsed = self.filters(tuple(filters))
        if not self.measured.has(parsed):
            return None
        value: float | str | None = compute(self.measured, parsed)
        return value

    def filters(self, parts: tuple[str, ...]) -> Filters:
        """The filters of these texts. Raises `UsageError`."""
        parsed = self._parsed.get(parts)
        if parsed is None:
            recording = self.measured.recording
            try:
                parsed = parse_filters(parts, topics=tuple(recording.partitions.by_topic), member_sets=recording.member_sets)
            except ValueError as error:
                raise UsageError(str(error)) from None
            self._parsed[parts] = parsed
        return parsed

    def summary(self) -> dict[str, float | str | None]:
        """Return every metric of a result, without filters."""
        return {name: self.metric(name) for name, spec in METRIC_SPECS.items() if spec.is_summary}


@dataclass(frozen=True, slots=True)
class LaneSegment:
    """Part of a partition's lane: who consumed it, or (``owner`` None) why nobody did. Times are from the end of the warm-up."""

    from_us: int
    to_us: int
    owner: str | None
    cause: str | None


class RunResult:
    """A run that is over, measured. ``stopped`` is "" or the limit that ended it; ``digest`` is that of its event log."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.seed = recording.seed
        self.metrics = MetricView(recording)
        self.digest, self.events, self.tasks, self.stopped = recording.ending

    @property
    def end_us(self) -> int:
        """Return when it ended, after the end of the warm-up."""
        return self.recording.end_us - self.recording.start_us

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """Return a metric's value, as `MetricView.metric` does."""
        return self.metrics.metric(name, filters)

    def summary(self) -> dict[str, float | str | None]:
        """Return every metric of a result."""
        return self.metrics.summary()

    def final_assignment(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Return pod -> topic -> partitions that it consumes at the end."""
        return self.metrics.measured.assignment()

    def longest_gaps(self) -> Mapping[str, float]:
        """Return partition ("topic-0") -> its longest gap in seconds, the longest first; none of those without a gap."""
        labels = self.recording.partitions.labels
        found = sorted(availability.longest_gaps(self.metrics.measured).items(), key=lambda entry: (-entry[1], entry[0]))
        return {labels[number]: length_us / 1_000_000 for number, length_us in found if length_us}

    def lanes(self, *, with_warmup: bool = False) -> Mapping[str, list[LaneSegment]]:
        """Return partition ("topic-0") -> its lane, in order of topics and numbers."""
        measured = self.metrics.measured
        offset = measured.start_us
        window = (0 if with_warmup else offset, measured.end_us)
        table, pods = self.recording.partitions, self.recording.history.pods
        return {
            str(table.names[number]): [
                LaneSegment(first - offset, last - offset, pods[value].name, None)
                if value >= 0
                else LaneSegment(first - offset, last - offset, None, cause_of(value).label)
                for first, last, value in measured.segments(number, window)
            ]
            for number in sorted(range(len(table)), key=lambda number: table.names[number])
            if table.counted[number]
        }

    def events_marks(self) -> list[tuple[int, str, str, str]]:
        """Return (time, event, what, target) of the scenario's events, for the reports."""
        offset = self.recording.start_us
        return [(mark.at_us - offset, mark.name, mark.what, mark.target) for mark in self.recording.history.events]

    def records(self) -> list[tuple[int, AppendRecord]]:
        """Return (time from the run's begin, record) of the coordinator's log, in order; empty unless it was kept."""
        return self.recording.log()


def run(
    scenario: Scenario,
    seed: int,
    *,
    observers: Sequence[Observer] = (),
    limits: RunLimits = NO_LIMITS,
    keeps_records: bool = False,
    keeps_all_commits: bool = False,
    identity: Identity = Identity.POD,
    others: dict[str, Recording] | None = None,
) -> RunResult:
    """Run one variant with one seed, as `kgctl.simulate.engine.run.run` does, and measure it.

    Raises:
        UsageError: the scenario contradicts itself (settings, names). InvariantViolation: a bug, with the group's story.
    """
    recording = engine.run(
        scenario,
        seed,
        observers=observers,
        limits=limits,
        keeps_records=keeps_records,
        keeps_all_commits=keeps_all_commits,
        identity=identity,
        read=MetricView,
        others=others,
    )
    return RunResult(recording)
