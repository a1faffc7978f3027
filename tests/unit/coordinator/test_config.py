"""The broker's settings: Kafka's names, defaults and bounds."""

from __future__ import annotations

import pytest

from kgctl.coordinator.config import CoordinatorConfig, replicas_of, setting_names
from kgctl.errors import UsageError
from kgctl.model.values import partition_for

DEFAULTS = {
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1800000,
    "group.initial.rebalance.delay.ms": 3000,
    "group.max.size": 2147483647,
    "group.consumer.session.timeout.ms": 45000,
    "group.consumer.heartbeat.interval.ms": 5000,
    "group.consumer.assignment.interval.ms": 1000,
    "group.consumer.max.size": 2147483647,
    "group.consumer.assignors": ("uniform", "range"),
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.regex.refresh.interval.ms": 600000,
    "group.share.max.size": 200,
    "group.share.record.lock.duration.ms": 30000,
    "group.share.delivery.count.limit": 5,
    "group.share.partition.max.record.locks": 2000,
    "group.share.max.share.sessions": 2000,
    "group.streams.num.standby.replicas": 0,
    "offset.metadata.max.bytes": 4096,
    "offsets.retention.minutes": 10080,
    "offsets.retention.check.interval.ms": 600000,
    "offsets.commit.timeout.ms": 5000,
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 3,
    "kgctl.rebalance.stuck.timeout.ms": 0,
}


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_default_is_kafkas(name: str, default: object) -> None:
    assert getattr(CoordinatorConfig(), name.replace(".", "_")) == default


def test_every_setting_is_named_as_its_field() -> None:
    assert all(hasattr(CoordinatorConfig(), name.replace(".", "_")) for name in setting_names())
    assert len(set(setting_names())) == len(setting_names())


def test_properties_replace_defaults() -> None:
    config = CoordinatorConfig.from_properties(
        {
            "group.max.size": " 4 ",
            "group.consumer.assignors": "range, uniform",
            "group.consumer.migration.policy": "Upgrade",
            "offsets.retention.minutes": "2",
        }
    )

    assert config == CoordinatorConfig(
        group_max_size=4,
        group_consumer_assignors=("range", "uniform"),
        group_consumer_migration_policy="upgrade",
        offsets_retention_minutes=2,
    )
    assert config.offsets_retention_ms == 120_000


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [("disabled", False, False), ("upgrade", True, False), ("downgrade", False, True), ("bidirectional", True, True)],
)
def test_policy_says_what_it_allows(policy: str, upgrade: bool, downgrade: bool) -> None:
    config = CoordinatorConfig.from_properties({"group.consumer.migration.policy": policy})

    assert (config.allows_upgrade, config.allows_downgrade) == (upgrade, downgrade)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("group.max.sizes", "4", "unknown setting 'group.max.sizes'; did you mean group.max.size"),
        ("zzz", "4", "unknown setting 'zzz'"),
        ("group.max.size", "many", "setting 'group.max.size' must be a whole number, not 'many'"),
        ("group.max.size", "0", "setting 'group.max.size' must be at least 1, not 0"),
        ("offsets.topic.compression.codec", "5", "setting 'offsets.topic.compression.codec' must be at most 4, not 5"),
        ("group.consumer.migration.policy", "maybe", "must be one of disabled, upgrade, downgrade, bidirectional, not 'maybe'"),
        ("group.consumer.assignors", " ", "setting 'group.consumer.assignors' must name at least one assignor"),
        ("group.min.session.timeout.ms", "1800001", "'group.max.session.timeout.ms' (1800000) must not be below"),
        ("group.consumer.session.timeout.ms", "44999", "'group.consumer.session.timeout.ms' (44999) must not be below"),
        ("group.share.heartbeat.interval.ms", "15001", "'group.share.max.heartbeat.interval.ms' (15000) must not be below"),
        ("group.share.record.lock.duration.ms", "14999", "must not be below 'group.share.min.record.lock.duration.ms' (15000)"),
        ("group.share.delivery.count.limit", "11", "setting 'group.share.delivery.count.limit' must be at most 10, not 11"),
    ],
)
def test_wrong_setting_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        CoordinatorConfig.from_properties({name: value})

    assert message in caught.value.message


def test_session_timeout_must_be_above_the_heartbeat_interval() -> None:
    properties = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": "5000",
    }

    with pytest.raises(UsageError, match=r"must not be below 'group\.consumer\.heartbeat\.interval\.ms'"):
        CoordinatorConfig.from_properties(properties)


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("g", 3),
        ("my-group", 12),
        ("payments", 13),
        ("console-consumer-12345", 6),
        ("", 0),
        ("polygenelubricants", 0),
        ("gruppe-\u00e4", 48),
    ],
)
def test_partition_is_kafkas(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


def test_the_only_partition_has_every_group() -> None:
    assert partition_for("payments", 1) == 0


def test_replicas_are_the_brokers_after_the_partitions_own() -> None:
    config = CoordinatorConfig.from_properties({"offsets.topic.num.partitions": "50", "offsets.topic.replication.factor": "3"})
    first = partition_for("g", 50) % 5
    assert replicas_of("g", config, 5) == tuple((first + step) % 5 + 1 for step in range(3))
    assert replicas_of("g", config, 1) == (1,)
