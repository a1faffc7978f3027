"""Each rule of the linter finds its own kind of doubt, and nothing else."""

from __future__ import annotations

import pytest

from kgctl.simulate.lint.rules import RULES, lint
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.text.yaml_tree import read_yaml

GOOD = """\
kgctl: 1
name: x
topics: {orders: 12}
members: {app: {count: 3}}
warmup: 60s
"""

DOUBTS = {
    "session-below-boot": "members: {app: {instance_id: $name, boot: 40s..50s}}",
    "heartbeat-above-third": "group: {config: {heartbeat.interval.ms: 20s}}",
    "session-out-of-bounds": "group: {config: {session.timeout.ms: 5s, heartbeat.interval.ms: 1s}}",
    "poll-beyond-limit": "members: {app: {poll: 6m}}",
    "no-warmup": "{warmup: 1s, events: [{at: 0s, restart: app}]}",
    "event-after-end": "{duration: 5m, events: [{at: 5m, restart: app}]}",
    "ids-not-unique": "members: {app: {instance_id: one}}",
    "mixed-assignors": "members: {b: {config: {partition.assignment.strategy: [sticky]}}}",
    "mixed-protocols": "group: {config: {partition.assignment.strategy: [range, cooperative-sticky]}}",
    "client-refuses": "members: {app: {client: kafka-go, config: {group.protocol: consumer}}}",
    "setting-without-effect": "members: {app: {config: {group.protocol: consumer, session.timeout.ms: 30s}}}",
    "idle-members": "members: {app: {count: 13}}",
    "selects-nobody": "events: [{at: 5s, crash: app/3}]",
    "no-such-rack": "{cluster: {racks: [a, b]}, members: {app: {rack: c}}}",
    "overload": "{members: {app: {rate: 10/s}}, traffic: {orders: 31/s}}",
    "no-traffic": "members: {app: {rate: 10/s}}",
}


def rules_of(patch: str) -> set[str]:
    tree = read_yaml(f"{GOOD}variants:\n  v: {patch if patch.startswith('{') else '{' + patch + '}'}\n", "f")
    return {problem.rule for problem in lint(load(tree))}


def test_every_rule_has_its_case() -> None:
    assert set(DOUBTS) == set(RULES)


@pytest.mark.parametrize("rule", DOUBTS)
def test_rule_finds_its_doubt(rule: str) -> None:
    assert rules_of(DOUBTS[rule]) == {rule}


def test_a_plain_file_is_beyond_doubt() -> None:
    assert lint(load(read_yaml(GOOD, "f"))) == []


def test_a_doubt_about_some_variants_names_them() -> None:
    tree = read_yaml(GOOD + "variants: {a: {}, b: {members: {app: {count: 13}}}}\n", "f")
    (problem,) = lint(load(tree))
    assert str(problem) == "f:6:23: members: 13 members for 12 partitions: 1 of them are idle (variant b)"
