"""The broker's settings for groups and offsets, under Kafka's names and with Kafka's defaults (4.3.1).

Two of them say which partition of ``__consumer_offsets``, and so which broker, looks after a group
(`kgctl.model.values.partition_for`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Self

from kgctl.coordinator.profile import LATEST, PROFILES, Profile, profile_of
from kgctl.errors import UsageError, did_you_mean
from kgctl.model.settings import MAX_INT, SettingValue, parse_setting, setting
from kgctl.model.values import frozen, partition_for

_NEVER_MS = 2**62
BROKER_VERSION = "kgctl.broker.version"
MIGRATION_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")


@frozen
class CoordinatorConfig:
    """One field for each setting. Those that only matter to threads and disks are accepted, so that a broker's file can be used.

    ``kgctl.rebalance.stuck.timeout.ms`` is kgctl's own: a rebalance without progress for that long is completed without the
    members it waits for. 0, the default, leaves everything to Kafka's timers.

    ``kgctl.broker.version`` says which version's coordinator this is; settings that it does not have are refused.
    """

    group_min_session_timeout_ms: int = setting("group.min.session.timeout.ms", 6_000, 1)
    group_max_session_timeout_ms: int = setting("group.max.session.timeout.ms", 1_800_000, 1)
    group_initial_rebalance_delay_ms: int = setting("group.initial.rebalance.delay.ms", 3_000, 0)
    group_max_size: int = setting("group.max.size", MAX_INT, 1)

    group_consumer_session_timeout_ms: int = setting("group.consumer.session.timeout.ms", 45_000, 1)
    group_consumer_min_session_timeout_ms: int = setting("group.consumer.min.session.timeout.ms", 45_000, 1)
    group_consumer_max_session_timeout_ms: int = setting("group.consumer.max.session.timeout.ms", 60_000, 1)
    group_consumer_heartbeat_interval_ms: int = setting("group.consumer.heartbeat.interval.ms", 5_000, 1)
    group_consumer_min_heartbeat_interval_ms: int = setting("group.consumer.min.heartbeat.interval.ms", 5_000, 1)
    group_consumer_max_heartbeat_interval_ms: int = setting("group.consumer.max.heartbeat.interval.ms", 15_000, 1)
    group_consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms", 1_000, 0, since="4.3", before={"4.3": 0}
    )
    group_consumer_min_assignment_interval_ms: int = setting("group.consumer.min.assignment.interval.ms", 0, 0, since="4.3")
    group_consumer_max_assignment_interval_ms: int = setting("group.consumer.max.assignment.interval.ms", 15_000, 0, since="4.3")
    group_consumer_max_size: int = setting("group.consumer.max.size", MAX_INT, 1)
    group_consumer_assignors: tuple[str, ...] = setting("group.consumer.assignors", ("uniform", "range"))
    group_consumer_migration_policy: str = setting("group.consumer.migration.policy", "bidirectional", before={"4.0": "disabled"})
    group_consumer_regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms", 600_000, 10_000, since="4.1", before={"4.1": _NEVER_MS}
    )

    group_share_session_timeout_ms: int = setting("group.share.session.timeout.ms", 45_000, 1, since="4.0")
    group_share_min_session_timeout_ms: int = setting("group.share.min.session.timeout.ms", 45_000, 1, since="4.0")
    group_share_max_session_timeout_ms: int = setting("group.share.max.session.timeout.ms", 60_000, 1, since="4.0")
    group_share_heartbeat_interval_ms: int = setting("group.share.heartbeat.interval.ms", 5_000, 1, since="4.0")
    group_share_min_heartbeat_interval_ms: int = setting("group.share.min.heartbeat.interval.ms", 5_000, 1, since="4.0")
    group_share_max_heartbeat_interval_ms: int = setting("group.share.max.heartbeat.interval.ms", 15_000, 1, since="4.0")
    group_share_assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms", 1_000, 0, since="4.3", before={"4.3": 0}
    )
    group_share_min_assignment_interval_ms: int = setting("group.share.min.assignment.interval.ms", 0, 0, since="4.3")
    group_share_max_assignment_interval_ms: int = setting("group.share.max.assignment.interval.ms", 15_000, 0, since="4.3")
    group_share_record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms", 30_000, 1_000, 3_600_000, since="4.0"
    )
    group_share_min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms", 15_000, 1_000, 30_000, since="4.0"
    )
    group_share_max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms", 60_000, 30_000, 3_600_000, since="4.0"
    )
    group_share_delivery_count_limit: int = setting("group.share.delivery.count.limit", 5, 2, 10, since="4.0")
    group_share_min_delivery_count_limit: int = setting("group.share.min.delivery.count.limit", 2, 2, 5, since="4.3")
    group_share_max_delivery_count_limit: int = setting("group.share.max.delivery.count.limit", 10, 5, 25, since="4.3")
    group_share_partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks", 2_000, 100, 10_000, since="4.0", before={"4.1": 200}
    )
    group_share_min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks", 100, 100, 2_000, since="4.3"
    )
    group_share_max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks", 4_000, 2_000, 10_000, since="4.3"
    )
    group_share_max_share_sessions: int = setting("group.share.max.share.sessions", 2_000, 1, since="4.1")
    group_share_max_size: int = setting("group.share.max.size", 200, 1, 1_000, since="4.0")
    group_share_assignors: tuple[str, ...] = setting("group.share.assignors", ("simple",), since="4.1")
    group_share_initialize_retry_interval_ms: int = setting("group.share.initialize.retry.interval.ms", 30_000, 1, since="4.1")

    group_streams_session_timeout_ms: int = setting("group.streams.session.timeout.ms", 45_000, 1, since="4.1")
    group_streams_min_session_timeout_ms: int = setting("group.streams.min.session.timeout.ms", 45_000, 1, since="4.1")
    group_streams_max_session_timeout_ms: int = setting("group.streams.max.session.timeout.ms", 60_000, 1, since="4.1")
    group_streams_heartbeat_interval_ms: int = setting("group.streams.heartbeat.interval.ms", 5_000, 1, since="4.1")
    group_streams_min_heartbeat_interval_ms: int = setting("group.streams.min.heartbeat.interval.ms", 5_000, 1, since="4.1")
    group_streams_max_heartbeat_interval_ms: int = setting("group.streams.max.heartbeat.interval.ms", 15_000, 1, since="4.1")
    group_streams_assignment_interval_ms: int = setting(
        "group.streams.assignment.interval.ms", 1_000, 0, since="4.3", before={"4.3": 0}
    )
    group_streams_min_assignment_interval_ms: int = setting("group.streams.min.assignment.interval.ms", 0, 0, since="4.3")
    group_streams_max_assignment_interval_ms: int = setting("group.streams.max.assignment.interval.ms", 15_000, 0, since="4.3")
    group_streams_max_size: int = setting("group.streams.max.size", MAX_INT, 1, since="4.1")
    group_streams_num_standby_replicas: int = setting("group.streams.num.standby.replicas", 0, 0, since="4.1")
    group_streams_max_standby_replicas: int = setting("group.streams.max.standby.replicas", 2, 0, since="4.1")
    group_streams_initial_rebalance_delay_ms: int = setting("group.streams.initial.rebalance.delay.ms", 3_000, 0, since="4.2")

    group_coordinator_threads: int = setting("group.coordinator.threads", 4, 1, before={"4.0": 1})
    group_coordinator_background_threads: int = setting("group.coordinator.background.threads", 2, 1, since="4.3")
    group_coordinator_append_linger_ms: int = setting("group.coordinator.append.linger.ms", -1, -1, before={"4.0": 10, "4.2": 5})
    group_coordinator_cached_buffer_max_bytes: int = setting(
        "group.coordinator.cached.buffer.max.bytes", 1_048_588, 512 * 1024, since="4.3"
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = setting(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        before={"4.0": ("classic",), "4.1": ("classic", "consumer")},
    )

    offset_metadata_max_bytes: int = setting("offset.metadata.max.bytes", 4_096, 0)
    offsets_retention_minutes: int = setting("offsets.retention.minutes", 10_080, 1)
    offsets_retention_check_interval_ms: int = setting("offsets.retention.check.interval.ms", 600_000, 1)
    offsets_commit_timeout_ms: int = setting("offsets.commit.timeout.ms", 5_000, 1)
    offsets_load_buffer_size: int = setting("offsets.load.buffer.size", 5_242_880, 1)
    offsets_topic_num_partitions: int = setting("offsets.topic.num.partitions", 50, 1)
    offsets_topic_replication_factor: int = setting("offsets.topic.replication.factor", 3, 1)
    offsets_topic_segment_bytes: int = setting("offsets.topic.segment.bytes", 104_857_600, 1)
    offsets_topic_compression_codec: int = setting("offsets.topic.compression.codec", 0, 0, 4)

    kgctl_broker_version: str = setting(BROKER_VERSION, LATEST.version)
    kgctl_rebalance_stuck_timeout_ms: int = setting("kgctl.rebalance.stuck.timeout.ms", 0, 0)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """The settings with these values instead of the defaults, names and texts as in a broker's properties file.

        Raises `UsageError` naming a setting that does not exist (and near ones that do), a value of the wrong kind or out of
        bounds, and settings that contradict each other.
        """
        profile = profile_of(properties.get(BROKER_VERSION, LATEST.version))
        known = _settings_of(profile)
        values = _older_defaults(profile)
        for name, text in properties.items():
            if name not in known:
                raise UsageError(f"unknown setting {name!r}{_hint(name, profile)}")
            values[known[name].name] = parse_setting(known[name], text)
        values["kgctl_broker_version"] = profile.version
        config = cls(**values)  # type: ignore[arg-type]  # each value has the type of its field's default
        _check_together(config)
        return config

    @property
    def profile(self) -> Profile:
        """What the coordinator of ``kgctl.broker.version`` does and does not."""
        return PROFILES[self.kgctl_broker_version]

    @property
    def offsets_retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000

    @property
    def share_initialize_retry_interval_ms(self) -> int:
        """After this the state of a share partition that is not there yet is asked for again; no sooner than a write may take."""
        return max(self.group_share_initialize_retry_interval_ms, self.offsets_commit_timeout_ms)

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group may become a consumer-protocol group while it has members."""
        return self.group_consumer_migration_policy in ("upgrade", "bidirectional")

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer-protocol group may become a classic group while it has members."""
        return self.group_consumer_migration_policy in ("downgrade", "bidirectional")


def with_broker_version(
    settings: Mapping[str, str], version: str | None, *, otherwise: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """These settings as those of a broker of this version; as they are where none is named. Raises `UsageError`.

    ``otherwise``: what settings that the version has are where they are not among these.
    """
    named = {**settings, **({} if version is None else {BROKER_VERSION: profile_of(version).version})}
    known = setting_names(profile_of(named.get(BROKER_VERSION, LATEST.version))) if otherwise else ()
    return {**{name: value for name, value in otherwise.items() if name in known}, **named}


@cache
def _settings() -> dict[str, Any]:
    return {entry.metadata["name"]: entry for entry in fields(CoordinatorConfig)}


def setting_names(profile: Profile = LATEST) -> tuple[str, ...]:
    """The names of all settings that a broker version has, in the order of the class."""
    return tuple(_settings_of(profile))


@cache
def _settings_of(profile: Profile) -> dict[str, Any]:
    return {name: entry for name, entry in _settings().items() if profile.is_since(entry.metadata["since"])}


def _older_defaults(profile: Profile) -> dict[str, SettingValue]:
    values: dict[str, SettingValue] = {}
    for entry in _settings().values():
        older = [value for version, value in entry.metadata["before"].items() if not profile.is_since(version)]
        if older:
            values[entry.name] = older[0]
    return values


def _hint(name: str, profile: Profile) -> str:
    """Where the setting is to be had, or near ones."""
    if name in _settings():
        return f" in Kafka {profile.version}; it came with {_settings()[name].metadata['since']}"
    return did_you_mean(name, _settings_of(profile), at_most=3)


_BOUNDED = (
    *(
        f"{kind}_{what}"
        for kind in ("consumer", "share", "streams")
        for what in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
    ),
    *("share_record_lock_duration_ms", "share_delivery_count_limit", "share_partition_max_record_locks"),
)
"""What a group may set between two of the broker's settings."""


