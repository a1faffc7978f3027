"""What a scenario file consists of, as pydantic models: the one description that validates files and makes the JSON Schema.

Events and expectations are read elsewhere: which keys they have depends on their kind.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from kgctl.simulate.scenario.distributions import ZERO
from kgctl.simulate.scenario.file import types
from kgctl.simulate.scenario.file.autoscale import AutoscaleSection
from kgctl.simulate.scenario.file.section import Section
from kgctl.simulate.scenario.file.short_forms import long_topic, long_traffic
from kgctl.simulate.scenario.file.traffic import Keys, RateSteps, parse_keys, parse_traffic
from kgctl.simulate.scenario.model import MemberSet, Network
from kgctl.simulate.scenario.values.waves import Wave
from kgctl.simulate.scenario.wording import shown


class Between(Section):
    """The two kinds of ways that a message takes."""

    client: types.Varying | None = Field(default=None, description="Between a pod and a broker.")
    broker: types.Varying | None = Field(default=None, description="Between two brokers.")


class NetworkSection(Section):
    """How long messages take, and how many are lost."""

    latency: types.Varying = Field(default=Network().client, description="One way.")
    loss: types.ShareOf = Field(default=0, description="Lost messages are sent again, as TCP does.")
    between: Between = Between()


def short_network(raw: Any) -> Any:
    """``network: 1ms``."""
    return raw if isinstance(raw, dict) else {"latency": raw}


class ClusterSection(Section):
    """The brokers."""

    brokers: int = Field(default=3, ge=1, le=1_000)
    racks: list[str] = Field(default_factory=list)
    network: Annotated[NetworkSection, BeforeValidator(short_network, json_schema_input_type=NetworkSection | str)] = (
        NetworkSection()
    )
    config: types.Config = Field(default_factory=dict, description="Broker settings: group.initial.rebalance.delay.ms, ...")


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
    state_bytes: types.Sizes = Field(default=(), description="What the application keeps for a partition; a list: for each.")


def short_topic(raw: Any) -> Any:
    """``orders: 12`` is short for its partitions."""
    if type(raw) is not int and not isinstance(raw, dict):
        raise ValueError(f"must be a number of partitions, or a mapping such as {{partitions: 12}}, not {shown(raw)}")
    return long_topic(raw)


class GroupSection(Section):
    """The group; ``config`` holds for all members."""

    id: str = Field(default="group", min_length=1)
    config: types.Config = Field(default_factory=dict, description="Consumer settings of all members.")


class CallbacksSection(Section):
    """How long the application's rebalance callbacks take."""

    revoked: types.Varying = ZERO
    assigned: types.Varying = ZERO
    lost: types.Varying = ZERO


_MEMBER = MemberSet(name="")


class MembersSection(Section):
    """Pods that are all alike, called after the set: ``app-0``, ``app-1``."""

    count: int = Field(default=1, ge=0, le=100_000)
    start: types.Start = Field(
        default=ZERO, description="When the first start falls, from the beginning of the warm-up; or never."
    )
    boot: types.Varying = Field(default=_MEMBER.boot, description="From the start of the process to subscribe().")
    subscribe: types.Subscription = Field(default=((), None), description="Topics, or a regular expression; default: all topics.")
    instance_id: str | None = Field(default=None, description="Static membership; $name is the pod's name.")
    rack: str | None = Field(default=None, description="A rack of the cluster, or spread.")
    client: str = Field(default="java", description="The client family.")
    config: types.Config = Field(default_factory=dict, description="Consumer settings, over those of the group.")
    poll: types.Varying = Field(default=_MEMBER.poll, description="Between two poll() calls.")
    rate: types.Rate | None = Field(default=None, description="Records that a member can process; default: as fast as they come.")
    commit: types.CommitText | None = Field(default=None, description="auto, after-batch, before-batch or every 5s.")
    on_stop: types.OnStop = Field(default=True, description="leave: a clean stop calls close(); none: the process just ends.")
    on_failure: types.OnFailure = Field(
        default=False, description="When poll() throws for good - stay: the pod does nothing more; restart: as Kubernetes does."
    )
    callbacks: CallbacksSection = CallbacksSection()
    heartbeat_drift: types.Drift | None = Field(default=None, description="How late each beat is, at most; random: never locked.")


class AssignTimeSection(Section):
    """How long a leader's assignor computes."""

    base: types.Nanoseconds = 5_000_000
    per_partition: types.Nanoseconds = 2_000
    per_member: types.Nanoseconds = 10_000


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

    rate: types.Interval = Field(description="How often: 1 per 5m.")
    of: list[str] = Field(default_factory=lambda: ["crash", "stall", "network"], min_length=1)
    until: types.Duration = Field(default=30 * 60 * 1_000_000, description="When the calm begins.")


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
    y: types.MetricTexts | None = Field(
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
    warmup: types.Duration = Field(default=0, description="Not measured; its end is the time 0s of events.")
    duration: types.RunLength = Field(default=None, description="Measured time; auto: last event + time to stable + 60s.")
    cluster: ClusterSection = ClusterSection()
    topics: Topics = Field(default_factory=dict)
    group: GroupSection = GroupSection()
    members: dict[str, MembersSection] = Field(default_factory=dict)
    assign_time: AssignTimeSection = AssignTimeSection()
    traffic: TrafficByTopic = Field(default_factory=dict)
    autoscale: AutoscaleSection | None = None
    events: list[Any] = Field(default_factory=list)
    nemesis: NemesisSection | None = None
    expect: list[Any] = Field(default_factory=list)
    output: OutputSection = OutputSection()
    sweep: dict[str, types.SweepValues] = Field(
        default_factory=dict, description="Parameters for `simulate sweep`: path.to.key: [values], or a range."
    )
    report: ReportSection = ReportSection()
