"""A scenario: what a file may say, and the values that a run goes by. Described once, by frozen pydantic models.

Times are whole microseconds (``*_us``); those of events and traffic count from the end of the warm-up. Rates are whole millionths
of a record a second (``*_uhz``), shares whole millionths (``*_ppm``): a run calculates with integers, so that the same file and
seed give the same bytes everywhere. Named things keep the order of the file.

A file is validated with a `Reading` as its context; then each validator also tells it what contradicts the rest of the file.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from kgctl.coordinator.config import BROKER_VERSION, with_broker_version
from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.application import USUAL_LOOP, Callbacks, PollLoop, short_poll
from kgctl.simulate.scenario.autoscale import Autoscale, checked
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.event_port import LinkFault
from kgctl.simulate.scenario.events import EVENT_KINDS, read_events
from kgctl.simulate.scenario.fields import (
    NAME,
    ByName,
    Commit,
    CommitMode,
    ReadBy,
    Reading,
    Section,
    as_written,
    changed,
    check_settings,
    in_short,
    key,
    parse_keys,
    parse_traffic,
    read_broker_settings,
    read_client_settings,
    reading,
)
from kgctl.simulate.scenario.group_types import (
    GROUP_TYPES,
    MemberSurroundings,
    ScenarioGroupType,
    brokers_of,
    check_poison,
    check_type,
    group_type,
)
from kgctl.simulate.scenario.output import Output, SweepReport
from kgctl.simulate.scenario.patches import long_topic, long_traffic
from kgctl.simulate.scenario.quantities import (
    ZERO,
    Constant,
    Distribution,
    Keys,
    LogNormal,
    RateSteps,
    Wave,
    is_duration,
    parse_duration,
    rates_text,
    shown,
)
from kgctl.simulate.scenario.streams import StreamsApplication, with_client
from kgctl.simulate.scenario.vocabulary import TRIED, Subscribed, did_you_mean
from kgctl.yaml_files import Path

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
ONE_PER_SECOND_UHZ = 1_000_000

_ONE_MILLISECOND = Constant(1_000)
_FIVE_SECONDS = Constant(5 * SECOND_US)
# Measured with Apache Kafka 4.3.1 and its Java client: from the leader's SyncGroup to the first answer, 82 generations, 3 ms in
# the middle, 7 and 14 ms for the last quarter and tenth, 45 at the most. Two ways through the network are in it.
_APPEND = LogNormal(5_000, 8_000)

NO_KEY = "\0"
"""The alias of what a file cannot say."""

Name: TypeAlias = SkipJsonSchema[str]
"""The key under which a file has a section. It is no key of the section itself."""


def _named() -> Any:
    return Field(default="", validation_alias=NO_KEY)


class Between(Section):
    """The two kinds of ways that a message takes."""

    client: fields.Varying | None = key("Between a pod and a broker.", None)
    broker: fields.Varying | None = key("Between two brokers.", None)


class Network(Section):
    """How long messages take, and how many are lost."""

    latency: fields.Varying = key("One way.", _ONE_MILLISECOND)
    loss_ppm: fields.ShareOf = key("Lost messages are sent again, as TCP does.", 0, of="loss")
    between: Between = Field(default_factory=Between)

    @property
    def client(self) -> Distribution:
        """Return one way between a pod and a broker. The way back is drawn anew."""
        return self.latency if self.between.client is None else self.between.client

    @property
    def broker(self) -> Distribution:
        return self.latency if self.between.broker is None else self.between.broker

    @property
    def usual(self) -> LinkFault:
        """Return how it is between a pod and a broker where no event changes that."""
        return LinkFault(latency=self.client, loss_ppm=self.loss_ppm)


def short_network(raw: Any) -> Any:
    return raw if isinstance(raw, dict) else {"latency": raw}


class Cluster(Section):
    """The brokers, what they are set to and what lies between them and the pods; the machines that pods run on."""

    brokers: int = Field(default=3, ge=1, le=1_000)
    nodes: int = key("Machines with the pods; events name them: node/2.", 0, ge=0, le=10_000)
    racks: tuple[str, ...] = Field(default_factory=tuple, strict=False)
    append: fields.Varying = key("Until a record of the group is written and answered, beyond the messages.", _APPEND)
    network: Annotated[Network, in_short(short_network, Network | str)] = Field(default_factory=Network)
    config: Annotated[fields.Config, TRIED] = key("Broker settings: group.initial.rebalance.delay.ms, ...", default_factory=dict)


def read_placement(raw: Any) -> dict[int, tuple[int, ...]]:
    """Return which brokers, numbered from 1, have each partition; nothing for ``spread``. Raises ValueError."""
    if raw == "spread":
        return {}
    if isinstance(raw, dict) and all(key.isdigit() and _broker_list(value) for key, value in raw.items()):
        return {int(key): tuple(value) for key, value in raw.items()}
    raise ValueError(f"must be spread, or {{partition: [brokers]}}, not {shown(raw)}")


def _broker_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(broker) is int and broker >= 1 for broker in value)


class Topic(Section):
    """A topic."""

    name: Name = _named()
    partitions: int = Field(default=12, ge=1, le=1_000_000)
    poison_ppm: fields.ShareOf = key(
        "Of its records, how many no application can process; on_poison of the members says what is done then.", 0, of="poisoned"
    )
    replicas: int = key("Of each partition; fewer where there are fewer brokers.", 3, ge=1, le=100)
    placement: Annotated[
        dict[int, tuple[int, ...]], as_written(read_placement), WithJsonSchema({"type": ["string", "object"]})
    ] = key("spread, or partition -> brokers (1, 2, ...) with a replica, the leader first.", default_factory=dict)

    def contradictions(self, brokers: int) -> Iterator[tuple[Path, str]]:
        """Yield what cannot be on so many brokers: where below the topic, and why."""
        if "replicas" in self.model_fields_set and self.replicas > brokers:
            yield ("replicas",), f"{self.replicas} replicas need as many brokers, and there are {brokers}"
        for partition, replicas in self.placement.items():
            here = ("placement", str(partition))
            if partition >= self.partitions:
                yield here, f"there is no partition {partition}: {self.name!r} has {self.partitions}, from 0"
            if max(replicas) > brokers or len(set(replicas)) < len(replicas):
                yield here, f"names brokers, each once: 1 to {brokers}"


def short_topic(raw: Any) -> Any:
    """Return ``orders: 12``, which is short for its partitions, written out."""
    if type(raw) is not int and not isinstance(raw, dict):
        raise ValueError(f"must be a number of partitions, or a mapping such as {{partitions: 12}}, not {shown(raw)}")
    return long_topic(raw)


class Group(Section):
    """The group; ``config`` holds for all members."""

    key: Name = _named()
    id: str = fields.key(
        "group.id; default: group, and where there are several groups, its name.", default_factory=lambda: "group", min_length=1
    )
    type_name: Annotated[str, as_written(group_type), WithJsonSchema({"enum": [*GROUP_TYPES]})] = fields.key(
        "consumer, or share: a share group (KIP-932).", "consumer", of="type"
    )
    config: fields.Config = fields.key(
        "Consumer settings of all members; of a share group its own, too: share.record.lock.duration.ms, ...",
        default_factory=dict,
    )

    @property
    def type(self) -> ScenarioGroupType:
        """Return what kind of group it is."""
        return GROUP_TYPES[self.type_name]

    @property
    def settings(self) -> dict[str, str]:
        """Return the group's own settings, which are not its consumers'."""
        return {name: value for name, value in self.config.items() if self.type.owns(name)}

    @property
    def client_config(self) -> dict[str, str]:
        """Return the settings of its consumers."""
        return {name: value for name, value in self.config.items() if not self.type.owns(name)}


NO_GROUP = Group()
_GROUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class MemberSet(Section):
    """Pods that are all alike, called after the set: ``app-0``, ``app-1``."""

    name: Name = _named()
    group: str | None = key("Which of groups they are in.", None)
    count: int = Field(default=1, ge=0, le=100_000)
    start: fields.Start = key("When the first start falls, from the beginning of the warm-up; or never.", ZERO)
    boot: fields.Varying = key("From the start of the process to subscribe().", _FIVE_SECONDS)
    pre_stop_us: fields.Duration = key(
        "preStop: from the end of a pod's being wanted to SIGTERM, within grace.", 0, of="pre_stop"
    )
    subscribe: fields.Subscription = key("Topics, ^regex, or {pattern, by}: who matches it; default: all topics.", Subscribed())
    instance_id: str | None = key("Static membership; $name is the pod's name.", None)
    rack: str | None = key("A rack of the cluster, or spread.", None)
    client: str = key("The client family.", "java")
    config: fields.Config = key("Consumer settings, over those of the group.", default_factory=dict)
    client_id: str | None = key(
        "client.id; $name is the pod's name. Default: the client's own, as java's consumer-GROUP-1.", None, min_length=1
    )
    client_start: fields.Varying | None = key(
        "From the end of boot to the client's first request; default: as the client was measured.", None
    )
    poll_loop: Annotated[PollLoop, in_short(short_poll, PollLoop | str | int)] = key(
        "The poll loop, {timeout: 100ms, pause: 0ms} if not given; a duration alone is the pause.", USUAL_LOOP, of="poll"
    )
    rate_uhz: fields.Rate | None = key(
        "Records that a member processes a second; a batch takes as long. Default: as fast as they come.", None, of="rate"
    )
    process_time_us: fields.Duration | None = key("Of a record: 5ms is rate: 200/s; one of the two.", None, of="process_time")
    commit: fields.CommitText = key("auto, after-batch, before-batch or every 5s.", Commit())
    leaves_on_stop: fields.OnStop = key(
        "leave: a clean stop calls close(); none: the process just ends.", default=True, of="on_stop"
    )
    restarts_on_failure: fields.OnFailure = key(
        "When poll() throws for good - stay: the pod does nothing more; restart: as Kubernetes does.",
        default=False,
        of="on_failure",
    )
    on_poison: fields.PoisonText | None = key(
        "In a share group, a record that cannot be processed: crash, release or reject; default: crash, or, with"
        " share.acknowledgement.mode explicit, release.",
        None,
    )
    callbacks: Callbacks = Field(default_factory=Callbacks)
    heartbeat_drift_us: fields.Drift | None = key(
        "How late each beat is, at most; random: never locked.", None, of="heartbeat_drift"
    )
    streams: StreamsApplication | None = key(
        "They are instances of a Kafka Streams application: its stores, how they are restored.", None
    )

    @model_validator(mode="before")
    @classmethod
    def _client_of_streams(cls, raw: Any) -> Any:
        return with_client(raw)

    @model_validator(mode="before")
    @classmethod
    def _rate_of_process_time(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("process_time") is None:
            return raw
        if raw.get("rate") is not None:
            raise ValueError("say `rate` or `process_time`, which is 1 / rate, not both")
        each = raw["process_time"]
        each_us = parse_duration(each) if isinstance(each, str) and is_duration(each) else 0
        return {**raw, "rate": f"{1_000_000 / each_us:.6f}/s"} if each_us else raw

    @property
    def topics(self) -> tuple[str, ...]:
        """Return what these members subscribe to by name; with no `pattern` either: all topics."""
        return self.subscribe.topics

    @property
    def pattern(self) -> str | None:
        """Return the regular expression that these members subscribe to."""
        return self.subscribe.pattern

    @property
    def matches_pattern(self) -> bool:
        """Return whether these clients match their pattern themselves (KIP-848: else the coordinator does)."""
        return self.subscribe.is_matched_by_client(self.config.get("group.protocol", ""))

    @property
    def poll(self) -> Distribution:
        return self.poll_loop.pause

    @property
    def poll_timeout_us(self) -> int | None:
        """Return how long a poll() waits for records; None: as long as there are none."""
        return self.poll_loop.timeout_us

    def within(self, group: Group) -> "MemberSet":
        """Return these members with the settings of their group where they have none of their own."""
        config = {**group.client_config, **self.config}
        commit = self.commit if "commit" in self.model_fields_set else _commit_of(config)
        return changed(self, config=config, client_id=self.client_id or config.get("client.id"), commit=commit)


def _commit_of(config: Mapping[str, str]) -> Commit:
    """Without a word about it: the client's auto-commit, or after each batch where that is switched off."""
    off = str(config.get("enable.auto.commit", "true")).strip().lower() == "false"
    return Commit(mode=CommitMode.AFTER_BATCH if off else CommitMode.AUTO)


