"""An autoscaler as values: ``autoscale:`` of a scenario, in the terms of Kubernetes' HorizontalPodAutoscaler and of KEDA."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kgctl.model.values import quick_enum
from kgctl.simulate.scenario.quantities import format_duration, parse_duration, shown

SECOND_US = 1_000_000


@quick_enum
class ScaleMetric(StrEnum):
    """What is measured, and how the number of pods follows from it.

    LAG: records that are not committed, in all; the target is an average for each pod (``AverageValue``, as KEDA's Kafka scaler
    has it). LAG_AGE: the age of the oldest such record (``Value``: the pods grow in proportion). CPU: what the pods process of
    what they can process (``Utilization``).
    """

    LAG = "lag"
    LAG_AGE = "lag-age"
    CPU = "cpu"


@quick_enum
class Select(StrEnum):
    """Which of several policies counts: the one that allows most, the one that allows least, or no change at all."""

    MAX = "max"
    MIN = "min"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most ``amount`` pods, or per cent of the pods at its beginning, within any ``period_us``."""

    amount: int
    is_percent: bool
    period_us: int

    def __str__(self) -> str:
        return f"{self.amount}{'%' * self.is_percent} per {self.period_us / SECOND_US:g}s"


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """One direction. ``stabilize_us``: the most careful recommendation of this long counts (for more pods: the lowest)."""

    stabilize_us: int
    policies: tuple[ScalingPolicy, ...]
    select: Select = Select.MAX


SCALE_UP = ScalingRules(
    0,
    (ScalingPolicy(100, is_percent=True, period_us=15 * SECOND_US), ScalingPolicy(4, is_percent=False, period_us=15 * SECOND_US)),
)
"""Kubernetes' default: double, or 4 more, within 15 s; at once."""
SCALE_DOWN = ScalingRules(300 * SECOND_US, (ScalingPolicy(100, is_percent=True, period_us=15 * SECOND_US),))
"""Kubernetes' default: any number, but not below what was recommended within 5 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscale:
    """``target``: records for LAG, microseconds for LAG_AGE, per cent for CPU. Times are microseconds.

    ``every_us``: the HPA's sync period. ``poll_us``: KEDA's pollingInterval, which decides about the first pod and the last one,
    and with ``use_cached_metrics`` how old a measurement the HPA gets; without it each sync measures anew. ``cooldown_us``: how
    long nothing has to be there before the last pod goes (``minimum`` 0). ``activation``: above this lag something is there.
    The rest is KEDA's by name.
    """

    members: str
    target: int
    metric: ScaleMetric = ScaleMetric.LAG
    minimum: int = 1
    maximum: int = 100
    every_us: int = 15 * SECOND_US
    tolerance_ppm: int = 100_000
    up: ScalingRules = SCALE_UP
    down: ScalingRules = SCALE_DOWN
    poll_us: int = 30 * SECOND_US
    use_cached_metrics: bool = False
    cooldown_us: int = 300 * SECOND_US
    activation: int = 0
    allow_idle_consumers: bool = False
    limit_to_partitions_with_lag: bool = False
    exclude_persistent_lag: bool = False


_POLICY = re.compile(r"\s*(\d{1,9})\s*(%|pods?)?\s+per\s+(\S+)\s*")
_LONGEST_PERIOD_US, _LONGEST_WINDOW_US = 1_800_000_000, 3_600_000_000


def policy(raw: object) -> ScalingPolicy:
    """``100% per 15s``, ``1 per 2m`` or ``4 pods per 1m``.

    Raises:
        ValueError: it is none, or one that Kubernetes refuses.
    """
    match = _POLICY.fullmatch(raw) if isinstance(raw, str) else None
    if match is None or not int(match.group(1)):
        raise ValueError(f"{shown(raw)} is no scaling policy; write one such as 100% per 15s or 1 per 2m")
    period_us = parse_duration(match.group(3))
    if not 1_000_000 <= period_us <= _LONGEST_PERIOD_US:
        raise ValueError(f"the period of a policy is 1s to 30m in Kubernetes, not {match.group(3)}")
    return ScalingPolicy(int(match.group(1)), match.group(2) == "%", period_us)


def policies(raw: object) -> tuple[ScalingPolicy, ...]:
    """One policy, or a list of them."""
    entries = raw if isinstance(raw, list) else [raw]
    if not entries:
        raise ValueError("there is no policy; to forbid a direction, write select: disabled")
    return tuple(policy(entry) for entry in entries)


def window(raw: object) -> int:
    """A stabilisation window."""
    length_us = parse_duration(raw)
    if length_us > _LONGEST_WINDOW_US:
        raise ValueError(f"a stabilisation window is at most 1h in Kubernetes, not {format_duration(length_us)}")
    return length_us


def period(raw: object) -> int:
    """How often something is done: more than 0."""
    length_us = parse_duration(raw)
    if not length_us:
        raise ValueError("must be more than 0s")
    return length_us


def records(raw: object) -> int:
    """Records for each pod."""
    if type(raw) is not int or raw < 1:
        raise ValueError(f"the target of lag is a number of records for each pod, such as 1000, not {shown(raw)}")
    return raw


def age(raw: object) -> int:
    """A time, in microseconds."""
    try:
        return period(raw)
    except ValueError:
        raise ValueError(f"the target of lag-age is a time, such as 30s, not {shown(raw)}") from None


def percent(raw: object) -> int:
    """Whole per cent."""
    match = re.fullmatch(r"\s*(\d{1,3})\s*%\s*", raw) if isinstance(raw, str) else None
    if match is None or not 1 <= int(match.group(1)) <= 100:
        raise ValueError(f"the target of cpu is a share of what a member can process, 1% to 100%, such as 70%, not {shown(raw)}")
    return int(match.group(1))


TARGETS: Mapping[ScaleMetric, Callable[[object], int]] = {
    ScaleMetric.LAG: records,
    ScaleMetric.LAG_AGE: age,
    ScaleMetric.CPU: percent,
}
"""Metric -> what reads its target. Each raises ValueError."""
