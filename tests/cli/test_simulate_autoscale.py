"""``autoscale:`` as a user meets it: mistakes, doubts, a run with its events and its picture, variants side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.harness import Cli

SCENARIO = """\
kgctl: 1
name: small
question: Does it settle?
topics: {clicks: 8}
group: {config: {partition.assignment.strategy: [cooperative-sticky]}}
members: {worker: {count: 2, boot: 5s, rate: 100/s}}
traffic: {clicks: {0s: 100/s, 1m: 600/s}}
autoscale: {members: worker, target: 500, min: 2, max: 8}
warmup: 1m
duration: 8m
variants:
  as-is: {}
  by-cpu: {autoscale: {metric: cpu, target: 75%}}
expect:
  - {always: replicas <= 8}
  - replicas(max) > 2
  - by-cpu.flaps == 0
"""
WHYS = {
    *("DesiredWithinRange", "WithinTolerance", "ScaleUpLimit", "ScaleUpStabilized", "ScaleDownLimit", "ScaleDownStabilized"),
    "TooManyReplicas",
}


@pytest.fixture
def scenario(cli: Cli) -> Path:
    path = cli.folder / "small.yaml"
    path.write_text(SCENARIO)
    return path


def test_it_runs_and_its_expectations_about_pods_hold(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate run {scenario} --runs 2 --check-determinism")
    assert (ran.code, ran.err) == (0, "")
    assert " PASS by-cpu.flaps == 0" in ran.out
    assert " PASS always: replicas <= 8" in ran.out


def test_the_event_log_tells_each_decision_and_why(cli: Cli, scenario: Path) -> None:
    cli(f"simulate run {scenario} --variant as-is --events {cli.folder}/events.jsonl")
    events = [json.loads(line) for line in (cli.folder / "events.jsonl").read_text().splitlines()]
    decisions = [event for event in events if event["kind"] == "autoscale"]
    assert {tuple(event) for event in decisions} == {tuple(decisions[0])}
    assert {event["why"] for event in decisions} <= WHYS
    changes = [(event["before"], event["replicas"]) for event in decisions if event["before"] != event["replicas"]]
    assert changes[0][0] == 2
    assert [after for _, after in changes[:-1]] == [before for before, _ in changes[1:]]


def test_the_picture_has_a_row_of_pods(cli: Cli, scenario: Path) -> None:
    out = cli(f"simulate run {scenario} --variant as-is --gantt").out
    (row,) = [line for line in out.splitlines() if line.startswith("pods  ")]
    assert "█" in row
    assert "pods of worker: 2 to 8, █ = 8" in out


def test_metrics_of_the_result_count_pods(cli: Cli, scenario: Path) -> None:
    variants = cli(f"simulate run {scenario} -o json").data["variants"]
    for name in ("replicas", "flaps", "thrash", "member_seconds"):
        assert variants["by-cpu"]["metrics"][name]["max"] is not None
    assert variants["by-cpu"]["metrics"]["replicas"]["max"] == 8


def test_a_setting_of_the_command_line_changes_it(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate run {scenario} --variant as-is --set autoscale.max=3 --check replicas(max)==3")
    assert ran.code == 0


def test_a_mistake_is_told_with_file_line_and_column(cli: Cli, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("members: worker, target", "members: worke, target"))
    ran = cli(f"simulate run {scenario}")
    assert ran.code == 2
    assert f"{scenario}:8:13: autoscale.members: there is no set of members 'worke'; did you mean 'worker'?" in ran.err


def test_check_says_what_will_never_settle(cli: Cli, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("target: 500", "target: 100"))
    ran = cli(f"simulate check {scenario} -o json")
    assert [(row["line"], row["rule"]) for row in ran.data] == [(8, "autoscale-target")]
    assert cli(f"simulate check {scenario} --strict").code == 2


def test_two_ways_to_scale_are_compared_seed_by_seed(cli: Cli, scenario: Path) -> None:
    ran = cli(f"simulate compare {scenario}:as-is {scenario}:by-cpu --runs 2")
    assert ran.code == 0
    assert "member" in ran.out
