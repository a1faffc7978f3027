"""The smallest scenario in which an expectation still fails."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.batch.shrink import REDUCTIONS, Shrunk, anchored, failing, prepared, shrink, sizes, verdicts_of
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
  kip848: {{group: {{config: {{group.protocol: consumer, session.timeout.ms: null, partition.assignment.strategy: null}}}}}}
expect:
  - lost == 0
  - {{check: max_gap < 30s, variants: [eager], why: the session}}
"""


def tree() -> Tree:
    return read_yaml(FILE, "many.yaml")


@pytest.mark.deep
def test_forty_events_come_down_to_the_one_that_matters() -> None:
    verdict = failing(tree(), load(tree()), [3])
    found = shrink(tree(), verdict, 3, most_runs=300)

    assert (found.before, found.is_minimal) == ((40, 11, 30), True)
    assert found.after[0] == 1
    assert found.after[1] <= 3
    assert "crash" in found.data["events"][0]
    assert "variants" not in found.data
    text = found.text("many.yaml")
    again = read_yaml(text, "small.yaml")
    assert text.startswith("# the smallest form of many.yaml in which this still fails: max_gap < 30s\n")
    assert failing(again, load(again), [3]).check.shown == "max_gap < 30s"


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
    found = shrink(tree, failing(tree, load(tree), [1]), 1, most_runs=300)

    assert found.cause == "rebalance joined"
    assert found.before[0] == 41
    assert {kind for each in found.data["events"] for kind in each} & {"crash", "stall", "slow"} == {"stall"}
    assert "# for the same cause: the longest gap is rebalance, in a rebalance set off by a member that joined" in found.text("x")


def test_the_runs_that_are_allowed_are_kept_to() -> None:
    verdict = failing(tree(), load(tree()), [3])
    found = shrink(tree(), verdict, 3, most_runs=4)

    assert (found.runs, found.is_minimal) == (4, False)
    assert sizes(found.data)[0] < 40


def test_what_goes_wrong_unasked_is_shrunk_by_asking_for_it() -> None:
    text = (
        "kgctl: 1\nname: x\ntopics: {t: 4}\nmembers: {app: {count: 2}}\n"
        "group: {config: {partition.assignment.strategy: [range]}}\n"
        "events: [{at: 0s, rollout: app, set: {partition.assignment.strategy: [cooperative-sticky]}}]\nexpect: [max_gap < 1m]\n"
    )
    silent = read_yaml(text, "x.yaml")
    with pytest.raises(
        UsageError, match=r"INCONSISTENT_GROUP_PROTOCOL.*kgctl simulate shrink x.yaml --check 'errors == 0' shrinks that"
    ):
        failing(silent, load(silent), [1])


def test_what_holds_cannot_be_shrunk() -> None:
    calm = prepared(tree(), ["members.app.count=2"], ["lost == 0"])
    assert sizes(calm.data)[1] == 5
    with pytest.raises(UsageError, match=r"^many.yaml: every expectation holds with seed 3; there is nothing to shrink"):
        failing(calm, load(calm), [3])


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
    return shrink(whole, failing(whole, load(whole), [1]), 1, **{"most_runs": 200, **how})


def test_faults_of_a_nemesis_become_events_that_can_be_left_out() -> None:
    found = shrunk("nemesis: {rate: 1 per 45s, of: [crash], until: 6m}\nexpect: [max_gap < 30s]\n", most_runs=25)
    assert found.before[0] > found.after[0] > 0
    assert "nemesis" not in found.data
    assert all(each.keys() <= {"crash", "for", "at"} for each in found.data["events"])


def test_an_expectation_fails_with_a_value_to_the_end_and_times_come_closer() -> None:
    found = shrunk("events: [{at: 5m, pause_process: app/1, for: 70s}]\nduration: 10m\nexpect: [max_gap < 30s]\n")
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


HEAD = "kgctl: 1\nname: x\nwarmup: 60s\ntopics: {orders: 4}\nmembers: {app: {count: 3}}\n"


def test_without_a_seed_the_first_of_the_file_that_fails_is_taken() -> None:
    text = HEAD + "events: [{at: 0s, crash: app/0}]\nexpect: [max_gap < 44900ms]\n"
    tree = read_yaml(text, "file.yaml")
    fails = [seed for seed in range(1, 9) if any(not each.passed for each in verdicts_of(load(tree), seed))]

    assert fails[0] > 1
    assert failing(tree, load(tree), range(1, 9)).seed == fails[0]


