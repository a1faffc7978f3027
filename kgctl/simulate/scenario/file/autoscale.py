"""``autoscale:`` of a file: its keys, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from kgctl.simulate.scenario.autoscale import SCALE_DOWN, SCALE_UP, Autoscale, ScaleMetric, ScalingPolicy, ScalingRules, Select
from kgctl.simulate.scenario.file import types
from kgctl.simulate.scenario.file.section import Section
from kgctl.simulate.scenario.values.scaling import TARGETS, period, policies, window
from kgctl.simulate.scenario.wording import did_you_mean, shown
from kgctl.yaml_files import Path

_MOST = 100_000
Wrong: TypeAlias = Callable[[Path, str], None]


def one_of(choices: type[ScaleMetric] | type[Select]) -> Callable[[object], Any]:
    """Reads a member of an enum."""

    def read(raw: object) -> Any:
        if raw not in list(choices):
            near = did_you_mean(str(raw), tuple(map(str, choices)))
            raise ValueError(f"must be one of {', '.join(choices)}, not {shown(raw)}{near}")
        return choices(str(raw))

    return read


_POLICY_SCHEMA = {"type": "string", "pattern": r"^\s*\d+\s*(%|pods?)?\s+per\s+.+$"}
Policies: TypeAlias = Annotated[
    tuple[ScalingPolicy, ...],
    PlainValidator(policies),
    WithJsonSchema({"anyOf": [_POLICY_SCHEMA, {"type": "array", "items": _POLICY_SCHEMA, "minItems": 1}]}),
]
Window: TypeAlias = Annotated[int, PlainValidator(window), WithJsonSchema(types.DURATION_SCHEMA)]
Period: TypeAlias = Annotated[int, PlainValidator(period), WithJsonSchema(types.DURATION_SCHEMA)]
MetricName: TypeAlias = Annotated[
    ScaleMetric, PlainValidator(one_of(ScaleMetric)), WithJsonSchema({"enum": [str(each) for each in ScaleMetric]})
]
Selection: TypeAlias = Annotated[Select, PlainValidator(one_of(Select)), WithJsonSchema({"enum": [str(each) for each in Select]})]
Target: TypeAlias = Annotated[Any, PlainValidator(lambda raw: raw), WithJsonSchema({"type": ["integer", "string"]})]


class RulesSection(Section):
    """One direction, as ``behavior.scaleUp`` and ``scaleDown`` of an HPA."""

    stabilize: Window | None = Field(default=None, description="Stabilisation window; default: 0s up, 300s down.")
    max: Policies | None = Field(
        default=None,
        description="Policies: 100% per 15s, 1 per 2m, or a list; default: [100% per 15s, 4 per 15s] up, 100% per 15s down.",
    )
    select: Selection = Field(default=Select.MAX, description="Which of several policies counts; disabled: never.")

    def rules(self, default: ScalingRules) -> ScalingRules:
        """With Kubernetes' defaults where nothing is said."""
        stabilize_us = default.stabilize_us if self.stabilize is None else self.stabilize
        return ScalingRules(stabilize_us, default.policies if self.max is None else self.max, self.select)


def short_rules(raw: Any) -> Any:
    """``scale_down: 1 per 2m`` is short for its policies."""
    return {"max": raw} if isinstance(raw, str | list) else raw


RulesEntry: TypeAlias = Annotated[
    RulesSection, BeforeValidator(short_rules, json_schema_input_type=RulesSection | str | list[str])
]


