"""A consumer's settings, under Kafka's names; the defaults of each client are its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import cache, lru_cache
from typing import Any

from kgctl.assignors.registry import has_assignor
from kgctl.errors import UsageError, did_you_mean
from kgctl.model.values import frozen

_NAMES = """
    allow.auto.create.topics auto.include.jmx.reporter bootstrap.servers bootstrap.resolve.timeout.ms check.crcs client.dns.lookup
    client.id config.providers connections.max.idle.ms enable.metrics.push exclude.internal.topics fetch.max.bytes
    fetch.max.wait.ms fetch.min.bytes group.id interceptor.classes isolation.level key.deserializer
    max.partition.fetch.bytes metadata.recovery.rebootstrap.trigger.ms
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.ms security.protocol security.providers send.buffer.bytes share.acknowledgement.mode share.acquire.mode
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms value.deserializer
    sasl.jaas.config sasl.mechanism sasl.client.callback.handler.class sasl.login.class sasl.login.callback.handler.class
    sasl.kerberos.service.name sasl.username sasl.password
    ssl.ca.location ssl.certificate.location ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.key.location ssl.key.password ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""

SETTINGS_ELSEWHERE = frozenset(_NAMES.split())


MAX_INT = 2**31 - 1
STREAMS = "kafka-streams"
"""The profile of a stream thread of Kafka Streams."""
JOIN_TIMEOUT_LAPSE_MS = 5_000
"""Kafka: AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE. The coordinator needs a while to answer after the rebalance timeout."""
SettingValue = int | bool | str | tuple[str, ...] | None


def setting(
    name: str,
    default: SettingValue,
    *,
    at_least: int | None = None,
    choices: tuple[str, ...] = (),
    kind: str = "",
    client: str = "",
) -> Any:
    """A dataclass field that is the setting of this name. ``kind`` where the default does not tell: "number", "text". ``client``:
    the only profile that has it."""
    return field(
        default=default, metadata={"name": name, "at_least": at_least, "choices": choices, "kind": kind, "client": client}
    )


@frozen
class HeartbeatDrift:
    """How far a client's heartbeats stray from their interval, in microseconds.

    Each beat comes ``constant_us`` late, plus an evenly spread number of ``-walk_us..walk_us`` that adds up over the beats (the
    phases of members part), plus one of ``-jitter_us..jitter_us`` that does not. ``phase_locked``: the timer starts anew with
    each generation, so that all members beat together; without it each generation begins at a random phase. ``goes_on``: no
    generation touches the timer: a beat leaves an interval after the one before, or when the member is in a generation again.
    """

    constant_us: int = 0
    walk_us: int = 0
    jitter_us: int = 0
    phase_locked: bool = True
    goes_on: bool = False


