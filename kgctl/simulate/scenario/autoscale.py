"""An autoscaler as values: ``autoscale:`` of a scenario, in the terms of Kubernetes' HorizontalPodAutoscaler and of KEDA."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kgctl.model.quick_enum import quick_enum

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