class AssignTime(Section):
    """How long a leader's assignor computes."""

    base_ns: fields.Nanoseconds = Field(default=5_000_000, validation_alias="base")
    per_partition_ns: fields.Nanoseconds = Field(default=2_000, validation_alias="per_partition")
    per_member_ns: fields.Nanoseconds = Field(default=10_000, validation_alias="per_member")

    def duration_us(self, partitions: int, members: int) -> int:
        """Return how long an assignor computes for a group of this size."""
        return (self.base_ns + self.per_partition_ns * partitions + self.per_member_ns * members) // 1_000


class Traffic(Section):
    """Records written to a topic."""

    topic: Name = _named()
    rate: Annotated[
        RateSteps | Wave, as_written(parse_traffic, rates_text), WithJsonSchema({"type": ["string", "number", "object"]})
    ] = key("Of the whole topic: 20000/s, {0s: 6000/s, 10m: 24000/s}, or sine(1000/s, 5000/s, 24h).")
    keys: Annotated[Keys, as_written(parse_keys, str), WithJsonSchema({"type": ["string", "array"]})] = key(
        "How records spread over partitions: even, zipf(1.1), weights([3, 1, 1]).", Keys()
    )

    @property
    def steps(self) -> RateSteps:
        """Return (from, rate of the whole topic), in order; the first counts from the beginning. Empty where there is a wave."""
        return () if isinstance(self.rate, Wave) else self.rate

    @property
    def wave(self) -> Wave | None:
        """Return the wave that stands instead of steps; before time 0 it is at its first rate."""
        return self.rate if isinstance(self.rate, Wave) else None

    @property
    def weights(self) -> tuple[int, ...]:
        """Return the partitions' shares, repeated if there are more partitions; empty: even."""
        return self.keys.weights


