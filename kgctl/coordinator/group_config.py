"""The settings that one group may have of its own (resource type GROUP), under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self

from kgctl.coordinator.config import CoordinatorConfig, parse_setting, setting
from kgctl.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """One field for each setting. Only the ``consumer`` ones are used here; the others are checked and kept for whoever asks."""

    consumer_session_timeout_ms: int = setting("consumer.session.timeout.ms", 45_000, 1)
    consumer_heartbeat_interval_ms: int = setting("consumer.heartbeat.interval.ms", 5_000, 1)
    consumer_assignment_interval_ms: int = setting("consumer.assignment.interval.ms", 1_000, 0)
    share_session_timeout_ms: int = setting("share.session.timeout.ms", 45_000, 1)
    share_heartbeat_interval_ms: int = setting("share.heartbeat.interval.ms", 5_000, 1)
    share_assignment_interval_ms: int = setting("share.assignment.interval.ms", 1_000, 0)
    share_record_lock_duration_ms: int = setting("share.record.lock.duration.ms", 30_000, 1_000)
    share_delivery_count_limit: int = setting("share.delivery.count.limit", 5, 2)
    share_partition_max_record_locks: int = setting("share.partition.max.record.locks", 2_000, 100)
    share_auto_offset_reset: str = setting("share.auto.offset.reset", "latest")
    share_isolation_level: str = setting("share.isolation.level", "read_uncommitted")
    share_renew_acknowledge_enable: bool = setting("share.renew.acknowledge.enable", default=True)
    streams_session_timeout_ms: int = setting("streams.session.timeout.ms", 45_000, 1)
    streams_heartbeat_interval_ms: int = setting("streams.heartbeat.interval.ms", 5_000, 1)
    streams_assignment_interval_ms: int = setting("streams.assignment.interval.ms", 1_000, 0)
    streams_num_standby_replicas: int = setting("streams.num.standby.replicas", 0, 0)
    streams_initial_rebalance_delay_ms: int = setting("streams.initial.rebalance.delay.ms", 3_000, 0)

    @classmethod
    def of_broker(cls, config: CoordinatorConfig) -> Self:
        """What a group has that sets nothing itself."""
        return cls(**{name: getattr(config, f"group_{name}") for name in _from_broker()})

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], config: CoordinatorConfig) -> Self:
        """The broker's settings with these of the group over them.

        Raises `UsageError` where Kafka answers INVALID_CONFIG: an unknown name, a value of the wrong kind, outside the broker's
        bounds, or a session timeout that is not above the heartbeat interval.
        """
        values: dict[str, Any] = {}
        for name, text in properties.items():
            if name not in _settings():
                raise UsageError(f"unknown group setting {name!r}")
            values[_settings()[name].name] = parse_setting(_settings()[name], text)
        group = replace(cls.of_broker(config), **values)
        _check_bounds(group, config)
        return group


_BOUNDED = tuple(
    f"{kind}_{what}"
    for kind in ("consumer", "share", "streams")
    for what in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
)


def _bounds(name: str, config: CoordinatorConfig) -> tuple[int, int]:
    kind, what = name.split("_", 1)
    return getattr(config, f"group_{kind}_min_{what}"), getattr(config, f"group_{kind}_max_{what}")


def _check_bounds(group: GroupConfig, config: CoordinatorConfig) -> None:
    for name in _BOUNDED:
        value, (lower, upper) = getattr(group, name), _bounds(name, config)
        if not lower <= value <= upper:
            raise UsageError(f"group setting {name.replace('_', '.')!r} must be from {lower} to {upper}, not {value}")
    if group.streams_num_standby_replicas > config.group_streams_max_standby_replicas:
        raise UsageError(
            f"group setting 'streams.num.standby.replicas' must be at most {config.group_streams_max_standby_replicas}"
        )
    for kind in ("consumer", "share", "streams"):
        if getattr(group, f"{kind}_session_timeout_ms") <= getattr(group, f"{kind}_heartbeat_interval_ms"):
            raise UsageError(f"group setting '{kind}.session.timeout.ms' must be above '{kind}.heartbeat.interval.ms'")


@cache
def _settings() -> dict[str, Any]:
    return {entry.metadata["name"]: entry for entry in fields(GroupConfig)}


@cache
def _from_broker() -> tuple[str, ...]:
    broker = {entry.name for entry in fields(CoordinatorConfig)}
    return tuple(entry.name for entry in fields(GroupConfig) if f"group_{entry.name}" in broker)
