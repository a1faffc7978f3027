"""Every metric, one line each: its name, its unit, what computes it. Names and formulas do not change between versions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgctl.errors import UsageError
from kgctl.simulate.metrics import availability, balance, correctness, lag, movement, rebalances, stability
from kgctl.simulate.metrics.measured import Measured
from kgctl.simulate.scenario.filters import Filters, parse_filters

if TYPE_CHECKING:
    from kgctl.simulate.engine.simulation import World

Compute = Callable[[Measured, Filters], "float | str | None"]
S, PS, SHARE, COUNT, RECORDS = "seconds", "partition-seconds", "share", "count", "records"
TIME = ("after", "before")
WHERE = ("topic", "selector", *TIME)
BALANCE = ("topic", "selector", "at", "mean", "worst")


@dataclass(frozen=True, slots=True)
class Metric:
    """``filters``: which kinds make sense. ``is_summary``: it stands in a result's list of metrics, without filters."""

    name: str
    unit: str
    compute: Any
    filters: tuple[str, ...] = TIME
    is_summary: bool = True

    @property
    def help(self) -> str:
        """What it is, in a sentence or two."""
        return str(self.compute.__doc__ or self.name).strip()


_EVEN, _UNEVEN = min, max
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("unavailable", PS, availability.unavailable, ("cause", *WHERE)),
        Metric("availability", SHARE, availability.availability, WHERE),
        Metric("max_gap", S, availability.max_gap, WHERE),
        Metric("gap_p50", S, availability.gap_percentile(50), WHERE),
        Metric("gap_p95", S, availability.gap_percentile(95), WHERE),
        Metric("gap_p99", S, availability.gap_percentile(99), WHERE),
        Metric("gaps", COUNT, availability.gaps, WHERE),
        Metric("stop_the_world", S, availability.stop_the_world, ("share", "topic", *TIME)),
        Metric("collateral", PS, availability.collateral, WHERE),
        Metric("generations", COUNT, rebalances.generations),
        Metric("rebalances", COUNT, rebalances.rebalances, ("cause", *TIME)),
        Metric("rebalance_time", S, rebalances.rebalance_time, ("percentile", "mean", "max", *TIME)),
        Metric("rounds", COUNT, rebalances.rounds),
        Metric("aborted", COUNT, rebalances.aborted),
        Metric("time_to_stable", S, rebalances.time_to_stable, ("event", "at")),
        Metric("kicked", COUNT, rebalances.kicked, ("selector", *TIME)),
        Metric("fenced", COUNT, rebalances.fenced, ("selector", *TIME)),
        Metric("stuck_members", COUNT, rebalances.stuck_members, ("selector", *TIME)),
        Metric("detection_time", S, rebalances.detection_time, ("selector", *TIME)),
        Metric("discovery_delay", S, rebalances.discovery_delay, ("topic", *TIME)),
        Metric("moves", COUNT, movement.moves, ("topic", *TIME)),
        Metric("moves_min", COUNT, movement.moves_min, ("topic", *TIME)),
        Metric("excess_moves", COUNT, movement.excess_moves, ("topic", *TIME)),
        Metric("stickiness", SHARE, movement.stickiness, ("topic", *TIME)),
        Metric("ping_pong", COUNT, movement.ping_pong, ("topic", *TIME)),
        Metric("r_score", "consumers", movement.r_score, ("topic", *TIME)),
        Metric("state_moved", "bytes", movement.state_moved, ("topic", *TIME)),
        Metric("spread", "partitions", balance.balance(balance.spread_of, _UNEVEN), BALANCE),
        Metric("max_mean", SHARE, balance.balance(balance.max_mean_of, _UNEVEN), BALANCE),
        Metric("jain", SHARE, balance.balance(balance.jain_of, _EVEN), BALANCE),
        Metric("load_jain", SHARE, balance.balance(balance.jain_of, _EVEN, by_load=True), BALANCE),
        Metric("kip54", "partitions", balance.balance(balance.kip54_of, _UNEVEN), BALANCE),
        Metric("idle_members", COUNT, balance.balance(balance.idle_of, _UNEVEN), BALANCE),
        Metric("members", COUNT, balance.members, ("selector", "at")),
        Metric("cross_rack", SHARE, balance.cross_rack, ("topic", "at")),
        Metric("copartitioned", SHARE, balance.copartitioned, ("topic", "topic", "at"), is_summary=False),
        Metric("lag", RECORDS, lag.lag, ("topic", "at", "mean", "peak", *TIME)),
        Metric("lag_peak", RECORDS, lag.lag_peak, ("topic", *TIME)),
        Metric("backlog", RECORDS, lag.backlog, ("topic", "at", "mean", "peak", *TIME)),
        Metric("backlog_peak", RECORDS, lag.backlog_peak, ("topic", *TIME)),
        Metric("lag_area", "record-seconds", lag.lag_area, ("topic", *TIME)),
        Metric("lag_age", S, lag.lag_age, ("topic",)),
        Metric("latency_mean", S, lag.latency_mean, ("topic", *TIME)),
        Metric("latency_p99", S, lag.latency_p99, ("topic", *TIME)),
        Metric("drain_time", S, lag.drain_time, ("event", "at", "topic")),
        Metric("processed", RECORDS, correctness.processed, ("topic",)),
        Metric("duplicates", RECORDS, correctness.duplicates, WHERE),
        Metric("duplicates_bound", RECORDS, correctness.duplicates_bound, ("selector", *TIME)),
        Metric("double_owned", PS, correctness.double_owned, ("selector", *TIME)),
        Metric("fenced_commits", COUNT, correctness.fenced_commits, ("error", "selector", *TIME)),
        Metric("lost", RECORDS, correctness.lost, WHERE),
        Metric("errors", COUNT, correctness.errors, ("error", "selector", *TIME)),
        Metric("thrash", "per cent", stability.thrash, ("series", *TIME)),
        Metric("flaps", COUNT, stability.flaps, ("selector", *TIME)),
        Metric("replicas", COUNT, stability.replicas, ("selector", "at", "max", "min", *TIME)),
        Metric("member_seconds", S, stability.member_seconds, ("selector", *TIME)),
        Metric("requests", COUNT, stability.requests, ("api", "peak", "selector", *TIME)),
        Metric("record_bytes", "bytes", stability.record_bytes, ()),
        Metric("owners", COUNT, correctness.owners, ("partition",), is_summary=False),
        Metric("state", "state", stability.state, ("at",), is_summary=False),
    )
}
"""Name -> metric, in the order in which results list them."""


