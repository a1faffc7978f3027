"""Client families."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kgctl.errors import UsageError
from kgctl.member.config import PROFILES, MemberConfig, get_profile, profile_names, refusal
from kgctl.model.requests import JoinGroup
from tests.support.member_harness import World


def test_clients_are_those_of_the_manual() -> None:
    assert profile_names() == ("java", "librdkafka", "kafka-go", "franz-go", "kafka-python", "aiokafka", "kafka-streams")


@pytest.mark.parametrize("name", PROFILES)
def test_defaults_of_every_client_are_accepted_by_it(name: str) -> None:
    config = MemberConfig.from_properties({}, name)

    assert config.profile == name
    assert refusal(config) is None


def test_defaults_differ_where_the_clients_do() -> None:
    timeouts = {name: (config.session_timeout_ms, config.effective_rebalance_timeout_ms) for name, config in PROFILES.items()}

    assert timeouts == {
        "java": (45_000, 300_000),
        "librdkafka": (45_000, 300_000),
        "kafka-go": (30_000, 30_000),
        "franz-go": (45_000, 60_000),
        "kafka-python": (45_000, 300_000),
        "aiokafka": (10_000, 10_000),
        "kafka-streams": (45_000, 300_000),
    }


def test_rebalance_timeout_of_aiokafka_follows_its_session_timeout() -> None:
    config = MemberConfig.from_properties({"session.timeout.ms": "20000"}, "aiokafka")

    assert config.effective_rebalance_timeout_ms == 20_000


def test_a_clients_own_name_of_a_setting_is_known() -> None:
    config = MemberConfig.from_properties({"topic.metadata.refresh.interval.ms": "60000"}, "librdkafka")

    assert config.metadata_max_age_ms == 60_000


def test_unknown_client_is_refused_with_a_near_one() -> None:
    with pytest.raises(UsageError, match=r"unknown client 'librdkafa'; did you mean librdkafka\? \(known: java, "):
        get_profile("librdkafa")


def test_kafka_go_has_settings_of_its_own() -> None:
    given = {
        "SessionTimeout": "12000",
        "JoinGroupBackoff": "1000",
        "WatchPartitionChanges": "true",
        "PartitionWatchInterval": "7000",
    }
    config = MemberConfig.from_properties(given, "kafka-go")

    assert (config.session_timeout_ms, config.join_group_backoff_ms) == (12_000, 1_000)
    assert (config.behaviour.watches_partitions, config.metadata_max_age_ms) == (True, 7_000)
    assert MemberConfig.from_properties({}, "kafka-go").behaviour.watches_partitions is False
    with pytest.raises(UsageError, match="unknown consumer setting 'JoinGroupBackoff'"):
        MemberConfig.from_properties({"JoinGroupBackoff": "1000"})


def test_kafka_go_waits_for_the_network_beyond_what_is_parked() -> None:
    """ConsumerGroupConfig.Timeout: 5 s; JoinGroup and SyncGroup may be parked by the coordinator for longer."""
    default = MemberConfig.from_properties({}, "kafka-go")
    assert (default.request_timeout_ms, default.join_timeout_ms, default.sync_timeout_ms) == (5_000, 35_000, 35_000)
    given = MemberConfig.from_properties({"Timeout": "2000", "SessionTimeout": "9000", "RebalanceTimeout": "20000"}, "kafka-go")
    assert (given.request_timeout_ms, given.join_timeout_ms, given.sync_timeout_ms) == (2_000, 22_000, 11_000)
    java = MemberConfig()
    assert (java.join_timeout_ms, java.sync_timeout_ms) == (305_000, 30_000)


def test_kafka_go_says_how_long_a_commit_is_kept() -> None:
    assert MemberConfig.from_properties({}, "kafka-go").commit_retention_ms is None
    assert MemberConfig.from_properties({"RetentionTime": "0"}, "kafka-go").commit_retention_ms == 0
    with pytest.raises(UsageError, match="setting 'RetentionTime' must be at least -1, not -2"):
        MemberConfig.from_properties({"RetentionTime": "-2"}, "kafka-go")
    with pytest.raises(UsageError, match="unknown consumer setting 'RetentionTime'"):
        MemberConfig.from_properties({"RetentionTime": "1"})


def test_kafka_go_that_is_refused_leaves_and_waits_for_its_backoff() -> None:
    """ConsumerGroup#run: measured with the real client, it is back after 5.3 s."""
    world = World({"orders": 4})
    for number in range(2):
        world.pod(f"m{number}", {"JoinGroupBackoff": "5000"}, profile="kafka-go", at_s=number * 0.02)
    world.run_until_stable()
    since_us = world.now_us
    world.unreachable.add("m1")
    world.run_until(since_us / 1e6 + 40)
    world.unreachable.clear()
    world.run_until(since_us / 1e6 + 50)
    world.run_until_stable()

    joins = [join for at, join in world.pods["m1"].requests if isinstance(join, JoinGroup) and at > since_us]
    assert {join.api_version for join in joins} == {1}
    times = [at for at in world.pods["m1"].times(JoinGroup) if at > since_us]
    assert all(later - before >= 5_000_000 for before, later in pairwise(times))
    assert world.pods["m1"].failure is None
