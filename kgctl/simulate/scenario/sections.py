"""``autoscale:`` of a file: its keys, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.autoscale import (
    SCALE_DOWN,
    SCALE_UP,
    TARGETS,
    Autoscale,
    ScaleMetric,
    ScalingPolicy,
    ScalingRules,
    Select,
    period,
    policies,
    window,
)
from kgctl.simulate.scenario.fields import Keys, RateSteps, Section, parse_keys, parse_traffic
from kgctl.simulate.scenario.model import Cluster, MemberSet, Network
from kgctl.simulate.scenario.patches import long_topic, long_traffic
from kgctl.simulate.scenario.quantities import ZERO, Wave, did_you_mean, shown
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
Window: TypeAlias = Annotated[int, PlainValidator(window), WithJsonSchema(fields.DURATION_SCHEMA)]
Period: TypeAlias = Annotated[int, PlainValidator(period), WithJsonSchema(fields.DURATION_SCHEMA)]
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
    tolerance: fields.ShareOf = Field(default=100_000, description="Of the HPA: 0.1, or 10%.")
    scale_up: RulesEntry = Field(default_factory=RulesSection)
    scale_down: RulesEntry = Field(default_factory=RulesSection)
    poll: Period = Field(
        default=30_000_000,
        description="KEDA's pollingInterval. With min: 0 it looks this often; with use_cached_metrics the HPA gets that.",
    )
    use_cached_metrics: bool = Field(
        default=False, description="KEDA's useCachedMetrics: the HPA sees the value of the last poll."
    )
    cooldown: fields.Duration = Field(
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


class Between(Section):
    """The two kinds of ways that a message takes."""

    client: fields.Varying | None = Field(default=None, description="Between a pod and a broker.")
    broker: fields.Varying | None = Field(default=None, description="Between two brokers.")


class NetworkSection(Section):
    """How long messages take, and how many are lost."""

    latency: fields.Varying = Field(default=Network().client, description="One way.")
    loss: fields.ShareOf = Field(default=0, description="Lost messages are sent again, as TCP does.")
    between: Between = Between()


def short_network(raw: Any) -> Any:
    """``network: 1ms``."""
    return raw if isinstance(raw, dict) else {"latency": raw}


class ClusterSection(Section):
    """The brokers."""

    brokers: int = Field(default=3, ge=1, le=1_000)
    nodes: int = Field(default=0, ge=0, le=10_000, description="Machines with the pods; events name them: node/2.")
    racks: list[str] = Field(default_factory=list)
    append: fields.Varying = Field(
        default=Cluster().append, description="Until a record of the group is written and answered, beyond the messages."
    )
    network: Annotated[NetworkSection, BeforeValidator(short_network, json_schema_input_type=NetworkSection | str)] = (
        NetworkSection()
    )
    config: fields.Config = Field(default_factory=dict, description="Broker settings: group.initial.rebalance.delay.ms, ...")


def read_placement(raw: Any) -> dict[int, tuple[int, ...]]:
    """``spread``, or partition -> brokers, which are numbered from 1."""
    if raw == "spread":
        return {}
    if isinstance(raw, dict) and all(key.isdigit() and _broker_list(value) for key, value in raw.items()):
        return {int(key): tuple(value) for key, value in raw.items()}
    raise ValueError(f"must be spread, or {{partition: [brokers]}}, not {shown(raw)}")


def _broker_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(broker) is int and broker >= 1 for broker in value)


class TopicSection(Section):
    """A topic."""

    partitions: int = Field(default=12, ge=1, le=1_000_000)
    replicas: int = Field(default=3, ge=1, le=100, description="Of each partition; fewer where there are fewer brokers.")
    placement: Annotated[
        dict[int, tuple[int, ...]], PlainValidator(read_placement), WithJsonSchema({"type": ["string", "object"]})
    ] = Field(default_factory=dict, description="spread, or partition -> brokers (1, 2, ...) with a replica, the leader first.")
    state_bytes: fields.Sizes = Field(default=(), description="What the application keeps for a partition; a list: for each.")


def short_topic(raw: Any) -> Any:
    """``orders: 12`` is short for its partitions."""
    if type(raw) is not int and not isinstance(raw, dict):
        raise ValueError(f"must be a number of partitions, or a mapping such as {{partitions: 12}}, not {shown(raw)}")
    return long_topic(raw)


class GroupSection(Section):
    """The group; ``config`` holds for all members."""

    id: str = Field(default="group", min_length=1)
    config: fields.Config = Field(default_factory=dict, description="Consumer settings of all members.")


class CallbacksSection(Section):
    """How long the application's rebalance callbacks take."""

    revoked: fields.Varying = ZERO
    assigned: fields.Varying = ZERO
    lost: fields.Varying = ZERO


