"""Brokers that die and coordinators that move, from the command line."""

from __future__ import annotations

import json

import pytest

from tests.cli.harness import Cli

FILE = """\
kgctl: 1
name: failover
topics: {orders: 12}
members: {app: {count: 3}}
traffic: {orders: 300/s}
warmup: 60s
duration: 3m
events: [{at: 10s, broker_down: coordinator, for: 30s, detect: 8s, load: 2s}]
expect:
  - rebalances(cause coordinator_failover) == 0
  - unavailable(cause coordinator) == 0
  - errors(NETWORK_EXCEPTION) > 0
  - {eventually: state == Dead, after: 10s, within: 0s}
  - {eventually: state == Stable, after: 10s, within: 11s}
"""


@pytest.fixture(autouse=True)
def _scenario(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.folder / "failover.yaml").write_text(FILE)
    monkeypatch.chdir(cli.folder)


def test_a_failover_is_in_the_result_and_in_the_event_log(cli: Cli) -> None:
    ran = cli("simulate run failover.yaml --runs 2 --check-determinism --events events.jsonl")
    assert (ran.code, ran.out.count(" PASS ")) == (0, 5)
    log = [json.loads(line) for line in (cli.folder / "events.jsonl").read_text().splitlines()]
    states = [(line["at_us"], line["state"]) for line in log if line["kind"] == "group" and line["at_us"] > 0]
    assert states[:2] == [(10_000_000, "Dead"), (20_000_000, "Stable")]
    assert {line["error"] for line in log if line["kind"] == "reply"} >= {"NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS"}


def test_a_move_that_moves_nothing_has_no_effect(cli: Cli) -> None:
    events = "events.0={at: 10s, coordinator_move: 3}"  # of the group "group" among three brokers: the leader
    ran = cli.run(["simulate", "run", "failover.yaml", "--set", events, "--check", "rebalances == 0", "--events", "events.jsonl"])
    first = "FAIL event coordinator_move 3 has no effect at 10.0s"
    log = [json.loads(line) for line in (cli.folder / "events.jsonl").read_text().splitlines()]
    assert (ran.code, ran.out.partition("\n")[0]) == (6, first)
    assert [line["what"] for line in log if line["kind"] == "event"] == ["begins", "has no effect", "ends"]


def test_the_schema_has_brokers(cli: Cli) -> None:
    kinds = {each["title"]: each for each in cli("simulate schema -o json").data["properties"]["events"]["items"]["anyOf"]}
    for name, fields in {"broker_down": {"for", "detect", "load"}, "coordinator_move": {"for", "load"}}.items():
        assert kinds[name]["properties"][name]["type"] == ["integer", "string"]
        assert fields <= set(kinds[name]["properties"])


def test_what_is_no_broker_is_told_with_its_place(cli: Cli) -> None:
    (cli.folder / "failover.yaml").write_text(FILE.replace("coordinator, for", "coordinater, for"))
    ran = cli("simulate check failover.yaml -o json")
    message = "names a broker (1 to 3), or coordinator, not 'coordinater'; did you mean 'coordinator'?"
    assert (ran.code, ran.err) == (2, f"kgctl: failover.yaml:8:20: events[0].broker_down: {message}\n")


def test_a_lone_broker_is_doubtful(cli: Cli) -> None:
    ran = cli.run(["simulate", "check", "failover.yaml", "--set", "cluster.brokers=1", "-o", "json"])
    assert [row["rule"] for row in ran.data] == ["no-other-broker"]