def _bounding(name: str) -> tuple[str, str]:
    """The fields of `CoordinatorConfig` that a group's setting lies between."""
    kind, what = name.split("_", 1)
    return f"group_{kind}_min_{what}", f"group_{kind}_max_{what}"


def _check_together(config: CoordinatorConfig) -> None:
    """The rules over several settings (Kafka: GroupCoordinatorConfig's constructor)."""
    named = {entry.name: (name, getattr(config, entry.name)) for name, entry in _settings().items()}
    if config.group_consumer_migration_policy not in MIGRATION_POLICIES:
        raise UsageError(
            f"setting 'group.consumer.migration.policy' must be one of {', '.join(MIGRATION_POLICIES)}, "
            f"not {config.group_consumer_migration_policy!r}"
        )
    if not config.group_consumer_assignors:
        raise UsageError("setting 'group.consumer.assignors' must name at least one assignor")
    _check_order(*named["group_min_session_timeout_ms"], *named["group_max_session_timeout_ms"])
    for name in _BOUNDED:
        (lower, upper), value = _bounding(name), f"group_{name}"
        _check_order(*named[lower], *named[value])
        _check_order(*named[value], *named[upper])
    for kind in ("consumer", "share", "streams"):
        interval, session = named[f"group_{kind}_heartbeat_interval_ms"], named[f"group_{kind}_session_timeout_ms"]
        _check_order(interval[0], interval[1] + 1, *session)


