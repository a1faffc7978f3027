"""``autoscale:`` of a scenario, in the terms of Kubernetes' HorizontalPodAutoscaler and of KEDA."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from pydantic import Field, WithJsonSchema

from kgctl.model.values import frozen_in_order, quick_enum
from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.fields import Section, as_written, changed, in_short, key, one_of
from kgctl.simulate.scenario.quantities import format_duration, parse_duration, shown
from kgctl.simulate.scenario.vocabulary import did_you_mean

SECOND_US = 1_000_000
_MOST = 100_000


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


@frozen_in_order
class ScalingPolicy:
    """At most ``amount`` pods, or per cent of the pods at its beginning, within any ``period_us``."""

    amount: int
    is_percent: bool
    period_us: int

    def __str__(self) -> str:
        return f"{self.amount}{'%' * self.is_percent} per {self.period_us / SECOND_US:g}s"


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
    entries = raw if isinstance(raw, list) else [raw]
    if not entries:
        raise ValueError("there is no policy; to forbid a direction, write select: disabled")
    return tuple(policy(entry) for entry in entries)


def window(raw: object) -> int:
    length_us = parse_duration(raw)
    if length_us > _LONGEST_WINDOW_US:
        raise ValueError(f"a stabilisation window is at most 1h in Kubernetes, not {format_duration(length_us)}")
    return length_us


def period(raw: object) -> int:
    length_us = parse_duration(raw)
    if not length_us:
        raise ValueError("must be more than 0s")
    return length_us


def records(raw: object) -> int:
    if type(raw) is not int or raw < 1:
        raise ValueError(f"the target of lag is a number of records for each pod, such as 1000, not {shown(raw)}")
    return raw


def age(raw: object) -> int:
    try:
        return period(raw)
    except ValueError:
        raise ValueError(f"the target of lag-age is a time, such as 30s, not {shown(raw)}") from None


def percent(raw: object) -> int:
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


_POLICY_SCHEMA = {"type": "string", "pattern": r"^\s*\d+\s*(%|pods?)?\s+per\s+.+$"}
Policies: TypeAlias = Annotated[
    tuple[ScalingPolicy, ...],
    as_written(policies),
    WithJsonSchema({"anyOf": [_POLICY_SCHEMA, {"type": "array", "items": _POLICY_SCHEMA, "minItems": 1}]}),
]
Window: TypeAlias = Annotated[int, as_written(window, format_duration), WithJsonSchema(fields.DURATION_SCHEMA)]
Period: TypeAlias = Annotated[int, as_written(period, format_duration), WithJsonSchema(fields.DURATION_SCHEMA)]
MetricName: TypeAlias = Annotated[
    ScaleMetric, as_written(one_of(ScaleMetric)), WithJsonSchema({"enum": [str(each) for each in ScaleMetric]})
]
Selection: TypeAlias = Annotated[Select, as_written(one_of(Select)), WithJsonSchema({"enum": [str(each) for each in Select]})]
Target: TypeAlias = Annotated[int, as_written(lambda raw: raw), WithJsonSchema({"type": ["integer", "string"]})]


class ScalingRules(Section):
    """One direction, as ``behavior.scaleUp`` and ``scaleDown`` of an HPA."""

    stabilize_us: Window = key("Stabilisation window; default: 0s up, 300s down.", of="stabilize", default_factory=int)
    policies: Policies = key(
        "Policies: 100% per 15s, 1 per 2m, or a list; default: [100% per 15s, 4 per 15s] up, 100% per 15s down.",
        of="max",
        default_factory=tuple,
    )
    select: Selection = key("Which of several policies counts; disabled: never.", Select.MAX)


_UP = {"stabilize": "0s", "max": ["100% per 15s", "4 per 15s"]}
_DOWN = {"stabilize": "300s", "max": "100% per 15s"}


def rules_over(defaults: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return what writes out the rules of one direction; ``scale_down: 1 per 2m`` is short for its policies."""

    def written_out(raw: Any) -> Any:
        rules = {"max": raw} if isinstance(raw, str | list) else raw
        return {**defaults, **rules} if isinstance(rules, dict) else rules

    return written_out


def _rules(written: Mapping[str, Any]) -> ScalingRules:
    return ScalingRules(stabilize_us=window(written["stabilize"]), policies=policies(written["max"]))


