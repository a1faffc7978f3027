"""The smallest scenario in which an expectation still fails."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.batch.shrink import REDUCTIONS, Shrunk, failing, prepared, shrink, sizes
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import Tree, read_yaml

NOISE = "".join(f"  - {{at: {10 + number}s, slow: app/{number % 4}, factor: 2, for: 5s}}\n" for number in range(38))
FILE = f"""\
kgctl: 1
name: many things
topics: {{orders: 24, audit: {{partitions: 6, replicas: 2}}}}
group: {{config: {{session.timeout.ms: 45s, partition.assignment.strategy: [range]}}}}
members:
  app: {{count: 8, boot: 5s, callbacks: {{revoked: 100ms}}}}
  side: {{count: 3, subscribe: [audit]}}
warmup: 60s
duration: 4m
events:
{NOISE}  - {{at: 30s, crash: app/2, for: 90s, name: the one}}
  - {{at: 200s, rolling_restart: side}}
variants:
  eager: {{}}
  kip848: {{group: {{config: {{group.protocol: consumer}}}}}}
expect:
  - lost == 0
  - {{check: max_gap < 30s, variants: [eager], why: the session}}
"""


def tree() -> Tree:
    return read_yaml(FILE, "many.yaml")


@pytest.mark.deep
def test_forty_events_come_down_to_the_one_that_matters() -> None:
    verdict = failing(tree(), load(tree()), 3)
    found = shrink(tree(), verdict, 3, most_runs=300)

    assert (found.before, found.is_minimal) == ((40, 11, 30), True)
    assert found.after[0] == 1
    assert found.after[1] <= 3
    assert "crash" in found.data["events"][0]
    assert "variants" not in found.data
    text = found.text("many.yaml")
    again = read_yaml(text, "small.yaml")
    assert text.startswith("# the smallest form of many.yaml in which this still fails: max_gap < 30s\n")
    assert failing(again, load(again), 3).check.shown == "max_gap < 30s"


@pytest.mark.deep
def test_what_is_left_fails_for_the_same_cause() -> None:
    """The crash alone breaks the expectation, too; what broke it first is the stuck member that the others wait for."""
    noise = "".join(f"  - {{at: {60 + number}s, slow: app/{number % 3}, factor: 2, for: 2s}}\n" for number in range(38))
    text = f"""\
kgctl: 1
name: stuck
topics: {{orders: 12}}
group: {{config: {{session.timeout.ms: 10s, partition.assignment.strategy: [range]}}}}
members: {{app: {{count: 4, boot: 2s}}}}
warmup: 30s
duration: 3m
events:
  - {{at: 5s, stall: app/1, for: 60s}}
  - {{at: 10s, scale: app, by: 1}}
  - {{at: 100s, crash: app/2, for: 40s}}
{noise}expect: [max_gap < 5s]
"""
    tree = read_yaml(text, "stuck.yaml")
    found = shrink(tree, failing(tree, load(tree), 1), 1, most_runs=300)

    assert found.cause == "rebalance joined"
    assert found.before[0] == 41
    assert {kind for each in found.data["events"] for kind in each} & {"crash", "stall", "slow"} == {"stall"}
    assert "# for the same cause: the longest gap is rebalance, in a rebalance set off by a member that joined" in found.text("x")


def test_the_runs_that_are_allowed_are_kept_to() -> None:
    verdict = failing(tree(), load(tree()), 3)
    found = shrink(tree(), verdict, 3, most_runs=4)

    assert (found.runs, found.is_minimal) == (4, False)
    assert sizes(found.data)[0] < 40


def test_what_holds_cannot_be_shrunk() -> None:
    calm = prepared(tree(), ["members.app.count=2"], ["lost == 0"])
    assert sizes(calm.data)[1] == 5
    with pytest.raises(UsageError, match=r"^many.yaml: every expectation holds with seed 3; there is nothing to shrink"):
        failing(calm, load(calm), 3)


def test_what_a_deploy_breaks_is_not_shrunk_to_the_start_of_its_members() -> None:
    data = {
        "kgctl": 1,
        "name": "deploy",
        "warmup": "60s",
        "topics": {"orders": 4},
        "members": {"app": {"count": 3}},
        "events": [{"at": "0s", "rolling_restart": "app"}],
        "expect": ["max_gap < 1s"],
    }
    left = [each for kind in REDUCTIONS for each in kind(data)]
    assert {each["warmup"] for each in left} == {"60s"}


def shrunk(text: str, **how: Any) -> Shrunk:
    whole = read_yaml(f"kgctl: 1\nname: x\nwarmup: 60s\ntopics: {{orders: 4}}\nmembers: {{app: {{count: 3}}}}\n{text}", "x.yaml")
    return shrink(whole, failing(whole, load(whole), 1), 1, **{"most_runs": 200, **how})


def test_faults_of_a_nemesis_become_events_that_can_be_left_out() -> None:
    found = shrunk("nemesis: {rate: 1 per 45s, of: [crash], until: 6m}\nexpect: [max_gap < 30s]\n", most_runs=25)
    assert found.before[0] > found.after[0] > 0
    assert "nemesis" not in found.data
    assert all(each.keys() <= {"crash", "for", "at"} for each in found.data["events"])


def test_an_expectation_fails_with_a_value_to_the_end_and_times_come_closer() -> None:
    found = shrunk("events: [{at: 5m, pause_process: app/1, for: 70s}]\nduration: 10m\nexpect: [takeover_max < 30s]\n")
    assert found.verdict.observed is not None
    assert found.data["events"] == [{"pause_process": "app/0", "for": "1m"}]


def test_what_was_found_before_an_interruption_is_kept() -> None:
    left = iter(range(5))

    def interrupt() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    events = ", ".join(f"{{at: {number}m, crash: app/0}}" for number in range(1, 9))
    found = shrunk(f"events: [{events}]\nexpect: [max_gap < 30s]\n", on_run=interrupt)
    assert (found.was_interrupted, found.is_minimal) == (True, False)
    assert 0 < found.after[0] < 8