_MEMBER = MemberSet(name="")
NO_GROUP = GroupSection()


class PollSection(Section):
    """The application's poll loop."""

    timeout: fields.Duration | None = Field(
        default=None, description="What poll() is given: so long it waits for records; default: as long as there are none."
    )
    pause: fields.Varying = Field(default=_MEMBER.poll, description="From the return of a poll() to the next one.")


def short_poll(raw: Any) -> Any:
    """Return ``poll: 0ms..100ms`` written out: it is the pause."""
    return raw if isinstance(raw, dict) else {"pause": raw}


class MembersSection(Section):
    """Pods that are all alike, called after the set: ``app-0``, ``app-1``."""

    group: str | None = Field(default=None, description="Which of groups they are in.")
    count: int = Field(default=1, ge=0, le=100_000)
    start: fields.Start = Field(
        default=ZERO, description="When the first start falls, from the beginning of the warm-up; or never."
    )
    boot: fields.Varying = Field(default=_MEMBER.boot, description="From the start of the process to subscribe().")
    subscribe: fields.Subscription = Field(
        default=((), None), description="Topics, or a regular expression; default: all topics."
    )
    instance_id: str | None = Field(default=None, description="Static membership; $name is the pod's name.")
    rack: str | None = Field(default=None, description="A rack of the cluster, or spread.")
    client: str = Field(default="java", description="The client family.")
    config: fields.Config = Field(default_factory=dict, description="Consumer settings, over those of the group.")
    client_id: str | None = Field(
        default=None,
        min_length=1,
        description="client.id; $name is the pod's name. Default: the client's own, as java's consumer-GROUP-1.",
    )
    client_start: fields.Varying = Field(
        default=_MEMBER.client_start, description="From the end of boot to the client's first request."
    )
    poll: Annotated[PollSection, BeforeValidator(short_poll, json_schema_input_type=PollSection | str | int)] = Field(
        default=PollSection(), description="The poll loop: {timeout: 100ms, pause: 0ms..100ms}; a duration alone is the pause."
    )
    rate: fields.Rate | None = Field(
        default=None, description="Records that a member can process; default: as fast as they come."
    )
    commit: fields.CommitText | None = Field(default=None, description="auto, after-batch, before-batch or every 5s.")
    on_stop: fields.OnStop = Field(default=True, description="leave: a clean stop calls close(); none: the process just ends.")
    on_failure: fields.OnFailure = Field(
        default=False, description="When poll() throws for good - stay: the pod does nothing more; restart: as Kubernetes does."
    )
    callbacks: CallbacksSection = CallbacksSection()
    heartbeat_drift: fields.Drift | None = Field(
        default=None, description="How late each beat is, at most; random: never locked."
    )


class AssignTimeSection(Section):
    """How long a leader's assignor computes."""

    base: fields.Nanoseconds = 5_000_000
    per_partition: fields.Nanoseconds = 2_000
    per_member: fields.Nanoseconds = 10_000