SCALE_UP = _rules(_UP)
"""Kubernetes' default: double, or 4 more, within 15 s; at once."""
SCALE_DOWN = _rules(_DOWN)
"""Kubernetes' default: any number, but not below what was recommended within 5 minutes."""
_RULES_FORM = ScalingRules | str | list[str]


class Autoscale(Section):
    """KEDA's Kafka scaler in front of a Kubernetes HPA."""

    members: str = key("The set of members whose number of pods it changes.")
    metric: MetricName = key(
        "lag (target: records a pod), lag-age (a time) or cpu (per cent of the members' rate).", ScaleMetric.LAG
    )
    target: Target = key("KEDA's lagThreshold, an average a pod: 1000; of lag-age 30s; of cpu 70%.")
    minimum: int = key("minReplicaCount; 0: KEDA starts the first pod and stops the last.", 1, of="min", ge=0, le=_MOST)
    maximum: int = key("maxReplicaCount.", 100, of="max", ge=1, le=_MOST)
    every_us: Period = key("The HPA's sync period.", 15 * SECOND_US, of="every")
    tolerance_ppm: fields.ShareOf = key("Of the HPA: 0.1, or 10%.", 100_000, of="tolerance")
    up: Annotated[ScalingRules, in_short(rules_over(_UP), _RULES_FORM)] = Field(
        default_factory=lambda: SCALE_UP, validation_alias="scale_up"
    )
    down: Annotated[ScalingRules, in_short(rules_over(_DOWN), _RULES_FORM)] = Field(
        default_factory=lambda: SCALE_DOWN, validation_alias="scale_down"
    )
    poll_us: Period = key(
        "KEDA's pollingInterval. With min: 0 it looks this often; with use_cached_metrics the HPA gets that.",
        30 * SECOND_US,
        of="poll",
    )
    use_cached_metrics: bool = key("KEDA's useCachedMetrics: the HPA sees the value of the last poll.", default=False)
    cooldown_us: fields.Duration = key(
        "With min: 0, how long without lag until the last pod stops.", 300 * SECOND_US, of="cooldown"
    )
    activation: int = key("activationLagThreshold: with min: 0, a pod starts above this lag.", 0, ge=0)
    allow_idle_consumers: bool = key("allowIdleConsumers: more pods than partitions.", default=False)
    limit_to_partitions_with_lag: bool = key("limitToPartitionsWithLag.", default=False)
    exclude_persistent_lag: bool = key(
        "excludePersistentLag: partitions without a commit since the last measurement do not count.", default=False
    )


_OF_KAFKAS_SCALER = ("use_cached_metrics", "allow_idle_consumers", "limit_to_partitions_with_lag", "exclude_persistent_lag")


def checked(
    given: Autoscale, rates: Mapping[str, int | None], wrong: Callable[[str, str], None], *, has_traffic: bool
) -> Autoscale:
    """Return the autoscaler of a file with its target in the unit of its metric; what contradicts the rest goes to ``wrong``.

    ``rates``: the sets of members with what their members process. ``wrong`` gets the key, and why.
    """
    if given.members not in rates:
        near = did_you_mean(given.members, rates, list_up_to=12)
        wrong("members", f"there is no set of members {given.members!r}{near}")
        return given
    if given.minimum > given.maximum:
        wrong("min", f"min is {given.minimum} and max is {given.maximum}")
    if given.limit_to_partitions_with_lag and given.allow_idle_consumers:
        wrong("allow_idle_consumers", "KEDA refuses it together with limit_to_partitions_with_lag")
    if not has_traffic:
        wrong("metric", f"there is no traffic: {given.metric} would be 0 for ever")
    if given.metric is ScaleMetric.CPU and rates[given.members] is None:
        wrong("metric", f"cpu is measured by the members' rate, and {given.members!r} has none: write rate: 1000/s")
    _check_use(given, wrong)
    try:
        return changed(given, target=TARGETS[given.metric](given.target))
    except ValueError as error:
        wrong("target", str(error))
        return given


def _check_use(given: Autoscale, wrong: Callable[[str, str], None]) -> None:
    """Complain of keys of KEDA's Kafka scaler beside another metric."""
    if given.metric is ScaleMetric.LAG:
        return
    if not given.minimum:
        wrong("min", f"to and from 0 pods goes by lag alone, and the metric is {given.metric}: at least 1")
    for name in _OF_KAFKAS_SCALER:
        if getattr(given, name):
            wrong(name, f"is KEDA's Kafka scaler's: it goes with metric: lag, not {given.metric}")
