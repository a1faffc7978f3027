"""Expectations held against several seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kgctl.simulate.batch.judge import Judge, Judgement, RunValues, Watched, watchers_for
from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.recording.trace import Happened
from kgctl.simulate.scenario.checks import Check, CheckReader
from kgctl.simulate.scenario.expressions import Names
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.vocabulary import EventStage
from kgctl.yaml_files import Tree, read_yaml

SEEDS = range(1, 21)
NAMES = Names(("max_gap", "moves", "state"), ("session.timeout.ms",), ("a", "b"))


def judged(entry: Any, a: dict[int, Any], b: dict[int, Any] | None = None) -> list[Judgement]:
    """The verdicts on one entry of ``expect:``; ``a`` and ``b`` have max_gap by seed."""
    runs = {
        name: {
            seed: RunValues(variant=name, seed=seed, digest="", metrics={}, named={"max_gap": value, "moves": seed})
            for seed, value in gaps.items()
        }
        for name, gaps in (("a", a), ("b", b or a))
    }
    return Judge(runs, {"a": {"session.timeout.ms": 45.0}, "b": {"session.timeout.ms": 10.0}}, list(a)).verdicts([read(entry)])


def read(entry: Any) -> Check:
    problems: list[Any] = []
    (check,) = CheckReader(Tree("f", {"expect": [entry]}), NAMES, problems).read()
    assert problems == []
    return check


def shown(verdicts: list[Judgement]) -> list[tuple[Any, ...]]:
    return [(each.variant, each.passed, each.observed, each.seed) for each in verdicts]


RISING = {seed: float(seed) for seed in SEEDS}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("a.max_gap < 21s", ("a", True, 20.0, 20)),
        ("a.max_gap < 20s", ("a", False, 20.0, 20)),
        ("a.max_gap > 0", ("a", True, 1.0, 1)),
        ("a.max_gap >= 2s", ("a", False, 1.0, 1)),
        ({"check": "a.max_gap <= 19s", "at": "p95"}, ("a", True, 19.0, 19)),
        ({"check": "a.max_gap < 19s", "at": "p95"}, ("a", False, 19.0, 19)),
        ({"check": "a.max_gap <= 10s", "at": "median"}, ("a", True, 10.0, 10)),
        ({"check": "a.max_gap < 2s", "at": "best"}, ("a", True, 1.0, 1)),
        ({"check": "a.max_gap == 10.5s", "at": "mean"}, ("a", True, 10.5, 1)),
        ({"check": "a.max_gap < 10s", "when": "moves < 10", "variants": ["a"]}, ("a", True, 9.0, 9)),
        ({"check": "a.max_gap == 15s", "at": "mean", "when": "moves > 9", "variants": ["a"]}, ("a", True, 15.0, 10)),
        ({"check": "a.max_gap < 1s", "at": "mean", "when": "moves > 99", "variants": ["a"]}, ("a", True, None, 1)),
        ({"check": "a.max_gap < 1s", "when": "moves > 99", "variants": ["a"]}, ("a", True, None, 1)),
        ("a.max_gap < 20s and a.moves > 0", ("a", False, False, 20)),
    ],
)
def test_the_seed_that_decides(entry: Any, expected: tuple[Any, ...]) -> None:
    assert shown(judged(entry, RISING)) == [expected]


def test_two_variants_are_compared_seed_by_seed() -> None:
    late = {seed: seed + 0.5 for seed in SEEDS}
    assert shown(judged("a.max_gap < b.max_gap", RISING, late)) == [("a", True, 20.0, 20)]
    assert [each.passed for each in judged("b.max_gap < a.max_gap", RISING, late)] == [False]


def test_a_check_that_names_no_variant_is_made_for_each_with_its_own_settings() -> None:
    assert shown(judged("max_gap <= session.timeout.ms", RISING)) == [("a", True, 20.0, 20), ("b", False, 20.0, 20)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("a.max_gap > b.max_gap", "against 1,047.9s"),
        ("b.max_gap * 2 > a.max_gap", "against 2,000s"),
        ("1s < b.max_gap / 2", "against 524"),
        ("a.moves < b.max_gap * 2", "against 2,096"),
        ("a.max_gap > b.session.timeout.ms", "against 10s"),
        ("b.session.timeout.ms < a.max_gap", "against 2,000s"),
        ({"check": "a.max_gap > b.max_gap", "at": "mean"}, "mean; against 1,047.9s"),
        ("a.max_gap > 1s", ""),
    ],
)
def test_the_other_side_is_told_in_the_unit_of_the_metric(entry: Any, expected: str) -> None:
    (verdict,) = judged(entry, {1: 2000.0}, {1: 1047.8639})
    assert verdict.note == expected


@pytest.mark.parametrize("at", ["worst", "median", "mean"])
def test_an_expectation_of_which_no_seed_has_what_it_asks_about_is_not_asked(at: str) -> None:
    (verdict,) = judged({"check": "a.max_gap < 1s", "at": at, "when": "moves > 99", "variants": ["a"]}, RISING)
    assert not verdict.is_asked


def test_a_value_that_is_not_there_fails() -> None:
    (verdict,) = judged("a.max_gap < 5s", {1: 3.0, 2: None})
    assert (verdict.passed, verdict.observed, verdict.seed, verdict.note) == (False, None, 2, "there is no such value")


def test_never_is_beyond_any_bound() -> None:
    (verdict,) = judged("a.max_gap < 5s", {1: 3.0, 2: float("inf")})
    assert (verdict.passed, verdict.observed) == (False, float("inf"))


def test_a_watched_check_says_when_it_broke() -> None:
    check = read({"always": "a.max_gap < 5s", "why": "so"})
    run = RunValues(variant="a", seed=1, digest="", metrics={}, watched={0: Watched(passed=False, observed=7.0, at_us=2_500_000)})
    (verdict,) = Judge({"a": {1: run}}, {"a": {}}, [1]).verdicts([check])
    assert (verdict.passed, verdict.observed, verdict.note) == (False, 7.0, "at 2.5s; so")


def test_a_check_of_variants_that_were_not_run_is_not_asked() -> None:
    run = RunValues(variant="a", seed=1, digest="", metrics={}, named={"max_gap": 1.0})
    assert Judge({"a": {1: run}}, {"a": {}}, [1]).verdicts([read("a.max_gap < b.max_gap")]) == []


S = 1_000_000


class Now:
    """A run in which ``lag`` has one value, and had others before: (second, value)."""

    def __init__(self, lag: float, before: Sequence[tuple[int, float]] = ()) -> None:
        self.lag = lag
        self.before = before

    def metric(self, name: str, filters: tuple[str, ...]) -> float:
        return self.lag

    def at(self, name: str, filters: tuple[str, ...], at_us: int) -> float:
        return next((lag for at_s, lag in reversed(self.before) if at_s * S <= at_us), 0.0)

    def bends(self, from_us: int, to_us: int) -> list[int]:
        return []


def watched(entry: dict[str, Any], steps: list[Any], end_s: int = 100) -> tuple[bool, Any, int | None]:
    """``steps``: (second, lag), or an event that ends."""
    problems: list[Any] = []
    tree = Tree("f", {"expect": [entry]})
    checks = CheckReader(tree, Names(("lag",), ()), problems, ("deploy",)).read()
    assert problems == []
    watcher = watchers_for(checks, "default", {})[0]
    lag = 0.0
    before: list[tuple[int, float]] = []
    for at_s, what in steps:
        if isinstance(what, str):
            watcher.on_trace(Happened(at_s * S, what, EventStage.ENDS, "app", what))
        else:
            lag = what
            watcher.on_step(at_s * S, Now(lag, before))
            before.append((at_s, lag))
    found = watcher.result(end_s * S, Now(lag, before))
    return found.passed, found.observed, None if found.at_us is None else found.at_us // S


@pytest.mark.parametrize(
    ("entry", "steps", "expected"),
    [
        ({"always": "lag < 5"}, [(1, 2), (9, 4)], (True, 4, None)),
        ({"always": "lag < 5"}, [(-3, 9), (1, 2), (7, 6), (9, 4)], (False, 6, 7)),
        ({"eventually": "lag < 5"}, [(1, 9), (50, 2)], (True, 2, 50)),
        ({"eventually": "lag < 5", "within": "20s"}, [(1, 9), (50, 2)], (False, 2, None)),
        ({"eventually": "lag < 5", "after": "10s", "within": "20s"}, [(1, 2), (20, 9)], (True, 2, 10)),
        ({"eventually": "lag < 5", "after": "10s", "within": "20s"}, [(1, 2), (5, 9), (25, 1)], (True, 1, 25)),
        (
            {"eventually": "lag < 5", "after": "deploy", "within": "20s"},
            [(1, 2), (30, "deploy"), (30, 9), (51, 2)],
            (False, 2, None),
        ),
        (
            {"eventually": "lag < 5", "after": "last", "within": "20s"},
            [(1, "x"), (1, 2), (30, "y"), (30, 9), (50, 2)],
            (True, 2, 50),
        ),
        ({"eventually": "lag < 5", "after": "deploy"}, [(1, 2)], (False, 2, None)),
        ({"steady": "lag", "within": "5%", "last": "50s"}, [(0, 9), (40, 100), (70, 104)], (True, 0.0234, None)),
        ({"steady": "lag", "within": "1%", "last": "50s"}, [(0, 9), (40, 100), (70, 104)], (False, 0.0234, None)),
        ({"steady": "lag"}, [(0, 0)], (True, 0, None)),
        ({"steady": "lag", "last": "101s"}, [(0, 7)], (False, None, None)),
        ({"steady": "lag", "last": "50s"}, [(51, 7)], (False, None, 100)),
        ({"steady": "lag"}, [], (False, None, 100)),
    ],
)
def test_watcher_decides(entry: dict[str, Any], steps: list[Any], expected: tuple[Any, ...]) -> None:
    passed, observed, at_s = watched(entry, steps)
    assert (passed, observed if observed is None else round(observed, 3), at_s) == (
        *(expected[0], expected[1] if expected[1] is None else round(expected[1], 3)),
        expected[2],
    )


def test_in_no_time_nothing_is_steady() -> None:
    assert watched({"steady": "lag"}, [(0, 7)], end_s=0) == (False, None, None)


FILE = """\
kgctl: 1
name: short
topics: {t: 2}
members: {app: {count: 1, boot: 1s}}
warmup: 30s
duration: 60s
events: [{at: 10s, restart: app}]
"""


@pytest.mark.parametrize(
    ("entry", "passes"),
    [
        ({"eventually": "max_gap(after 10m) < 1h"}, False),
        ({"eventually": "max_gap(after 5s) < 1h"}, True),
        ({"eventually": "kicked(app/7) == 0"}, False),
        ({"eventually": "kicked(app/0) == 0"}, True),
        ({"steady": "max_gap(after 10m)", "last": "10s"}, False),
        ({"steady": "max_gap(after 20s)", "last": "10s"}, True),
        ({"steady": "kicked(app/7)", "last": "10s"}, False),
        ({"always": "max_gap(after 10m) < 1h"}, False),
        ({"always": "max_gap(after 20s) < 1h"}, True),
    ],
)
def test_what_a_run_did_not_have_holds_for_nothing_that_watches_it(entry: dict[str, Any], passes: bool) -> None:
    loaded = load(read_yaml(f"{FILE}expect: [{json.dumps(entry)}]\n", "f"))
    values = run_all(tasks_of(loaded, [1], BatchOptions(), None), 1, lambda _: None)
    assert values[0].watched[0].passed is passes


@pytest.mark.parametrize(
    ("after", "end_s", "said"),
    [
        ("last", 100, "no event had ended that it is after (last)"),
        ("10s", 60, "only 50s of 5m were left when the run ended: say a `duration`"),
        ("10s", 310, ""),
    ],
)
def test_what_a_run_ended_before_is_not_decided(after: str, end_s: int, said: str) -> None:
    check = read({"eventually": "max_gap < 5s", "after": after, "within": "5m"})
    found = watchers_for([check], "a", {})[0].result(end_s * S, Now(9.0))
    run = RunValues(variant="a", seed=1, digest="", metrics={}, watched={0: found})
    (verdict,) = Judge({"a": {1: run}}, {"a": {}}, [1]).verdicts([check])

    assert (verdict.passed, verdict.observed, verdict.note, verdict.is_decided) == (False, 9.0, said, not said)


QUIET = """\
kgctl: 1
name: quiet
topics: {orders: 4}
members: {app: {count: 2}}
traffic: {orders: 100/s}
warmup: 60s
duration: 10m
events: [{at: 5m, scale: app, by: +2, when: lag > 5000}]
"""
"""Two members commit every 5 s, so that the lag is never above 510, and for minutes nothing else happens."""
SLOW = QUIET.replace("count: 2", "count: 2, rate: 40/s").replace("lag > 5000", "lag > 500000")
"""Of 100 records a second they read 80: the lag grows by 1,200 a minute."""


@pytest.mark.parametrize(
    ("text", "entry", "passes"),
    [
        (QUIET, "replicas == 2", True),
        (QUIET, {"always": "lag < 510"}, True),
        (QUIET, {"always": "lag < 495"}, False),
        (QUIET, {"always": "lag >= 0"}, True),
        (QUIET, {"always": "lag > 90"}, False),
        (QUIET, {"always": "lag_age < 5200ms"}, True),
        (QUIET, {"always": "lag_age < 4s"}, False),
        (QUIET, {"always": "latency_p99 < 1s"}, True),
        (QUIET, {"always": "latency_p99(after 20m) < 1s"}, False),
        (QUIET, {"eventually": "lag < 100", "after": "60s", "within": "6s"}, True),
        (QUIET, {"steady": "lag", "within": "5%"}, False),
        (QUIET, {"steady": "backlog", "within": "5%"}, True),
        (SLOW, {"steady": "lag", "within": "25%"}, False),
        (SLOW, {"steady": "backlog", "within": "25%"}, False),
        (SLOW, {"always": "backlog < 12000"}, False),
        (SLOW, {"always": "lag < 14100"}, True),
        (SLOW, {"eventually": "backlog > 5000", "within": "4m"}, True),
        (SLOW, {"eventually": "backlog > 5000", "within": "2m"}, False),
    ],
    ids=str,
)
def test_records_are_watched_while_nothing_else_happens(text: str, entry: Any, passes: bool) -> None:
    with_it, without = (load(read_yaml(f"{text}expect: {json.dumps(found)}\n", "f")) for found in ([entry], []))
    (values,) = run_all(tasks_of(with_it, [1], BatchOptions(), None), 1, lambda _: None)
    (same,) = run_all(tasks_of(without, [1], BatchOptions(), None), 1, lambda _: None)

    (verdict,) = Judge({"default": {1: values}}, {"default": {}}, [1]).verdicts(with_it.checks)
    assert (verdict.passed, values.digest, values.events) == (passes, same.digest, same.events)


@pytest.mark.parametrize("commit", ["after-batch", "before-batch", "every 5s"])
def test_a_condition_on_the_lag_knows_what_was_committed_in_quiet_times(commit: str) -> None:
    loaded = load(read_yaml(QUIET.replace("count: 2", f"count: 2, commit: {commit}"), "f"))
    (values,) = run_all(tasks_of(loaded, [1], BatchOptions(), None), 1, lambda _: None)
    assert values.metrics["replicas"] == 2
