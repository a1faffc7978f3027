"""Events of the surroundings."""

from __future__ import annotations

from kgctl.coordinator.config import GroupConfig
from kgctl.model.error_codes import ErrorCode
from tests.support.coordinator_harness import CoordinatorHarness, image_of


def test_a_new_image_replaces_the_old_one() -> None:
    harness = CoordinatorHarness(topics={"t": 1})

    harness.change_topics({"t": 2, "u": 1})

    assert harness.shard.image == image_of({"t": 2, "u": 1}, version=2)
    assert harness.log == []


def test_a_group_s_settings_count_for_it_alone() -> None:
    harness = CoordinatorHarness()

    assert harness.update_config({"consumer.session.timeout.ms": "50000"}) is ErrorCode.NONE
    assert harness.shard.group_config("g") == GroupConfig(consumer_session_timeout_ms=50_000)
    assert harness.shard.group_config("other") == GroupConfig()


def test_one_wrong_setting_refuses_them_all() -> None:
    harness = CoordinatorHarness()

    error = harness.update_config({"consumer.session.timeout.ms": "50000", "consumer.colour": "red"})

    assert error is ErrorCode.INVALID_CONFIG
    assert harness.shard.group_config("g") == GroupConfig()
