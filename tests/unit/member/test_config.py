"""Settings of consumers: Kafka's names, the defaults of each client, and what is refused."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.member.config import MAX_INT, MemberConfig, settings


def test_without_properties_the_java_defaults_hold() -> None:
    config = MemberConfig.from_properties({})

    assert (config.session_timeout_ms, config.heartbeat_interval_ms, config.max_poll_interval_ms) == (45_000, 3_000, 300_000)
    assert config.partition_assignment_strategy == ("range", "cooperative-sticky")
    assert (config.enable_auto_commit, config.auto_commit_interval_ms, config.auto_offset_reset) == (True, 5_000, "latest")
    assert (config.group_protocol, config.metadata_max_age_ms, config.profile) == ("classic", 300_000, "java")
    assert config.effective_rebalance_timeout_ms == 300_000


def test_each_kind_of_value_is_read() -> None:
    config = MemberConfig.from_properties(
        {
            "session.timeout.ms": " 10000 ",
            "enable.auto.commit": "FALSE",
            "group.protocol": "Consumer",
            "group.remote.assignor": "uniform",
            "rebalance.timeout.ms": "60000",
            "partition.assignment.strategy": "[org.apache.kafka.clients.consumer.RoundRobinAssignor, sticky]",
        }
    )

    assert config.session_timeout_ms == 10_000
    assert config.enable_auto_commit is False
    assert config.group_protocol == "consumer"
    assert config.group_remote_assignor == "uniform"
    assert config.effective_rebalance_timeout_ms == 60_000
    assert config.partition_assignment_strategy == ("roundrobin", "sticky")


def test_names_with_underscores_are_kafkas() -> None:
    assert MemberConfig.from_properties({"max_poll_interval_ms": "1000"}).max_poll_interval_ms == 1_000


def test_settings_of_other_parts_are_passed_over() -> None:
    given = {"bootstrap.servers": "k:9092", "fetch.min.bytes": "1", "value.deserializer": "x", "sasl.mechanism": "PLAIN"}

    assert MemberConfig.from_properties(given) == MemberConfig.from_properties({})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"sesion.timeout.ms": "1"}, "unknown consumer setting 'sesion.timeout.ms'; did you mean session.timeout.ms"),
        ({"session.timeout.ms": "soon"}, "'session.timeout.ms' must be a whole number of milliseconds, not 'soon'"),
        ({"session.timeout.ms": "0"}, "'session.timeout.ms' must be at least 1, not 0"),
        ({"session.timeout.ms": str(MAX_INT + 1)}, f"'session.timeout.ms' must be at most {MAX_INT}"),
        ({"enable.auto.commit": "yes"}, "'enable.auto.commit' must be true or false, not 'yes'"),
        ({"auto.offset.reset": "newest"}, "'auto.offset.reset' must be one of earliest, latest, none, not 'newest'"),
        ({"partition.assignment.strategy": "range,range"}, "names an assignor twice"),
        ({"max.poll.records": "many"}, "'max.poll.records' must be a whole number, not 'many'"),
        ({"zzzzzz": "1"}, "unknown consumer setting 'zzzzzz'"),
    ],
)
def test_bad_setting_is_named(properties: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        MemberConfig.from_properties(properties)


def test_every_setting_has_a_name_of_its_own() -> None:
    kafkas = [name for name, entry in settings().items() if not entry.metadata["client"]]
    assert (len(kafkas), len(settings())) == (23, 34)
    assert all("." in name and name == name.lower() for name in kafkas)
