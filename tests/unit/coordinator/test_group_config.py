"""Settings of one group over those of the broker."""

from __future__ import annotations

import pytest

from kgctl.coordinator.config import CoordinatorConfig, GroupConfig
from kgctl.errors import UsageError

BROKER = CoordinatorConfig(group_consumer_heartbeat_interval_ms=6_000)


def test_a_group_without_settings_has_the_brokers() -> None:
    assert GroupConfig.of_broker(BROKER) == GroupConfig(consumer_heartbeat_interval_ms=6_000)


def test_a_groups_settings_stand_over_the_brokers() -> None:
    config = GroupConfig.from_properties(
        {
            "consumer.session.timeout.ms": "50000",
            "share.renew.acknowledge.enable": "false",
            "share.auto.offset.reset": "earliest",
        },
        BROKER,
    )

    assert config == GroupConfig(
        consumer_session_timeout_ms=50_000,
        consumer_heartbeat_interval_ms=6_000,
        share_renew_acknowledge_enable=False,
        share_auto_offset_reset="earliest",
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("consumer.session", "1", "Unknown group config name: consumer.session"),
        ("consumer.session.timeout.ms", "44999", "must be greater than or equal to group.consumer.min.session.timeout.ms"),
        ("consumer.assignment.interval.ms", "15001", "must be less than or equal to group.consumer.max.assignment.interval.ms"),
        (
            "consumer.heartbeat.interval.ms",
            "x",
            "Invalid value x for configuration consumer.heartbeat.interval.ms: Not a number of",
        ),
        (
            "share.partition.max.record.locks",
            "99",
            "Invalid value 99 for configuration share.partition.max.record.locks: Value must",
        ),
        ("share.record.lock.duration.ms", "99999999999", "Not a number of type INT"),
        ("share.renew.acknowledge.enable", "perhaps", "Expected value to be either true or false"),
        ("streams.num.standby.replicas", "3", "must be less than or equal to group.streams.max.standby.replicas"),
        ("share.record.lock.duration.ms", "14999", "must be greater than or equal to group.share.min.record.lock.duration.ms"),
        ("share.delivery.count.limit", "11", "must be less than or equal to group.share.max.delivery.count.limit"),
        ("share.auto.offset.reset", "none", "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."),
        ("share.isolation.level", "READ_COMMITTED", "String must be one of: read_committed, read_uncommitted"),
    ],
)
def test_wrong_group_setting_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        GroupConfig.from_properties({name: value}, BROKER)

    assert message in caught.value.message


def test_session_timeout_must_be_above_the_heartbeat_interval() -> None:
    broker = CoordinatorConfig(group_consumer_min_session_timeout_ms=1_000, group_consumer_max_heartbeat_interval_ms=20_000)

    with pytest.raises(UsageError, match=r"must be greater than consumer\.heartbeat\.interval\.ms"):
        GroupConfig.from_properties({"consumer.session.timeout.ms": "5000"}, broker)
