"""Runs spread over processes."""

from __future__ import annotations

import os

import pytest

from kgctl.errors import KgctlError
from kgctl.simulate.batch import plan
from kgctl.simulate.batch.outcome import outcome_of
from kgctl.simulate.batch.plan import BatchOptions, in_order_of_interest, run_all, tasks_of, with_worst, worst_seed
from kgctl.simulate.report.html import html_page, page_data
from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.report.text import junit_xml, markdown_text, summary_text
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.yaml_files import read_yaml


def test_a_process_that_is_killed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "run_task", os._exit)
    with pytest.raises(KgctlError, match="was killed") as raised:
        plan.run_all([1, 2], 2, lambda _: None)  # type: ignore[list-item]
    assert raised.value.code == "WORKER_KILLED"


FILE = """\
kgctl: 1
name: tiny
topics: {orders: 6}
group: {config: {session.timeout.ms: 10s}}
members: {app: {count: 3}}
warmup: 60s
duration: 40s
events: [{at: 10s, crash: app/1}]
variants: {calm: {events: []}, hurt: {}}
expect: [max_gap < 5s]
"""


def outcome(loaded: LoadedFile, seeds: list[int]) -> Outcome:
    return outcome_of(loaded, seeds, run_all(tasks_of(loaded, seeds, BatchOptions(), None), 1, lambda _: None))


def test_the_seed_that_fails_is_drawn_first_and_its_story_told() -> None:
    loaded = load(read_yaml(FILE, "tiny.yaml"))
    found = outcome(loaded, [1, 2])
    failing = next(each for each in found.expectations if not each.passed)
    assert worst_seed(found, "hurt") == (failing.seed, "fails: max_gap < 5s")
    assert worst_seed(found, "calm") == (1, "most unavailable of 2 seeds")
    assert in_order_of_interest(found) == ["hurt", "calm"]

    closer = with_worst(found, loaded, pictures=True, stories=True)
    assert list(page_data(closer)["variants"]) == ["hurt", "calm"]
    picture = closer.variants["hurt"].picture
    assert picture is not None
    assert picture.caption == f"seed {failing.seed} (fails: max_gap < 5s)"
    first, fails, second, *rest = closer.variants["hurt"].why
    assert fails.startswith("fails: max_gap < 5s: max_gap is ")
    assert first.startswith(f"hurt, seed {failing.seed} (fails: max_gap < 5s): longest gap ")
    assert "had no consumer for" in second
    assert any("app-1 sent no heartbeat; the coordinator waits for session.timeout.ms=10000 of app-1" in line for line in rest)
    assert not any("the same seed without one thing" in line for line in rest)
    assert closer.variants["calm"].why == ()
    assert f"why: {first}" in summary_text(closer)
    assert "<summary>Why? hurt, seed" in markdown_text(closer)


def test_with_ablations_it_is_told_what_each_cause_was_worth() -> None:
    loaded = load(read_yaml(FILE, "tiny.yaml"), variants=["hurt"])
    why = with_worst(outcome(loaded, [1]), loaded, pictures=False, stories=True, ablations=True).variants["hurt"].why
    assert any(line.strip().startswith("event 1, crash app/1") for line in why)


def test_unavailable_time_is_told_by_cause_and_junit_has_times() -> None:
    found = outcome(load(read_yaml(FILE, "tiny.yaml")), [1, 2])
    names = [name for name in found.variants["hurt"].metrics if name.startswith("unavailable(")]
    assert "unavailable(cause detection)" in names
    assert "  detection" in summary_text(found)
    assert not [name for name in found.variants["calm"].metrics if name.startswith("unavailable(")]
    assert 'time="0"' not in junit_xml(found)


def test_where_no_partition_waits_no_page_asks_why() -> None:
    loaded = load(read_yaml(FILE, "tiny.yaml"), variants=["calm"])
    calm = with_worst(outcome(loaded, [1]), loaded, pictures=True, stories=True)
    assert calm.variants["calm"].why == ("calm, seed 1: longest gap 0s, unavailable 0 partition-seconds",)
    assert "Why?" not in markdown_text(calm) + html_page(calm)