def test_a_group_goes_with_its_members_and_variants_with_groups_come_down_to_one() -> None:
    whole = read_yaml(
        """\
kgctl: 1
name: x
warmup: 60s
topics: {orders: 4, refunds: 2}
groups: {payments: {}, audit: {id: audit.v2}}
members:
  pay: {group: payments, count: 2}
  aud: {group: audit, count: 2, subscribe: [orders, refunds]}
events: [{at: 5s, restart: pay/0}, {at: 10s, crash: aud/1}]
variants: {old: {}, new: {cluster: {network: 2ms}}}
expect: [payments.max_gap < 60s, audit.max_gap < 20s]
""",
        "x.yaml",
    )
    found = shrink(whole, failing(whole, load(whole), [1]), 1, most_runs=200)

    assert list(found.data["groups"]) == ["audit"]
    assert list(found.data["members"]) == ["aud"]
    assert "variants" not in found.data
    assert found.data["expect"] == ["audit.max_gap < 20s"]
    assert (found.after[0], found.after[2]) <= (1, 2)


def test_events_that_waited_for_one_that_is_left_out_wait_for_what_that_one_waited_for() -> None:
    events: list[dict[str, str]] = [
        {"at": "5s", "name": "a", "restart": "app"},
        {"after": "a", "at": "10s", "name": "b", "restart": "app"},
        {"after": "b", "at": "20s", "crash": "app"},
    ]

    assert anchored(events[1:], events[:1]) == [{"at": "15s", "name": "b", "restart": "app"}, events[2]]
    assert anchored(events[2:], events[:2]) == [{"at": "35s", "crash": "app"}]
    assert anchored([events[0], events[2]], events[1:2]) == [events[0], {"after": "a", "at": "30s", "crash": "app"}]


def test_an_event_keeps_its_end() -> None:
    data = {**read_yaml(HEAD, "x").data, "events": [{"at": "0s", "network": "app/0", "partition": True, "for": "40s"}]}
    left = [smaller for kind in REDUCTIONS for smaller in kind(data)]

    ends = ["for" in event for each in left for event in each["events"]]
    assert ends
    assert all(ends)


def test_an_expectation_that_is_not_decided_is_not_shrunk() -> None:
    text = (
        HEAD + "traffic: {orders: 1000/s}\nevents: [{at: 0s, name: d, stall: app, for: 90s}]\n"
        "expect: [{eventually: lag > 900000, after: d, within: 30m}]\n"
    )
    said = (
        r"^file.yaml: eventually: lag > 900000 is not decided: only 1m\S* of 30m were left when the run ended: say a `duration`$"
    )
    with pytest.raises(UsageError, match=said):
        failing(read_yaml(text, "file.yaml"), load(read_yaml(text, "file.yaml")), [1])


def test_a_crash_is_left_alone_though_its_pod_had_been_restarted_before() -> None:
    found = shrunk("events: [{rolling_restart: app}, {at: 90s, crash: app/1, for: 5s}]\nexpect: [max_gap < 30s]\n")
    assert found.after == (1, 1, 1)
    assert "crash" in found.data["events"][0]


MIGRATION = """\
kgctl: 1
name: migration
warmup: 60s
topics: {orders: 4, refunds: 2}
group: {config: {partition.assignment.strategy: [range]}}
members: {app: {count: 3, subscribe: [orders, refunds]}}
events:
  - {at: 1s, slow: app/1, factor: 2, for: 5s}
  - {at: 10s, rollout: app, set: {partition.assignment.strategy: [cooperative-sticky]}}
variants:
  one-step: {}
  two-steps:
    events:
      - {at: 1s, slow: app/1, factor: 2, for: 5s}
      - {at: 10s, rollout: app, set: {partition.assignment.strategy: [cooperative-sticky, range]}}
      - {at: 5m, rollout: app, set: {partition.assignment.strategy: [cooperative-sticky]}}
allow: [failed, stuck, missing]
expect: [unavailable < 150]
"""


def test_what_holds_in_another_variant_holds_there_to_the_end() -> None:
    """Any restart of a pod alone breaks a bound that is low enough; what breaks this one is that the steps are one."""
    text = MIGRATION.replace("unavailable < 150", "errors == 0")
    whole = read_yaml(text, "x.yaml")
    found = shrink(whole, failing(whole, load(whole), [1]), 1, most_runs=200)

    kept = {each.variant: each.passed for each in verdicts_of(load(Tree("small.yaml", found.data)), 1)}
    assert (kept, found.contrast) == ({"one-step": False, "two-steps": True}, "two-steps")
    assert [len(found.data["events"]), len(found.data["variants"]["two-steps"]["events"])] == [1, 2]
    assert "# and holds in the variant two-steps\n" in found.text("x.yaml")