class TrafficSection(Section):
    """Records written to a topic."""

    rate: Annotated[RateSteps | Wave, PlainValidator(parse_traffic), WithJsonSchema({"type": ["string", "number", "object"]})] = (
        Field(description="Of the whole topic: 20000/s, {0s: 6000/s, 10m: 24000/s}, or sine(1000/s, 5000/s, 24h).")
    )
    keys: Annotated[Keys, PlainValidator(parse_keys), WithJsonSchema({"type": ["string", "array"]})] = Field(
        Keys(), description="How records spread over partitions: even, zipf(1.1), weights([3, 1, 1])."
    )


class NemesisSection(Section):
    """Faults that the seed chooses, then calm."""

    rate: fields.Interval = Field(description="How often: 1 per 5m.")
    of: list[str] = Field(default_factory=lambda: ["crash", "stall", "network"], min_length=1)
    until: fields.Duration = Field(default=30 * 60 * 1_000_000, description="When the calm begins.")


def in_terminal(raw: Any) -> str | None:
    """``gantt``: terminal, or true; false for None."""
    if raw not in ("terminal", True, False):
        raise ValueError(f"must be terminal, true or false, not {shown(raw)}")
    return "terminal" if raw else None


class OutputSection(Section):
    """Files that a run writes beside its result, as the flags of the command do."""

    gantt: Annotated[str | None, PlainValidator(in_terminal), WithJsonSchema({"enum": ["terminal", True, False]})] = None
    html: str | None = None
    junit: str | None = None
    markdown: str | None = None
    events: str | None = None
    metrics: str | None = None


class ReportSection(Section):
    """What a sweep shows."""

    x: str | None = Field(
        default=None,
        min_length=1,
        description="The parameter along which it is shown: a path of sweep, or its end (session.timeout.ms); default: the one "
        "with the most values.",
    )
    y: fields.MetricTexts | None = Field(
        default=None,
        description="Metrics, with filters or without: rebalances, unavailable(cause rebalance); default: rebalances, "
        "unavailable, max_gap.",
    )


Topics = dict[str, Annotated[TopicSection, BeforeValidator(short_topic, json_schema_input_type=TopicSection | int)]]
TrafficByTopic = dict[
    str, Annotated[TrafficSection, BeforeValidator(long_traffic, json_schema_input_type=TrafficSection | str | float)]
]


class ScenarioSections(Section):
    """A whole file, merged; what ``events`` and ``expect`` hold is checked by kind."""

    kgctl: Literal[1] = Field(description="Version of the language.")
    name: str = Field(min_length=1, max_length=200, description="Also the name of the test suite.")
    question: str = Field(default="", description="One sentence that a person asks; shown above the result.")
    seed: int = Field(default=1, ge=0, le=2**62)
    runs: int = Field(default=1, ge=1, le=100_000, description="How many seeds: seed, seed + 1, ...")
    warmup: fields.Duration = Field(default=0, description="Not measured; its end is the time 0s of events.")
    duration: fields.RunLength = Field(default=None, description="Measured time; auto: last event + time to stable + 60s.")
    cluster: ClusterSection = ClusterSection()
    topics: Topics = Field(default_factory=dict)
    group: GroupSection = GroupSection()
    groups: dict[str, GroupSection] = Field(
        default_factory=dict, description="Several groups instead of one, by name; each set of members says its group."
    )
    members: dict[str, MembersSection] = Field(default_factory=dict)
    assign_time: AssignTimeSection = AssignTimeSection()
    traffic: TrafficByTopic = Field(default_factory=dict)
    autoscale: AutoscaleSection | None = None
    events: list[Any] = Field(default_factory=list)
    nemesis: NemesisSection | None = None
    expect: list[Any] = Field(default_factory=list)
    output: OutputSection = OutputSection()
    sweep: dict[str, fields.SweepValues] = Field(
        default_factory=dict, description="Parameters for `simulate sweep`: path.to.key: [values], or a range."
    )
    report: ReportSection = ReportSection()