@frozen
class Behaviour:
    """What differs between clients beside their settings.

    ``joins_itself``: a thread of the client's own takes answers as they come, joins and syncs; without it, the application's
    does, inside poll(). ``calls_back_itself``: rebalance callbacks run in that thread; without it, the application's poll() runs
    them, and the round waits for it. ``mixes_protocols``: eager and cooperative assignors may stand in one list.
    ``watches_partitions``: the leader rebalances when a topic grows. ``limits_poll_interval``: ``max.poll.interval.ms`` counts.
    ``assignor_prefix`` goes before the protocol's name where the client's assignor of that name is not Kafka's.
    ``reads_every_us``: how often the client's own thread reads answers between polls; 0: as they come. ``joins_without_id``: an
    old JoinGroup, which is never answered with MEMBER_ID_REQUIRED (KIP-394). ``leaves_when_refused``: a failed heartbeat ends
    the generation, and a join that fails the membership: the client leaves, forgets its id and waits for ``JoinGroupBackoff``.
    ``rebootstraps``: the client forgets the topics where no broker can be reached, so that a classic leader joins again.
    ``adds_timeouts``: the request timeout is what a call takes beyond the time for which its answer may be parked: of a
    JoinGroup the rebalance timeout, of a SyncGroup that of the session. ``close_lag_us``: how much longer close() may take than
    leaving the group (a fetch that is under way), evenly spread from 0 on. ``made_us``: until the application has its consumer
    and has subscribed, evenly spread: least and most of what was measured. ``start_us``: from subscribe() to the JoinGroup,
    evenly spread: least and median of what was measured (tests/calibration/profiles.json; Java: in a process that has just
    begun). ``commits_by_clock``: automatic commits come an interval apart from the start on, whatever rebalances and other
    commits there are. ``commits_given_up``: automatic commits of what a classic member gives up come as it gives it up, and the
    round waits for them; without it, of all that it reads as a round begins. ``collects_commits``: an interval of the
    application's commits is the client's own, which also commits as it gives something up. ``limit_lag_us``: how late the
    client sees that ``max.poll.interval.ms`` is over, evenly spread from 0 on; ``limits_at_beats``: with its next heartbeat.
    ``passes_on_late``: a fetch that is under way when a generation ends comes back with what is written next, and hands each
    of its records over, as long as a coin says so, though nobody commits that in time.
    ``silent_past_limit``: in the consumer protocol it then sends no heartbeat, and leaves at the next poll(). ``runs_tasks``: a
    stream thread of Kafka Streams, whose other protocol is "streams". ``back_lag_us``: how late it
    sees, evenly spread, that the application polls again.
    """

    joins_itself: bool = False
    calls_back_itself: bool = False
    mixes_protocols: bool = True
    speaks_cooperative: bool = True
    speaks_consumer_protocol: bool = True
    runs_tasks: bool = False
    watches_partitions: bool = True
    limits_poll_interval: bool = True
    reads_every_us: int = 0
    close_lag_us: int = 0
    made_us: tuple[int, int] = (5_000, 17_000)
    start_us: tuple[int, int] = (36_000, 114_000)
    joins_without_id: bool = False
    leaves_when_refused: bool = False
    rebootstraps: bool = False
    adds_timeouts: bool = False
    commits_by_clock: bool = False
    commits_given_up: bool = False
    collects_commits: bool = False
    passes_on_late: bool = False
    limit_lag_us: int = 0
    limits_at_beats: bool = False
    silent_past_limit: bool = False
    back_lag_us: int = 0
    rebalance_timeout_is_session_timeout: bool = False
    assignor_prefix: str = ""
    classic_drift: HeartbeatDrift = HeartbeatDrift()
    consumer_drift: HeartbeatDrift = HeartbeatDrift()

    @property
    def queues_callbacks(self) -> bool:
        """Whether a thread of the client's own leaves callbacks to the application's poll()."""
        return self.joins_itself and not self.calls_back_itself


