"""The values that Kafka's settings have in a scenario, for expressions that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.member.config import MemberConfig
from kgctl.simulate.scenario.file.settings import read_broker_settings
from kgctl.simulate.scenario.model import Scenario


def setting_values(scenario: Scenario) -> Mapping[str, float | str]:
    """By Kafka's names, times in seconds. Consumer settings are those of the first set of members; defaults included."""
    first = scenario.members[0]
    return {**_of(read_broker_settings(scenario.cluster.config)), **_of(MemberConfig.from_properties(first.config, first.client))}


def _of(config: CoordinatorConfig | MemberConfig) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if not entry.metadata or value is None:
            continue
        found[entry.metadata["name"]] = _plain(entry.metadata["name"], value)
    return found


def _plain(name: str, value: object) -> float | str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value / 1_000 if name.endswith(".ms") else value * 60 if name.endswith(".minutes") else value
    return ",".join(value) if isinstance(value, tuple) else str(value)
