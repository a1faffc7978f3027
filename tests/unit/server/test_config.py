"""Broker configs by Kafka's names."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.server.config import BrokerConfig, effective_names, share_config, split_config
from kgctl.share.state.config import ShareCoordinatorConfig, share_settings


def test_configs_are_split_between_server_and_coordinator() -> None:
    given = {"num.partitions": "4", "auto.create.topics.enable": "TRUE", "group.max.size": "9"}

    assert split_config(given) == (BrokerConfig(auto_create_topics_enable=True, num_partitions=4), {"group.max.size": "9"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partition", "4", "unknown setting 'num.partition'; did you mean num.partitions?"),
        ("zzz", "4", "unknown setting 'zzz'$"),
        ("num.partitions", "many", "must be a whole number, not 'many'"),
        ("num.partitions", "0", "must be at least 1, not 0"),
        ("auto.create.topics.enable", "yes", "must be true or false, not 'yes'"),
    ],
)
def test_a_bad_config_is_a_usage_error(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        split_config({name: value})


def test_brokers_are_counted_from_a_node_id() -> None:
    zero, _ = split_config({"node.id": "0"})
    older, _ = split_config({"node.id": "3", "broker.id": "7"})

    assert (zero.first_node_id, older.first_node_id, BrokerConfig().first_node_id) == (0, 7, 1)
    with pytest.raises(UsageError, match=r"'node\.id' must be at least 0, not -1"):
        split_config({"node.id": "-1"})


def test_the_share_coordinator_has_settings_of_its_own() -> None:
    given = {"num.partitions": "4", "share.coordinator.state.topic.num.partitions": "7"}

    assert split_config(given)[1] == {}
    assert share_config(given) == ShareCoordinatorConfig(state_topic_num_partitions=7)
    assert {name for name in share_settings() if name in effective_names()} == {
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
    }
