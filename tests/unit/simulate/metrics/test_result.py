"""What a run did not have is not known of it."""

from __future__ import annotations

import pytest

from kgctl.simulate.batch.plan import BatchOptions, run_all, tasks_of
from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import read_yaml

FILE = """\
kgctl: 1
name: x
warmup: 60s
duration: 2m
topics: {orders: 4, audit: 2}
traffic: {orders: 100/s, audit: 10/s}
members: {app: {count: 2, subscribe: [orders]}, canary: {count: 0, subscribe: [orders]}}
"""


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run(load(read_yaml(FILE, "f")).variants[0].scenario, 1)


@pytest.mark.parametrize(
    "asked",
    [
        ("unavailable", "after 2m"),
        ("unavailable", "before 0s"),
        ("unavailable", "after 1m", "before 1m"),
        ("members", "at 121s"),
        ("lag", "at 3m"),
        ("state", "at 10h"),
        ("max_gap", "app/2"),
        ("kicked", "app/2..9"),
        ("max_gap", "canary"),
        ("max_gap", "audit"),
        ("lag_age", "audit"),
        ("unavailable", "of-another-variant"),
        ("max_gap", "of-another-variant"),
        ("lost", "of-another-variant"),
        ("errors", "of-another-variant"),
        ("callbacks", "of-another-variant"),
        ("replicas", "of-another-variant"),
        ("drain_time", "of-another-variant"),
    ],
    ids=", ".join,
)
def test_times_pods_and_topics_that_a_run_did_not_have_have_no_value(result: RunResult, asked: tuple[str, ...]) -> None:
    assert result.metric(asked[0], asked[1:]) is None


def test_a_topic_that_an_event_creates_is_meant_before_it_is_there() -> None:
    text = f"{FILE}events: [{{at: 1m, create_topic: fresh, partitions: 3, rate: 10/s}}, {{at: 80s, restart: app/1}}]\n"
    loaded = load(read_yaml(f"{text}expect: [{{eventually: lag(fresh) > 5}}]\n", "f"))
    values = run_all(tasks_of(loaded, [1], BatchOptions(), None), 1, lambda _: None)
    assert 60_000_000 < (values[0].watched[0].at_us or 0) < 81_000_000


@pytest.mark.parametrize("metric", ["max_gap", "unavailable", "moves", "duplicates", "lag", "lag_age", "spread", "availability"])
def test_of_a_group_that_reads_nothing_nothing_is_well(metric: str) -> None:
    text = FILE.replace("subscribe: [orders]", "subscribe: ^order$")
    found = run(load(read_yaml(text, "f")).variants[0].scenario, 1)
    assert (found.metric(metric), found.metric("rebalances")) == (None, 0)


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        (("unavailable", "before 10m"), 0),
        (("members", "at 2m"), 2),
        (("members", "canary"), 0),
        (("replicas", "app/7"), 0),
        (("max_gap", "not app/9"), 0),
        (("lag", "audit"), 1826.20853),
    ],
    ids=str,
)
def test_what_a_run_had_is_known(result: RunResult, asked: tuple[str, ...], value: float) -> None:
    assert result.metric(asked[0], asked[1:]) == value


def test_lag_before_a_time_is_that_of_the_time(result: RunResult) -> None:
    assert result.metric("lag", ("audit", "before 1m")) == result.metric("lag", ("audit", "at 1m")) == 1226.20853