def _usual_faults() -> tuple[str, ...]:
    return tuple(name for name, kind in EVENT_KINDS.items() if kind.fault is not None and kind.fault.is_usual)


class Nemesis(Section):
    """Faults that the seed chooses, then calm."""

    mean_interval_us: fields.Interval = key("How often: 1 per 5m.", of="rate")
    of: tuple[str, ...] = Field(default_factory=_usual_faults, min_length=1, strict=False)
    until_us: fields.Duration = key("When the calm begins.", 30 * MINUTE_US, of="until")


Topics: TypeAlias = Annotated[tuple[Topic, ...], ByName(Annotated[Topic, in_short(short_topic, Topic | int)])]
Groups: TypeAlias = Annotated[tuple[Group, ...], ByName(Group, key="key")]
MemberSets: TypeAlias = Annotated[tuple[MemberSet, ...], ByName(MemberSet)]
TrafficByTopic: TypeAlias = Annotated[
    tuple[Traffic, ...], ByName(Annotated[Traffic, in_short(long_traffic, Traffic | str | float)], key="topic")
]
Events: TypeAlias = Annotated[tuple[Event, ...], ReadBy(read_events), WithJsonSchema({"type": "array", "items": {}})]


class Scenario(Section):
    """One run's whole description, but for the seed.

    ``together``: where the file has several groups, those that run on the same topics at the same time, this one among them.
    """

    name: Annotated[str, TRIED] = key("Also the name of the test suite.", min_length=1, max_length=200)
    question: Annotated[str, TRIED] = key("One sentence that a person asks; shown above the result.", "")
    warmup_us: fields.Warmup = Field(default=0, validation_alias="warmup")
    duration_us: fields.RunLength = key("Measured time; auto: last event + time to stable + 60s.", None, of="duration")
    broker_version: Annotated[fields.BrokerVersion, TRIED] = key(
        "Of Kafka: 3.9, 4.0, 4.1, 4.2 or 4.3, the default; a list makes a variant of each.", None
    )
    cluster: Cluster = Field(default_factory=Cluster, validate_default=True)
    topics: Topics = Field(default_factory=tuple, validate_default=True)
    group: Annotated[Group, TRIED] = Field(default_factory=Group)
    groups: Annotated[Groups, TRIED] = key(
        "Several groups instead of one, by name; each set of members says its group.", default_factory=tuple
    )
    members: Annotated[MemberSets, TRIED] = Field(default_factory=tuple, validate_default=True)
    assign_time: Annotated[AssignTime, TRIED] = Field(default_factory=AssignTime)
    traffic: TrafficByTopic = Field(default_factory=tuple)
    autoscale: Annotated[Autoscale | None, TRIED] = None
    events: Events = ()
    nemesis: Nemesis | None = None
    allow: Annotated[tuple[fields.Allowed, ...], TRIED] = key(
        "What is not to fail a run, of what does so unasked.", (), strict=False
    )
    decided: Annotated[SkipJsonSchema[tuple[str, ...]], TRIED] = Field(default=(), validation_alias=NO_KEY)
    together: SkipJsonSchema[tuple["Scenario", ...]] = Field(default=(), validation_alias=NO_KEY)

    @property
    def group_id(self) -> str:
        return self.group.id

    @property
    def writes(self) -> bool:
        """Return whether a record is ever written: ``0/s`` is no traffic."""
        steps = [step for traffic in self.traffic for step in traffic.steps]
        steps += [step for event in self.events for step in event.rates]
        return any(rate_uhz for _, rate_uhz in steps) or any(traffic.wave is not None for traffic in self.traffic)

    def subscribes(self, members: MemberSet, topic: str) -> bool:
        """Return whether these members subscribe to a topic, should it exist."""
        if members.pattern is not None:
            return re.fullmatch(members.pattern, topic) is not None
        return topic in (members.topics or tuple(each.name for each in self.topics))

    def of_group(self, key: str) -> "Scenario":
        """Return what one of several groups is about: its members, and all that it shares with the others."""
        parts = {group.key: self._part(group) for group in self.groups}
        return changed(parts[key], together=tuple(parts.values()))

    def _part(self, group: Group) -> "Scenario":
        own = tuple(members for members in self.members if members.group == group.key)
        scales = self.autoscale is not None and self.autoscale.members in [members.name for members in own]
        group = group if "id" in group.model_fields_set else changed(group, id=group.key)
        return changed(self, group=group, members=own, autoscale=self.autoscale if scales else None)

    @field_validator("cluster")
    @classmethod
    def _cluster(cls, cluster: Cluster, info: ValidationInfo) -> Cluster:
        def of_version(config: Mapping[str, str]) -> dict[str, str]:
            return with_broker_version(config, info.data.get("broker_version"))

        if (file := reading(info)) is not None:
            path: Path = ("cluster", "config")
            if BROKER_VERSION in cluster.config:
                file.wrong((*path, BROKER_VERSION), "is not said in config: write broker_version: 4.2, at the top")
            check_settings(cluster.config, lambda config: read_broker_settings(of_version(config)), path, file)
        return changed(cluster, config=of_version(cluster.config))

    @field_validator("topics")
    @classmethod
    def _topics(cls, topics: tuple[Topic, ...], info: ValidationInfo) -> tuple[Topic, ...]:
        if (file := reading(info)) is None or "cluster" not in info.data:
            return topics
        if not topics:
            file.wrong(("topics",), "there are no topics: write topics: {orders: 12}")
        for topic in topics:
            _check_name(("topics", topic.name), file)
            for path, message in topic.contradictions(info.data["cluster"].brokers):
                file.wrong(("topics", topic.name, *path), message)
        return topics

    @field_validator("members")
    @classmethod
    def _members(cls, members: tuple[MemberSet, ...], info: ValidationInfo) -> tuple[MemberSet, ...]:
        if (file := reading(info)) is None or not {"topics", "group", "groups"} <= info.data.keys():
            return members
        groups: dict[str, Group] = {group.key: group for group in info.data["groups"]}
        if not members:
            file.wrong(("members",), "there are no members: write members: {app: {count: 3}}")
        _check_groups(groups, info.data["group"], members, file)
        broker, topics = brokers_of(info.data.get("cluster")), [topic.name for topic in info.data["topics"]]
        touched = [str(target) for kind, target in _raw_events(file) if kind.changes_sources]
        found: list[MemberSet] = []
        for each in members:
            path: Path = ("members", each.name)
            _check_name(path, file)
            known = each.group in groups
            group = groups[str(each.group)] if known else info.data["group"]
            group_path: Path = ("groups", str(each.group)) if known else ("group",)
            _check_client(each, group, group_path, file)
            for topic in each.topics:
                _check_topic(topic, (*path, "subscribe"), info.data["topics"], file)
            found.append(each.within(group))
            if why := each.subscribe.refusal(each.client, found[-1].config.get("group.protocol", "")):
                file.wrong((*path, "subscribe"), why)
            before = tuple(other for other in found[:-1] if other.group == each.group)
            check_type(found[-1], group, group_path, MemberSurroundings(broker, before, topics, touched), file)
        check_poison(info.data["topics"], [*groups.values()] or [info.data["group"]], file)
        return tuple(found)

    @field_validator("traffic")
    @classmethod
    def _traffic(cls, traffic: tuple[Traffic, ...], info: ValidationInfo) -> tuple[Traffic, ...]:
        if (file := reading(info)) is None or "topics" not in info.data:
            return traffic
        counts = {topic.name: topic.partitions for topic in info.data["topics"]}
        for each in traffic:
            _check_topic(each.topic, ("traffic", each.topic), info.data["topics"], file)
        return tuple(changed(each, keys=each.keys.over(counts.get(each.topic, 0))) for each in traffic)

    @field_validator("autoscale")
    @classmethod
    def _autoscale(cls, autoscale: Autoscale | None, info: ValidationInfo) -> Autoscale | None:
        if (file := reading(info)) is None or autoscale is None or not {"members", "traffic"} <= info.data.keys():
            return autoscale
        writes = bool(info.data["traffic"]) or any(kind.writes for kind, _ in _raw_events(file))
        rates = {each.name: each.rate_uhz for each in info.data["members"]}

        def wrong(key: str, message: str) -> None:
            file.wrong(("autoscale", key), message)

        return checked(autoscale, rates, wrong, has_traffic=writes)

    @field_validator("nemesis")
    @classmethod
    def _nemesis(cls, nemesis: Nemesis | None, info: ValidationInfo) -> Nemesis | None:
        if (file := reading(info)) is not None:
            faults = [name for name, kind in EVENT_KINDS.items() if kind.fault is not None]
            for index, kind in enumerate(nemesis.of if nemesis is not None else ()):
                if kind not in faults:
                    near = did_you_mean(kind, faults, list_up_to=12)
                    file.wrong(("nemesis", "of", index), f"unknown kind of fault {kind!r}{near}")
        return nemesis


