"""The page of a sweep: what is drawn, and that a browser draws it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.simulate.scenario.expressions import Metric, key_of
from kgctl.simulate.sweep.html import chart, sweep_page
from kgctl.simulate.sweep.plan import summary_rows
from tests.support.simulate.chromium import dom_of
from tests.support.simulate.sweeps import rows_of, sweep_of

WHEN_DRAWN = """
const wait = setInterval(() => {
  if (document.getElementById("figure").dataset.drawn !== "yes") return;
  clearInterval(wait);
}, 20);
"""


def test_the_parameter_with_the_most_values_runs_along_and_the_others_have_colours() -> None:
    sweep = sweep_of("group.config.session.timeout.ms=10s,20s,45s", "members.app.count=2,3", seeds=(1,))
    drawn = chart(sweep, summary_rows(sweep, rows_of(sweep), ("max_gap", "moves")), ("max_gap", "moves"))
    values = drawn["data"]["values"]
    assert [value["x"] for value in values[:4]] == ["10s"] * 4
    assert [value["series"] for value in values[:4]] == [
        "slow, app.count 2",
        "quick, app.count 2",
        "slow, app.count 3",
        "quick, app.count 3",
    ]
    assert [each["encoding"]["x"]["title"] for each in drawn["vconcat"]] == ["group.config.session.timeout.ms"] * 2
    assert [each["encoding"]["x"]["type"] for each in drawn["vconcat"]] == ["ordinal"] * 2
    titles = [each["layer"][1]["encoding"]["y"]["title"] for each in drawn["vconcat"]]
    assert titles == ["max_gap (seconds)", "moves (count)"]


def test_numbers_have_an_axis_of_numbers_and_no_parameter_is_drawn_too() -> None:
    numbers = sweep_of("members.app.count=2,3", seeds=(1,))
    drawn = chart(numbers, summary_rows(numbers, rows_of(numbers), ("moves",)), ("moves",))
    assert drawn["vconcat"][0]["encoding"]["x"]["type"] == "quantitative"
    none = sweep_of(seeds=(1, 2))
    drawn = chart(none, summary_rows(none, rows_of(none), ("moves",)), ("moves",))
    assert [(value["x"], value["series"]) for value in drawn["data"]["values"]] == [("slow", "all runs"), ("quick", "all runs")]


def test_charts_run_along_the_parameter_that_the_file_asks_for() -> None:
    sweep = replace(
        sweep_of("group.config.session.timeout.ms=10s,20s,45s", "members.app.count=2,3", seeds=(1,)), along="members.app.count"
    )
    drawn = chart(sweep, summary_rows(sweep, rows_of(sweep), ("moves",)), ("moves",))
    assert drawn["vconcat"][0]["encoding"]["x"]["title"] == "members.app.count"
    assert {value["x"] for value in drawn["data"]["values"]} == {2, 3}
    gone = replace(sweep, along="members.app.boot")
    drawn = chart(gone, summary_rows(gone, rows_of(gone), ("moves",)), ("moves",))
    assert drawn["vconcat"][0]["encoding"]["x"]["title"] == "group.config.session.timeout.ms"


def test_a_metric_with_filters_is_a_field_of_its_own() -> None:
    named = Metric("rebalance_time", ("p99.5",))
    sweep = replace(sweep_of(seeds=(1,)), metrics=(named,))
    drawn = chart(sweep, summary_rows(sweep, rows_of(sweep), (key_of(named),)), (key_of(named),))
    up = drawn["vconcat"][0]["layer"][1]["encoding"]["y"]
    assert (up["field"], up["title"]) == (r"rebalance_time(p99\.5)_median", "rebalance_time(p99.5) (seconds)")
    assert "rebalance_time(p99.5)_median" in drawn["data"]["values"][0]


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_browser_draws_it_without_a_network(tmp_path: Path) -> None:
    named = Metric("rebalance_time", ("p99.5",))
    sweep = replace(sweep_of("members.app.count=2,3", seeds=(1, 2)), metrics=(Metric("max_gap"), named))
    rows = rows_of(sweep)
    page = sweep_page(sweep, rows, ("max_gap", key_of(named)))
    assert page == sweep_page(sweep, rows, ("max_gap", key_of(named)))
    dom = dom_of(page, tmp_path, WHEN_DRAWN)
    assert 'data-drawn="yes"' in dom
    assert "max_gap (seconds)" in dom
    assert "rebalance_time(p99.5)_median: " in dom
    assert "8 runs over 2 members.app.count: 0 without a result, 4 with expectations that did not hold" in dom
