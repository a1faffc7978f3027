"""What computes each metric, one line each. Names and formulas do not change between versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kgctl.errors import UsageError
from kgctl.simulate.metrics import availability, balance, correctness, lag, movement, rebalances, stability
from kgctl.simulate.metrics.measured import Compute, Measured
from kgctl.simulate.recording.recording import Recording
from kgctl.simulate.scenario.filters import Filters, parse_filters
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
    "stop_the_world": availability.stop_the_world,
    "collateral": availability.collateral,
    "generations": rebalances.generations,
    "rebalances": rebalances.rebalances,
    "rebalance_time": rebalances.rebalance_time,
    "rounds": rebalances.rounds,
    "aborted": rebalances.aborted,
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
    "spread": balance.balance(balance.spread_of, _UNEVEN),
    "max_mean": balance.balance(balance.max_mean_of, _UNEVEN),
    "jain": balance.balance(balance.jain_of, _EVEN),
    "load_jain": balance.balance(balance.jain_of, _EVEN, by_load=True),
    "kip54": balance.balance(balance.kip54_of, _UNEVEN),
    "idle_members": balance.balance(balance.idle_of, _UNEVEN),
    "members": balance.members,
    "cross_rack": balance.cross_rack,
    "copartitioned": balance.copartitioned,
    "lag": lag.lag,
    "lag_peak": lag.lag_peak,
    "backlog": lag.backlog,
    "backlog_peak": lag.backlog_peak,
    "lag_area": lag.lag_area,
    "lag_age": lag.lag_age,
    "latency_mean": lag.latency_mean,
    "latency_p99": lag.latency_p99,
    "drain_time": lag.drain_time,
    "processed": correctness.processed,
    "duplicates": correctness.duplicates,
    "duplicates_bound": correctness.duplicates_bound,
    "double_owned": correctness.double_owned,
    "fenced_commits": correctness.fenced_commits,
    "lost": correctness.lost,
    "errors": correctness.errors,
    "thrash": stability.thrash,
    "flaps": stability.flaps,
    "replicas": stability.replicas,
    "member_seconds": stability.member_seconds,
    "requests": stability.requests,
    "record_bytes": stability.record_bytes,
    "owners": correctness.owners,
    "state": stability.state,
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
        value: float | str | None = compute(self.measured, self.filters(tuple(filters)))
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
        """Every metric of a result, without filters."""
        return {name: self.metric(name) for name, spec in METRIC_SPECS.items() if spec.is_summary}