def _check_order(lower_name: str, lower: int, upper_name: str, upper: int) -> None:
    if lower > upper:
        raise UsageError(f"setting {upper_name!r} ({upper}) must not be below {lower_name!r} ({lower})")


@frozen
class GroupConfig:
    """One field for each setting. Those of share partitions are checked here and kept for whoever asks."""

    consumer_session_timeout_ms: int = setting("consumer.session.timeout.ms", 45_000, 1, since="4.0")
    consumer_heartbeat_interval_ms: int = setting("consumer.heartbeat.interval.ms", 5_000, 1, since="4.0")
    consumer_assignment_interval_ms: int = setting("consumer.assignment.interval.ms", 1_000, 0, since="4.3")
    share_session_timeout_ms: int = setting("share.session.timeout.ms", 45_000, 1, since="4.0")
    share_heartbeat_interval_ms: int = setting("share.heartbeat.interval.ms", 5_000, 1, since="4.0")
    share_assignment_interval_ms: int = setting("share.assignment.interval.ms", 1_000, 0, since="4.3")
    share_record_lock_duration_ms: int = setting("share.record.lock.duration.ms", 30_000, 1_000, since="4.0")
    share_delivery_count_limit: int = setting("share.delivery.count.limit", 5, 2, since="4.3")
    share_partition_max_record_locks: int = setting("share.partition.max.record.locks", 2_000, 100, since="4.3")
    share_auto_offset_reset: str = setting("share.auto.offset.reset", "latest", since="4.0")
    share_isolation_level: str = setting("share.isolation.level", "read_uncommitted", since="4.1")
    share_renew_acknowledge_enable: bool = setting("share.renew.acknowledge.enable", default=True, since="4.3")
    streams_session_timeout_ms: int = setting("streams.session.timeout.ms", 45_000, 1, since="4.1")
    streams_heartbeat_interval_ms: int = setting("streams.heartbeat.interval.ms", 5_000, 1, since="4.1")
    streams_assignment_interval_ms: int = setting("streams.assignment.interval.ms", 1_000, 0, since="4.3")
    streams_num_standby_replicas: int = setting("streams.num.standby.replicas", 0, 0, since="4.1")
    streams_initial_rebalance_delay_ms: int = setting("streams.initial.rebalance.delay.ms", 3_000, 0, since="4.2")

    @classmethod
    def of_broker(cls, config: CoordinatorConfig) -> Self:
        """Return the settings of a group that sets none of its own."""
        return cls(**{name: getattr(config, f"group_{name}") for name in _from_broker()})

    @classmethod
    def _inherited(cls, config: CoordinatorConfig) -> Self:
        """What a group with settings of its own has for those that it does not set."""
        broker = cls.of_broker(config)
        if config.profile.passes_streams_settings_on:
            return broker
        return replace(broker, **{name: _default(name) for name in _NOT_PASSED_ON})

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], config: CoordinatorConfig) -> Self:
        """The broker's settings with these of the group over them.

        Raises `UsageError` where Kafka answers INVALID_CONFIG: an unknown name, a value of the wrong kind, outside the broker's
        bounds, or a session timeout that is not above the heartbeat interval.
        """
        values: dict[str, Any] = {}
        for name, text in properties.items():
            if name not in group_setting_names(config.profile):
                raise UsageError(f"Unknown group config name: {name}")
            values[_group_settings()[name].name] = _of_group(_group_settings()[name], text)
        group = replace(cls._inherited(config), **values)
        if any(name in properties for name in _WORDS):
            _check_words(properties)
        _check_bounds(group, config)
        return group


