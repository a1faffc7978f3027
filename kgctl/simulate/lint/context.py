"""What a rule looks at: one variant, with the settings of its members as their clients read them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.member.config import MemberConfig
from kgctl.simulate.scenario.checks import Check, FilterNames, parse_filters
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.expressions import Metric, Node, ScenarioSetting
from kgctl.simulate.scenario.fields import changed_settings, read_broker_settings
from kgctl.simulate.scenario.load import EMPTY_REPORT, ReportSpec, Variant
from kgctl.simulate.scenario.metric import MostOfRun, metric_kinds
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.yaml_files import Path

Doubts = Iterator[tuple[Path, str]]
"""Where in a variant something is doubtful, and why."""
Bounds: TypeAlias = "tuple[float, float]"
"""The least and the most."""


def _config_of(members: MemberSet, settings: Mapping[str, str | None] | None = None) -> MemberConfig:
    return MemberConfig.from_properties(changed_settings(members.config, settings or {}), members.client)


@dataclass(frozen=True)
class Context:
    """One variant, and what the file's sweep shows. ``is_lone``: there is no other variant. ``checks``: all of the file's."""

    variant: Variant
    report: ReportSpec = EMPTY_REPORT
    is_lone: bool = False
    checks: tuple[Check, ...] = ()

    @property
    def scenario(self) -> Scenario:
        return self.variant.scenario

    @cached_property
    def broker(self) -> CoordinatorConfig:
        return read_broker_settings(self.scenario.cluster.config)

    @cached_property
    def configs(self) -> dict[str, MemberConfig]:
        return {each.name: _config_of(each) for each in self.scenario.members}

    def config_from(self, event: Event) -> MemberConfig | None:
        """What clients have with the settings that an event brings to one set; None: it brings none, or to no one set."""
        meant = event.target if event.selector is None else event.selector.member_set
        members = next((each for each in self.scenario.members if each.name == meant), None)
        return _config_of(members, event.settings) if members is not None and event.settings else None

    @cached_property
    def limits(self) -> MostOfRun:
        """What no run of it can exceed."""
        scenario = self.scenario
        grows = any(event.creates_topic or event.adds_partitions for event in scenario.events)
        scales = any(event.is_deploy or event.renumbers or event.starts_pods for event in scenario.events)
        is_scaled = scales or scenario.autoscale is not None or scenario.nemesis is not None
        length_us = math.inf if scenario.duration_us is None else scenario.duration_us
        return MostOfRun(length_us, math.inf if grows else sum(each.partitions for each in scenario.topics), is_scaled)

    def bounds(self, node: Node) -> Bounds | None:
        """Between which numbers what an expression names lies in every run."""
        variant, known = self.variant, FilterNames.of((self.scenario,))
        if isinstance(node, ScenarioSetting):
            value = variant.settings.get(node.name) if node.variant in (None, variant.name) else None
            return (value, value) if isinstance(value, int | float) else None
        if not isinstance(node, Metric):
            return None
        is_own = node.variant in (None, variant.name)
        filters = parse_filters(node.filters, topics=known.topics, member_sets=known.member_sets)
        return metric_kinds()[node.name].bounds(self.limits if is_own else MostOfRun(), filters)

    def sets(self) -> Iterator[tuple[MemberSet, MemberConfig]]:
        for each in self.scenario.members:
            yield each, self.configs[each.name]

    def path_of_setting(self, members: str, name: str) -> Path:
        """Where a setting of these members stands: with the set, with the group, or nowhere (then: the set)."""
        for path in (("members", members, "config", name), ("group", "config", name)):
            if self.sets_at(path):
                return path
        return ("members", members)

    def sets_at(self, path: Path) -> bool:
        node = self.variant.tree.data
        for step in path:
            if not isinstance(node, dict) or step not in node:
                return False
            node = node[step]
        return True

    def started_at_once(self) -> int:
        """How many members there are without further events."""
        return sum(each.count for each in self.scenario.members if each.start is not None)