def _check_name(path: Path, file: Reading) -> None:
    if not NAME.fullmatch(str(path[-1])):
        file.wrong(path, f"{path[-1]!r} is no name: letters, digits, dots, hyphens and underscores")


def _raw_events(file: Reading) -> list[tuple[type[Event], Any]]:
    """Return the kinds of the file's events, which are not read yet, each with what stands for its target."""
    events = file.tree.data.get("events")
    mappings = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    return [(EVENT_KINDS[key], target) for event in mappings for key, target in event.items() if key in EVENT_KINDS]


def _check_topic(name: str, path: Path, topics: tuple[Topic, ...], file: Reading) -> None:
    """Complain of a topic that is neither there nor created by an event."""
    known = [topic.name for topic in topics]
    if name not in known and not any(kind.creates_topic and target == name for kind, target in _raw_events(file)):
        pattern = f"; a pattern begins with ^: ^{name}" if re.search(r"[*+?|()\[\]]", name) else ""
        file.wrong(path, f"there is no topic {name!r}{pattern or did_you_mean(name, known, list_up_to=12)}")


def _check_groups(groups: dict[str, Group], lone: Group, members: tuple[MemberSet, ...], file: Reading) -> None:
    if groups and lone != NO_GROUP:
        file.wrong(("group",), "one scenario has one `group` or several `groups`")
    for name in groups:
        path: Path = ("groups", name)
        if not _GROUP_NAME.fullmatch(name):
            file.wrong(path, "a group is named with letters, digits, - and _, a letter first; its `id` is free")
        if not any(each.group == name for each in members):
            file.wrong(path, f"no set of members says `group: {name}`")
    for each in members:
        path = ("members", each.name, "group")
        if each.group is None and groups:
            file.wrong(path, f"says which group: one of {', '.join(groups)}")
        elif each.group is not None and each.group not in groups:
            near = did_you_mean(each.group, groups, list_up_to=12) if groups else "; write groups: {...}"
            file.wrong(path, f"there is no group {each.group!r}{near}")