@frozen
class MemberConfig:
    """One field for each setting that a member's group life depends on; ``profile`` names the client, ``behaviour`` is its.

    ``given``: Kafka's names of the settings that were said, whatever their values: clients refuse those of the other protocol.
    ``rebalance_timeout_ms`` None: ``max.poll.interval.ms`` (aiokafka: the session timeout). ``close_operation``: whether
    close() leaves the group; "default" leaves unless the member is static (Java: CloseOptions.GroupMembershipOperation).
    """

    profile: str = "java"
    behaviour: Behaviour = Behaviour()
    given: frozenset[str] = frozenset()
    group_protocol: str = setting("group.protocol", "classic", choices=("classic", "consumer", "streams"))
    group_remote_assignor: str | None = setting("group.remote.assignor", None, kind="text")
    group_instance_id: str | None = setting("group.instance.id", None, kind="text")
    client_rack: str | None = setting("client.rack", None, kind="text")
    session_timeout_ms: int = setting("session.timeout.ms", 45_000, at_least=1)
    heartbeat_interval_ms: int = setting("heartbeat.interval.ms", 3_000, at_least=1)
    max_poll_interval_ms: int = setting("max.poll.interval.ms", 300_000, at_least=1)
    max_poll_records: int = setting("max.poll.records", 500, at_least=1)
    rebalance_timeout_ms: int | None = setting("rebalance.timeout.ms", None, at_least=1, kind="number")
    partition_assignment_strategy: tuple[str, ...] = setting("partition.assignment.strategy", ("range", "cooperative-sticky"))
    enable_auto_commit: bool = setting("enable.auto.commit", default=True)
    auto_commit_interval_ms: int = setting("auto.commit.interval.ms", 5_000, at_least=0)
    auto_offset_reset: str = setting("auto.offset.reset", "latest", choices=("earliest", "latest", "none"))
    metadata_max_age_ms: int = setting("metadata.max.age.ms", 300_000, at_least=0)
    metadata_recovery_strategy: str = setting("metadata.recovery.strategy", "rebootstrap", choices=("none", "rebootstrap"))
    retry_backoff_ms: int = setting("retry.backoff.ms", 100, at_least=0)
    retry_backoff_max_ms: int = setting("retry.backoff.max.ms", 1_000, at_least=0)
    reconnect_backoff_max_ms: int = setting("reconnect.backoff.max.ms", 1_000, at_least=0)
    request_timeout_ms: int = setting("request.timeout.ms", 30_000, at_least=1)
    default_api_timeout_ms: int = setting("default.api.timeout.ms", 60_000, at_least=0)
    join_group_backoff_ms: int = setting("JoinGroupBackoff", 5_000, at_least=0, client="kafka-go")
    watch_partition_changes: bool = setting("WatchPartitionChanges", default=False, client="kafka-go")
    partition_watch_interval_ms: int = setting("PartitionWatchInterval", 5_000, at_least=1, client="kafka-go")
    retention_ms: int = setting("RetentionTime", -1, at_least=-1, client="kafka-go")
    processing_guarantee: str = setting(
        "processing.guarantee", "at_least_once", choices=("at_least_once", "exactly_once_v2"), client=STREAMS
    )
    num_standby_replicas: int = setting("num.standby.replicas", 0, at_least=0, client=STREAMS)
    acceptable_recovery_lag: int = setting("acceptable.recovery.lag", 10_000, at_least=0, client=STREAMS)
    max_warmup_replicas: int = setting("max.warmup.replicas", 2, at_least=1, client=STREAMS)
    probing_rebalance_interval_ms: int = setting("probing.rebalance.interval.ms", 600_000, at_least=60_000, client=STREAMS)
    num_stream_threads: int = setting("num.stream.threads", 1, at_least=1, client=STREAMS)
    state_cleanup_delay_ms: int = setting("state.cleanup.delay.ms", 600_000, at_least=0, client=STREAMS)
    share_acknowledgement_mode: str = setting("share.acknowledgement.mode", "implicit", choices=("implicit", "explicit"))
    share_acquire_mode: str = setting("share.acquire.mode", "batch_optimized", choices=("batch_optimized", "record_limit"))
    close_operation: str = setting("group.membership.operation", "default", choices=("default", "leave", "remain"))

    @property
    def auto_commit_interval_us(self) -> int:
        """The time between two automatic commits, never 0."""
        return max(self.auto_commit_interval_ms * 1000, 1)

    @property
    def effective_rebalance_timeout_ms(self) -> int:
        """Return the rebalance timeout that the member sends."""
        if self.rebalance_timeout_ms is not None:
            return self.rebalance_timeout_ms
        return self.session_timeout_ms if self.behaviour.rebalance_timeout_is_session_timeout else self.max_poll_interval_ms

    @property
    def commit_retention_ms(self) -> int | None:
        """How long the client asks a commit to be kept; None: as long as the brokers keep it."""
        return self.retention_ms if self.retention_ms >= 0 else None

    @property
    def join_timeout_ms(self) -> int:
        """How long the client waits for the answer to a JoinGroup, which is parked for up to the rebalance timeout."""
        if self.behaviour.adds_timeouts:
            return self.request_timeout_ms + self.effective_rebalance_timeout_ms
        return max(self.request_timeout_ms, self.effective_rebalance_timeout_ms + JOIN_TIMEOUT_LAPSE_MS)

    @property
    def sync_timeout_ms(self) -> int:
        """How long the client waits for the answer to a SyncGroup, which is parked until the leader's has come."""
        return self.request_timeout_ms + (self.session_timeout_ms if self.behaviour.adds_timeouts else 0)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], profile: str = "java") -> MemberConfig:
        """The settings of this client with these values instead of its defaults; names and texts as in a properties file.

        Names may be written with underscores. Assignors may be Java classes of Kafka's own. Settings that have nothing to do with
        groups (brokers, deserialisers, fetch sizes) are accepted and not looked at.

        Raises:
            UsageError: no such client, a setting that does not exist (with near ones), or a value that it cannot have.
        """

        base, aliases = get_profile(profile)
        values: dict[str, SettingValue] = {}
        for given, text in properties.items():
            if (unknown := unknown_setting(given, profile)) is not None:
                raise UsageError(unknown)
            name = _kafkas_name(given, aliases)
            entry = settings().get(name)
            if entry is not None and entry.metadata["client"] in ("", profile):
                values[entry.name] = parse_setting(entry, text)
            elif name.endswith((".ms", ".bytes", ".records")) and not text.strip().removeprefix("-").isdecimal():
                raise UsageError(f"setting {name!r} must be a whole number, not {text!r}")
        said = frozenset(name for name, entry in settings().items() if entry.name in values)
        found = replace(base, given=said, **values)  # type: ignore[arg-type]  # each value has the type of its field
        if found.watch_partition_changes:
            watching = replace(found.behaviour, watches_partitions=True)
            return replace(found, behaviour=watching, metadata_max_age_ms=found.partition_watch_interval_ms)
        return found


