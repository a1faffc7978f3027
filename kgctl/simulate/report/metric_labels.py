"""How each metric is shown to people: its label, its unit, a hint. A metric that is not here is shown under its own name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kgctl.simulate.report.outcome import Observed

SECONDS = "seconds"
PARTITION_SECONDS = "partition-seconds"
COUNT = "count"
SHARE = "share"


@dataclass(frozen=True, slots=True)
class Look:
    """``headline``: always in the table, whether an expectation names it or not."""

    label: str
    unit: str = COUNT
    hint: str = ""
    headline: bool = False


LOOKS: Mapping[str, Look] = {
    "rebalances": Look("rebalances", headline=True),
    "unavailable": Look("unavailable p*s", PARTITION_SECONDS, "partition-seconds without a consumer", headline=True),
    "max_gap": Look("longest gap", SECONDS, "one partition, nobody", headline=True),
    "moves": Look("partitions moved", headline=True),
    "duplicates": Look("duplicates", COUNT, "records processed twice", headline=True),
    "time_to_stable": Look("time to stable", SECONDS, "after the last event", headline=True),
    "collateral": Look("collateral p*s", PARTITION_SECONDS, "of partitions that did not move"),
    "stop_the_world": Look("stop the world", SECONDS, "nobody consumed anything"),
    "gap_p50": Look("gap p50", SECONDS),
    "gap_p95": Look("gap p95", SECONDS),
    "gap_p99": Look("gap p99", SECONDS),
    "rebalance_time": Look("rebalance time", SECONDS),
    "lag_age": Look("lag age", SECONDS),
    "latency_p99": Look("latency p99", SECONDS),
    "drain_time": Look("time to drain", SECONDS),
    "double_owned": Look("two owners", SECONDS),
    "discovery_delay": Look("discovery delay", SECONDS),
    "detection_time": Look("detection time", SECONDS),
    "member_seconds": Look("member seconds", SECONDS),
    "replicas": Look("replicas", COUNT, "pods wanted, at the end"),
    "flaps": Look("flaps", COUNT, "changes of direction within 10 minutes"),
    "thrash": Look("thrash %", COUNT, "up and down again; 0: one direction only"),
    "availability": Look("availability", SHARE),
    "stickiness": Look("stickiness", SHARE),
    "jain": Look("Jain's index", SHARE),
    "load_jain": Look("Jain's index of load", SHARE),
    "cross_rack": Look("cross-rack", SHARE),
    "copartitioned": Look("co-partitioned", SHARE),
}


def look_of(metric: str) -> Look:
    """The look of a metric; one with a filter (``unavailable(cause boot)``) has the unit of the metric and its own full name."""
    known = LOOKS.get(metric)
    if known is not None:
        return known
    base = LOOKS.get(metric.partition("(")[0].strip())
    return Look(metric, base.unit if base else COUNT)


def show(metric: str, value: Observed) -> str:
    """A value of this metric as people read it: ``3.2s``, ``7,689``, ``never``."""
    if value is None:
        return "-"
    if isinstance(value, (str, bool)):
        return str(value).lower() if isinstance(value, bool) else value
    unit = look_of(metric).unit
    if math.isinf(value):
        return "never" if unit == SECONDS else "infinite"
    if math.isnan(value):
        return "-"
    return f"{_seconds(value)}s" if unit == SECONDS else _share(value) if unit == SHARE else _amount(value)


def _seconds(value: float) -> str:
    if value != 0 and abs(value) < 0.0995:
        return _trimmed(f"{value:.3f}") if abs(value) >= 0.0005 else "<0.001"
    return _trimmed(f"{value:,.1f}")


def _amount(value: float) -> str:
    """Whole numbers as they are; others with one digit while that says something."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else _small(value)


def _small(value: float) -> str:
    return _trimmed(f"{value:.1f}") if abs(value) >= 0.95 else _trimmed(f"{value:.3g}")


def _share(value: float) -> str:
    return _trimmed(f"{value:.4f}")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def duration(us: int) -> str:
    """A moment or a length of virtual time: ``-5s``, ``1m 30s``, ``2h``, ``0.25s``."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    hours, rest = divmod(us, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    parts = [f"{hours}h"] * bool(hours) + [f"{minutes}m"] * bool(minutes)
    if rest or not parts:
        parts.append(f"{_trimmed(f'{rest / 1_000_000:.3f}')}s")
    return sign + " ".join(parts)