class AutoscaleSection(Section):
    """KEDA's Kafka scaler in front of a Kubernetes HPA."""

    members: str = Field(description="The set of members whose number of pods it changes.")
    metric: MetricName = Field(
        default=ScaleMetric.LAG,
        description="lag (target: records a pod), lag-age (a time) or cpu (per cent of the members' rate).",
    )
    target: Target = Field(description="KEDA's lagThreshold, an average a pod: 1000; of lag-age 30s; of cpu 70%.")
    min: int = Field(default=1, ge=0, le=_MOST, description="minReplicaCount; 0: KEDA starts the first pod and stops the last.")
    max: int = Field(default=100, ge=1, le=_MOST, description="maxReplicaCount.")
    every: Period = Field(default=15_000_000, description="The HPA's sync period.")
    tolerance: types.ShareOf = Field(default=100_000, description="Of the HPA: 0.1, or 10%.")
    scale_up: RulesEntry = Field(default_factory=RulesSection)
    scale_down: RulesEntry = Field(default_factory=RulesSection)
    poll: Period = Field(
        default=30_000_000,
        description="KEDA's pollingInterval. With min: 0 it looks this often; with use_cached_metrics the HPA gets that.",
    )
    use_cached_metrics: bool = Field(
        default=False, description="KEDA's useCachedMetrics: the HPA sees the value of the last poll."
    )
    cooldown: types.Duration = Field(
        default=300_000_000, description="With min: 0, how long without lag until the last pod stops."
    )
    activation: int = Field(default=0, ge=0, description="activationLagThreshold: with min: 0, a pod starts above this lag.")
    allow_idle_consumers: bool = Field(default=False, description="allowIdleConsumers: more pods than partitions.")
    limit_to_partitions_with_lag: bool = Field(default=False, description="limitToPartitionsWithLag.")
    exclude_persistent_lag: bool = Field(
        default=False, description="excludePersistentLag: partitions without a commit since the last measurement do not count."
    )


class Reader:
    """Makes an `Autoscale` of a checked section; what contradicts the rest of the file goes to ``wrong``."""

    def __init__(self, given: AutoscaleSection, wrong: Wrong) -> None:
        self._given = given
        self._wrong_at = wrong

    def read(self, rates: Mapping[str, int | None], *, has_traffic: bool) -> Autoscale | None:
        """``rates``: the sets of members with what their members process."""
        given = self._given
        if given.members not in rates:
            self._wrong(
                "members", f"there is no set of members {given.members!r}{did_you_mean(given.members, rates, list_up_to=12)}"
            )
            return None
        if given.min > given.max:
            self._wrong("min", f"min is {given.min} and max is {given.max}")
        if given.limit_to_partitions_with_lag and given.allow_idle_consumers:
            self._wrong("allow_idle_consumers", "KEDA refuses it together with limit_to_partitions_with_lag")
        if not has_traffic:
            self._wrong("metric", f"there is no traffic: {given.metric} would be 0 for ever")
        if given.metric is ScaleMetric.CPU and rates[given.members] is None:
            self._wrong("metric", f"cpu is measured by the members' rate, and {given.members!r} has none: write rate: 1000/s")
        self._check_use()
        target = self._target()
        return None if target is None else self._build(target)

    def _check_use(self) -> None:
        """Keys of KEDA's Kafka scaler beside another metric."""
        given = self._given
        if given.metric is ScaleMetric.LAG:
            return
        if not given.min:
            self._wrong("min", f"to and from 0 pods goes by lag alone, and the metric is {given.metric}: at least 1")
        for name in ("use_cached_metrics", "allow_idle_consumers", "limit_to_partitions_with_lag", "exclude_persistent_lag"):
            if getattr(given, name):
                self._wrong(name, f"is KEDA's Kafka scaler's: it goes with metric: lag, not {given.metric}")

    def _target(self) -> int | None:
        try:
            return TARGETS[self._given.metric](self._given.target)
        except ValueError as error:
            self._wrong("target", str(error))
            return None

    def _build(self, target: int) -> Autoscale:
        given = self._given
        return Autoscale(
            members=given.members,
            metric=given.metric,
            target=target,
            minimum=given.min,
            maximum=given.max,
            every_us=given.every,
            tolerance_ppm=given.tolerance,
            up=given.scale_up.rules(SCALE_UP),
            down=given.scale_down.rules(SCALE_DOWN),
            poll_us=given.poll,
            use_cached_metrics=given.use_cached_metrics,
            cooldown_us=given.cooldown,
            activation=given.activation,
            allow_idle_consumers=given.allow_idle_consumers,
            limit_to_partitions_with_lag=given.limit_to_partitions_with_lag,
            exclude_persistent_lag=given.exclude_persistent_lag,
        )

    def _wrong(self, key: str, message: str) -> None:
        self._wrong_at(("autoscale", key), message)