def unknown_setting(given: str, profile: str) -> str | None:
    """Say that this client has no setting of the name, with near ones; None: it has. Raises `UsageError` for no client."""
    name = _kafkas_name(given, get_profile(profile)[1])
    entry = settings().get(name)
    if (entry is not None and entry.metadata["client"] in ("", profile)) or name in SETTINGS_ELSEWHERE:
        return None
    return f"unknown consumer setting {given!r}{did_you_mean(name, [*settings(), *SETTINGS_ELSEWHERE], at_most=3)}"


def _kafkas_name(given: str, aliases: Mapping[str, str]) -> str:
    name = given.strip().replace("_", ".")
    return aliases.get(name, name)


@cache
def settings() -> Mapping[str, Any]:
    """Kafka's name -> the field, in the order of the class."""
    return {entry.metadata["name"]: entry for entry in fields(MemberConfig) if entry.metadata}


def parse_setting(entry: Any, text: str) -> SettingValue:
    """The value that ``text`` stands for, for this field made by `setting`. Raises `UsageError`."""
    name, default = entry.metadata["name"], entry.default
    if isinstance(default, tuple):
        return _parse_assignors(name, text)
    if isinstance(default, bool):
        if text.strip().lower() not in ("true", "false"):
            raise UsageError(f"setting {name!r} must be true or false, not {text!r}")
        return text.strip().lower() == "true"
    if isinstance(default, int) or entry.metadata["kind"] == "number":
        return _parse_number(name, text, entry.metadata["at_least"])
    return _parse_choice(name, text.strip(), entry.metadata["choices"])


def _parse_choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    if not choices:
        return text
    if text.lower() not in choices:
        raise UsageError(f"setting {name!r} must be one of {', '.join(choices)}, not {text!r}")
    return text.lower()