class MetricView:
    """The metrics of one run, so far or whole. Asking changes nothing."""

    def __init__(self, world: World) -> None:
        self.measured = Measured(world)
        self._parsed: dict[tuple[str, ...], Filters] = {}

    def metric(self, name: str, filters: Collection[str] = ()) -> float | str | None:
        """The value; None where there is none. Seconds, records and shares as numbers; infinite for "never".

        Raises:
            UsageError: there is no such metric, or a filter is none.
        """
        found = METRICS.get(name)
        if found is None:
            raise UsageError(f"unknown metric {name!r}")
        value: float | str | None = found.compute(self.measured, self.filters(tuple(filters)))
        return value

    def filters(self, parts: tuple[str, ...]) -> Filters:
        """The filters of these texts. Raises `UsageError`."""
        parsed = self._parsed.get(parts)
        if parsed is None:
            world = self.measured.world
            try:
                parsed = parse_filters(parts, topics=tuple(world.partitions.by_topic), member_sets=tuple(world.sets))
            except ValueError as error:
                raise UsageError(str(error)) from None
            self._parsed[parts] = parsed
        return parsed

    def summary(self) -> dict[str, float | str | None]:
        """Every metric of a result, without filters."""
        return {name: self.metric(name) for name, metric in METRICS.items() if metric.is_summary}