def _check_client(members: MemberSet, group: Group, group_path: Path, file: Reading) -> None:
    from kgctl.member.config import OTHER_CLIENT_NAMES, profile_names

    path: Path = ("members", members.name)
    if members.client not in profile_names():
        hint = did_you_mean(members.client, profile_names(), list_up_to=12, also=OTHER_CLIENT_NAMES)
        file.wrong((*path, "client"), f"unknown client {members.client!r}{hint}")
        return
    read = read_client_settings(members.client)
    check_settings(members.config, read, (*path, "config"), file)
    check_settings(group.client_config, read, (*group_path, "config"), file)


class ScenarioFile(Scenario):
    """A whole file, merged; what ``expect`` holds is checked by kind."""

    kgctl: Literal[1] = key("Version of the language.")
    warmup_us: fields.Warmup = key("Not measured; at its end is the 0s of events.", fields.UNTIL_STABLE, of="warmup")
    seed: int = Field(default=1, ge=0, le=2**62)
    runs: int = key("How many seeds: seed, seed + 1, ...", 1, ge=1, le=100_000)
    from_manifest: SkipJsonSchema[dict[str, list[str]] | None] = None
    expect: list[Any] = Field(default_factory=list)
    output: Output = Field(default_factory=Output)
    sweep: dict[str, fields.SweepValues] = key(
        "Parameters for `simulate sweep`: path.to.key: [values], or a range.", default_factory=dict
    )
    report: SweepReport = Field(default_factory=SweepReport)