def _parse_number(name: str, text: str, at_least: int | None) -> int:
    try:
        value = int(text.strip())
    except ValueError:
        unit = " of milliseconds" if name.endswith(".ms") else ""
        raise UsageError(f"setting {name!r} must be a whole number{unit}, not {text!r}") from None
    if at_least is not None and value < at_least:
        raise UsageError(f"setting {name!r} must be at least {at_least}, not {value}")
    if value > MAX_INT:
        raise UsageError(f"setting {name!r} must be at most {MAX_INT}, not {value}")
    return value


_JAVA_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def _parse_assignors(name: str, text: str) -> tuple[str, ...]:
    parts = [part.strip() for part in text.strip().strip("[]").split(",")]
    assignors = tuple(_JAVA_ASSIGNORS.get(part, part) for part in parts if part)
    if len(set(assignors)) < len(assignors):
        raise UsageError(f"setting {name!r} names an assignor twice: {text}")
    return assignors


_PUNCTUAL = HeartbeatDrift(constant_us=1_000, walk_us=2_000, jitter_us=2_000)

_JAVA = MemberConfig(
    profile="java",
    behaviour=Behaviour(
        close_lag_us=500_000,
        rebootstraps=True,
        # HeartbeatThread#run waits for retry.backoff.ms between two looks at the network.
        reads_every_us=100_000,
        # Classic: 3.020 s, sd 0.032 s, range 2.91-3.12 s; eight members have spread over 0.3-0.5 s after 400 s.
        classic_drift=HeartbeatDrift(constant_us=20_000, walk_us=20_000, jitter_us=36_000),
        # Consumer protocol: 5.000 s, sd 0.009 s, the phase of each member's own start.
        consumer_drift=HeartbeatDrift(jitter_us=11_000),
    ),
)