_NOT_PASSED_ON = (
    "streams_session_timeout_ms",
    "streams_heartbeat_interval_ms",
    "streams_num_standby_replicas",
    "streams_initial_rebalance_delay_ms",
)


def _of_group(entry: Any, text: str) -> SettingValue:
    """A group's own setting. Raises `UsageError` with Kafka's words (ConfigDef)."""
    try:
        return parse_setting(entry, text)
    except UsageError:
        at_least, digits = entry.metadata["at_least"], text.strip().removeprefix("-")
        why = (
            f"Value must be at least {at_least}" if digits.isdecimal() and int(digits) <= MAX_INT else "Not a number of type INT"
        )
        why = "Expected value to be either true or false" if isinstance(entry.default, bool) else why
        raise UsageError(f"Invalid value {text} for configuration {entry.metadata['name']}: {why}") from None


_WORDS = ("share.auto.offset.reset", "share.isolation.level")


def _check_words(properties: Mapping[str, str]) -> None:
    """Look at settings that are one of some words, whose case counts. Raises `UsageError` with Kafka's own words."""
    from kgctl.model.share import FROM_LATEST, READ_COMMITTED, READ_UNCOMMITTED, is_reset  # simulated groups are none of these

    reset = properties.get("share.auto.offset.reset", FROM_LATEST).strip()
    level = properties.get("share.isolation.level", READ_UNCOMMITTED).strip()
    if not is_reset(reset):
        raise UsageError(
            f"Invalid value {reset} for configuration share.auto.offset.reset: "
            f"Invalid value `{reset}` for configuration share.auto.offset.reset. "
            "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
    if level not in (levels := (READ_COMMITTED, READ_UNCOMMITTED)):
        raise UsageError(
            f"Invalid value {level} for configuration share.isolation.level: String must be one of: {', '.join(levels)}"
        )


def _check_bounds(group: GroupConfig, config: CoordinatorConfig) -> None:
    for name in _BOUNDED:
        lower, upper = (getattr(config, each) for each in _bounding(name))
        value, shown = getattr(group, name), name.replace("_", ".")
        kind, what = shown.split(".", 1)
        if value < lower:
            raise UsageError(f"{shown} must be greater than or equal to group.{kind}.min.{what}")
        if value > upper:
            raise UsageError(f"{shown} must be less than or equal to group.{kind}.max.{what}")
    if group.streams_num_standby_replicas > config.group_streams_max_standby_replicas:
        raise UsageError("streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas")
    for kind in ("consumer", "share", "streams"):
        if getattr(group, f"{kind}_session_timeout_ms") <= getattr(group, f"{kind}_heartbeat_interval_ms"):
            raise UsageError(f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms")


@cache
def _group_settings() -> dict[str, Any]:
    return {entry.metadata["name"]: entry for entry in fields(GroupConfig)}


def _default(name: str) -> Any:
    return next(entry.default for entry in fields(GroupConfig) if entry.name == name)


@cache
def group_setting_names(profile: Profile = LATEST) -> tuple[str, ...]:
    """The names of all settings that a group may have with a broker of this version."""
    return tuple(name for name, entry in _group_settings().items() if profile.is_since(entry.metadata["since"]))


@cache
def _from_broker() -> tuple[str, ...]:
    broker = {entry.name for entry in fields(CoordinatorConfig)}
    return tuple(entry.name for entry in fields(GroupConfig) if f"group_{entry.name}" in broker)


def replicas_of(group_id: str, config: CoordinatorConfig, brokers: int) -> tuple[int, ...]:
    """The brokers, numbered from 1, with a replica of the group's partition, the preferred leader first.

    Replicas are spread over the brokers one after the other; there are at most as many as brokers.
    """
    partition = partition_for(group_id, config.offsets_topic_num_partitions)
    count = min(config.offsets_topic_replication_factor, brokers)
    return tuple((partition + step) % brokers + 1 for step in range(count))
