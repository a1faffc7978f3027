"""Profiles of broker versions: what names them, which settings each has, and that each switch is some version's."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.config import BROKER_VERSION, CoordinatorConfig, GroupConfig, group_setting_names, setting_names
from kgctl.coordinator.profile import LATEST, PROFILES, VERSIONS, profile_of, switches
from kgctl.errors import UsageError


def of(version: str) -> CoordinatorConfig:
    return CoordinatorConfig.from_properties({BROKER_VERSION: version})


def test_a_release_names_its_version() -> None:
    assert profile_of("4.2.0") is profile_of("4.2") is PROFILES["4.2"]
    assert of("4.2.0").profile is PROFILES["4.2"]
    assert CoordinatorConfig().profile is LATEST


@pytest.mark.parametrize("version", ["4.9", "", "4", "4.2x", "two"])
def test_an_unknown_version_is_refused_with_those_that_there_are(version: str) -> None:
    with pytest.raises(UsageError, match=r"unknown broker version .*; there are 3\.9, 4\.0, 4\.1, 4\.2, 4\.3"):
        profile_of(version)


@pytest.mark.parametrize("switch", switches(), ids=lambda switch: switch.name)
def test_each_switch_is_on_from_one_version_on_and_off_before(switch: Any) -> None:
    on = [version for version, profile in PROFILES.items() if getattr(profile, switch.name)]

    assert on == list(PROFILES)[-len(on) :]
    assert on[0] == switch.metadata["since"] != VERSIONS[0]


def test_the_switches_stand_from_the_latest_to_the_oldest() -> None:
    since = [VERSIONS.index(switch.metadata["since"]) for switch in switches()]
    assert since == sorted(since, reverse=True)


def test_what_a_version_does_not_have_cannot_be_set() -> None:
    name = "group.consumer.assignment.interval.ms"
    with pytest.raises(UsageError) as refused:
        CoordinatorConfig.from_properties({BROKER_VERSION: "4.2", name: "5"})

    assert refused.value.message == f"unknown setting {name!r} in Kafka 4.2; it came with 4.3"
    assert name in setting_names()
    assert name not in setting_names(PROFILES["4.2"])
    with pytest.raises(UsageError, match=r"Unknown group config name: consumer\.assignment\.interval\.ms"):
        GroupConfig.from_properties({"consumer.assignment.interval.ms": "5"}, of("4.2"))
    assert group_setting_names(PROFILES["3.9"]) == ()


def test_defaults_are_those_of_the_version() -> None:
    """Read from the jars of 3.9.1 to 4.3.1."""
    names = ("group_coordinator_append_linger_ms", "group_coordinator_threads", "group_consumer_migration_policy")
    found = {version: tuple(getattr(of(version), name) for name in names) for version in PROFILES}

    assert found == {
        "3.9": (10, 1, "disabled"),
        "4.0": (5, 4, "bidirectional"),
        "4.1": (5, 4, "bidirectional"),
        "4.2": (-1, 4, "bidirectional"),
        "4.3": (-1, 4, "bidirectional"),
    }
    protocols = {version: of(version).group_coordinator_rebalance_protocols for version in PROFILES}
    assert protocols["3.9"] == ("classic",)
    assert protocols["4.0"] == ("classic", "consumer")
    assert protocols["4.1"] == ("classic", "consumer", "streams")
