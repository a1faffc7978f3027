"""Client families."""

from __future__ import annotations

import pytest

from kgctl.errors import UsageError
from kgctl.member.config import PROFILES, MemberConfig, get_profile, profile_names, refusal


def test_clients_are_those_of_the_manual() -> None:
    assert profile_names() == ("java", "librdkafka", "kafka-go", "franz-go", "kafka-python", "aiokafka")


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
