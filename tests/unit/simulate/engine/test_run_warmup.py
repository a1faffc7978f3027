"""A warm-up until the group is stable."""

from __future__ import annotations

import pytest

from kgctl.simulate.engine.run import warmed_up
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import Scenario
from kgctl.yaml_files import read_yaml

HEAD = "kgctl: 1\nname: x\ntopics: {orders: 8}\n"
APP = "members: {app: {count: 4, boot: 40s}}\n"
RESTART = "events: [{at: 0s, restart: app/1}]\n"
S = 1_000_000


def scenario_of(text: str) -> Scenario:
    return load(read_yaml(HEAD + text, "f.yaml")).variants[0].scenario


@pytest.mark.parametrize("said", ["", "warmup: until stable\n"], ids=["default", "said"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_events_meet_a_group_that_runs(said: str, protocol: str) -> None:
    result = run(scenario_of(f"{APP}{RESTART}{said}group: {{config: {{group.protocol: {protocol}}}}}\n"), 1)
    assert result.metric("unavailable", ("cause boot",)) == 0
    assert 100 * S < result.recording.start_us < 125 * S


def test_the_cold_start_is_measured_where_it_is_asked_for() -> None:
    result = run(scenario_of(f"{APP}{RESTART}warmup: 0s\n"), 1)
    assert result.recording.start_us == 0
    assert result.metric("unavailable", ("cause boot",)) == pytest.approx(320, abs=1)


def test_a_group_that_never_settles_is_waited_for_ten_minutes() -> None:
    text = "members: {app: {count: 4, start: never}}\n"
    assert warmed_up(scenario_of(text), 1).warmup_us == 600 * S


def test_all_groups_are_waited_for() -> None:
    text = "members: {a: {count: 1, group: one}, b: {count: 1, group: two, boot: 3m}}\ngroups: {one: {}, two: {}}\n"
    found = warmed_up(scenario_of(text), 1)
    assert found.warmup_us > 240 * S
    assert {each.warmup_us for each in found.together} == {found.warmup_us}


def test_the_seed_decides_how_long_it_takes() -> None:
    given = scenario_of(f"members: {{app: {{count: 4, boot: 10s..60s}}}}\n{RESTART}")
    assert len({warmed_up(given, seed).warmup_us for seed in (1, 2, 3)}) == 3
    assert run(given, 2).digest == run(given, 2).digest