PROFILES: Mapping[str, MemberConfig] = {
    "java": _JAVA,
    "librdkafka": replace(
        _JAVA,
        profile="librdkafka",
        behaviour=Behaviour(
            mixes_protocols=False,
            # rd_kafka_thread_main serves the group (rd_kafka_cgrp_serve); rd_kafka_rebalance_op and ..._op_incr queue callbacks
            # on rkcg_q, which rd_kafka_consumer_poll serves.
            joins_itself=True,
            commits_by_clock=True,
            commits_given_up=True,  # rd_kafka_assignment_serve_removals, whose commits rd_kafka_assignment_serve waits for
            silent_past_limit=True,
            limit_lag_us=500_000,  # rd_kafka_cgrp_max_poll_interval_check_tmr_cb: twice a second
            made_us=(4_000, 6_000),
            start_us=(54_000, 57_000),
            assignor_prefix="librdkafka:",
            classic_drift=replace(_PUNCTUAL, goes_on=True),  # rkcg_heartbeat_intvl, which no generation resets
            consumer_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("range", "roundrobin"),
        request_timeout_ms=60_000,
        reconnect_backoff_max_ms=10_000,
    ),
    "kafka-go": replace(
        _JAVA,
        profile="kafka-go",
        behaviour=Behaviour(
            # ConsumerGroup.run joins in a goroutine of its own; Reader.run takes a generation's partitions in another.
            joins_itself=True,
            calls_back_itself=True,
            collects_commits=True,  # Reader.commitLoopInterval commits what it was told before the generation ends
            # Reader.unsubscribe waits for fetches; reader.sendMessage chooses at random between the queue and the end.
            passes_on_late=True,
            speaks_cooperative=False,
            speaks_consumer_protocol=False,
            watches_partitions=False,
            limits_poll_interval=False,
            joins_without_id=True,
            leaves_when_refused=True,
            adds_timeouts=True,
            made_us=(0, 3_000),
            start_us=(5_000, 8_000),
            assignor_prefix="kafka-go:",
            classic_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("range", "roundrobin"),
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        request_timeout_ms=5_000,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ),
    "franz-go": replace(
        _JAVA,
        profile="franz-go",
        behaviour=Behaviour(
            # Goroutines of groupConsumer.manage, and of manage848 in the consumer protocol, join and call OnPartitionsRevoked and
            # the like, at any time: BlockRebalanceOnPoll, by which a poll that goes on holds them up, is off by default.
            joins_itself=True,
            calls_back_itself=True,
            limits_poll_interval=False,
            made_us=(0, 2_000),
            start_us=(5_000, 11_000),
            classic_drift=_PUNCTUAL,
            consumer_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("cooperative-sticky",),
        rebalance_timeout_ms=60_000,
        auto_offset_reset="earliest",
    ),
    "kafka-python": replace(
        _JAVA,
        profile="kafka-python",
        behaviour=Behaviour(
            # ConsumerCoordinator.poll begins a round, and goes on with one (BaseCoordinator.join_group_async). What it begins
            # runs on the client's I/O thread, the listener and SyncGroup too: after a poll() that ended before JoinGroup was
            # answered, SyncGroup does not wait for the next one, which is not simulated. _heartbeat_loop beats there.
            speaks_consumer_protocol=False,
            limits_at_beats=True,  # BaseCoordinator._heartbeat_loop sleeps until its next heartbeat
            made_us=(99_000, 154_000),
            start_us=(10_000, 13_000),
            classic_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("range", "roundrobin"),
        reconnect_backoff_max_ms=30_000,
    ),
    "aiokafka": replace(
        _JAVA,
        profile="aiokafka",
        behaviour=Behaviour(
            # GroupCoordinator._coordination_routine, a task of its own, joins and awaits the listener (_on_join_prepare).
            joins_itself=True,
            calls_back_itself=True,
            speaks_cooperative=False,
            speaks_consumer_protocol=False,
            rebalance_timeout_is_session_timeout=True,
            made_us=(41_000, 59_000),
            start_us=(9_000, 17_000),
            back_lag_us=100_000,  # GroupCoordinator.ensure_active_group looks every retry_backoff_ms, while nobody fetches
            classic_drift=_PUNCTUAL,
        ),
        partition_assignment_strategy=("roundrobin",),
        session_timeout_ms=10_000,
        request_timeout_ms=40_000,
    ),
    STREAMS: replace(
        _JAVA,
        profile=STREAMS,
        behaviour=replace(_JAVA.behaviour, speaks_consumer_protocol=False, runs_tasks=True),
        partition_assignment_strategy=("stream",),
        max_poll_records=1_000,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=30_000,  # commit.interval.ms: tasks are committed then, and before they are given up
        close_operation="remain",  # KafkaStreams#close, which the streams protocol does not go by
    ),
}

_ALIASES: Mapping[str, Mapping[str, str]] = {
    "librdkafka": {"topic.metadata.refresh.interval.ms": "metadata.max.age.ms", "socket.timeout.ms": "request.timeout.ms"},
    "kafka-go": {
        "SessionTimeout": "session.timeout.ms",
        "HeartbeatInterval": "heartbeat.interval.ms",
        "RebalanceTimeout": "rebalance.timeout.ms",
        "Timeout": "request.timeout.ms",
    },
    STREAMS: {"commit.interval.ms": "auto.commit.interval.ms"},
}


OTHER_CLIENT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("confluent-kafka", "confluent-kafka-python", "confluent-kafka-go", "confluent-kafka-dotnet"), "librdkafka"),
    **dict.fromkeys(("rdkafka", "node-rdkafka", "rust-rdkafka", "php-rdkafka", ".net"), "librdkafka"),
    **dict.fromkeys(("kafka-clients", "spring", "spring-kafka", "spring-boot", "kotlin", "scala", "jvm"), "java"),
    **dict.fromkeys(("segmentio", "segmentio/kafka-go"), "kafka-go"),
    **dict.fromkeys(("kgo", "twmb/franz-go"), "franz-go"),
}
"""What a library is called that is made with one of the clients, or that others call so -> the client."""


def profile_names() -> tuple[str, ...]:
    """Return the names of the clients that there are profiles of."""
    return tuple(PROFILES)


def get_profile(name: str) -> tuple[MemberConfig, Mapping[str, str]]:
    """A client's defaults, and its own names for settings that Kafka calls otherwise. Raises `UsageError` for an unknown one."""
    if name not in PROFILES:
        raise UsageError(f"unknown client {name!r}{did_you_mean(name, PROFILES)} (known: {', '.join(PROFILES)})")
    return PROFILES[name], _ALIASES.get(name, {})


COOPERATIVE_ASSIGNORS = frozenset({"cooperative-sticky", "librdkafka:cooperative-sticky", "stream"})


@lru_cache(maxsize=256)
def is_cooperative(strategy: tuple[str, ...]) -> bool:
    """Whether a consumer with these assignors rebalances cooperatively: all of them must be able to."""
    return bool(strategy) and all(name in COOPERATIVE_ASSIGNORS for name in strategy)


OF_OTHER_PROTOCOL = {
    "consumer": ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"),
    "classic": ("group.remote.assignor",),
    "streams": (
        *("session.timeout.ms", "heartbeat.interval.ms", "group.membership.operation", "num.standby.replicas"),
        *("acceptable.recovery.lag", "max.warmup.replicas", "probing.rebalance.interval.ms"),
    ),
}
"""Protocol -> settings of the other one. Kafka: ConsumerConfig#checkUnsupportedConfigsPostProcess."""
_REFUSES_OTHERS = frozenset({("java", "consumer"), ("librdkafka", "consumer"), ("java", "classic")})
"""Clients that do not start with them, as tried with Kafka 4.3.1 and librdkafka 2; others pass them over."""


INVALID_CONFIG = "INVALID_CONFIG"
"""What a member ends with that its client does not start: see `refusal`."""


def refusal(config: MemberConfig) -> str | None:
    """Why the client would not start with these settings; None: it starts."""
    if others := others_refused(config):
        return f"{config.profile} refuses {', '.join(others)} beside group.protocol={config.group_protocol}: leave it out (null)"
    if config.group_protocol == "consumer":
        if not config.behaviour.speaks_consumer_protocol:
            return f"{config.profile} does not speak the consumer protocol (group.protocol=consumer)"
        return None
    if config.group_protocol == "streams":
        return None if config.behaviour.runs_tasks else f"{config.profile} does not speak the streams protocol"
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        return (
            f"heartbeat.interval.ms ({config.heartbeat_interval_ms}) must be lower than session.timeout.ms "
            f"({config.session_timeout_ms})"
        )
    return None if config.behaviour.runs_tasks else _strategy_refusal(config)


def others_refused(config: MemberConfig) -> list[str]:
    """Settings of the other protocol that were said, and with which this client does not start."""
    if (config.profile, config.group_protocol) not in _REFUSES_OTHERS:
        return []
    return [name for name in OF_OTHER_PROTOCOL[config.group_protocol] if name in config.given]


def _strategy_refusal(config: MemberConfig) -> str | None:
    strategy, behaviour = config.partition_assignment_strategy, config.behaviour
    if not strategy:
        return "partition.assignment.strategy names no assignor"
    for name in strategy:
        if ":" not in name and not has_assignor(behaviour.assignor_prefix + name) and not has_assignor(name):
            return f"partition.assignment.strategy: unknown assignor {name!r}"
    cooperative = [name for name in strategy if name in COOPERATIVE_ASSIGNORS]
    if cooperative and not behaviour.speaks_cooperative:
        return f"{config.profile} does not rebalance cooperatively: it has no assignor {cooperative[0]!r}"
    if cooperative and len(cooperative) < len(strategy) and not behaviour.mixes_protocols:
        return f"{config.profile} refuses a list that mixes eager and cooperative assignors: {', '.join(strategy)}"
    return None
