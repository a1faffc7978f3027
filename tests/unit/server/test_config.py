"""Broker configs by Kafka's names."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.server.config import BrokerConfig, split_config


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
