"""The HTML file, as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from kgctl.simulate.report.charts import MOST_LANES, costs, in_columns, without_consumer
from kgctl.simulate.report.html import html_page, page_data
from kgctl.simulate.report.outcome import Lane, Mark, Outcome, Replicas, Segment, VariantOutcome
from tests.support.simulate.outcomes import SECOND, failing, outcome, picture, segments


@pytest.fixture(scope="module")
def page() -> str:
    return html_page(failing())


def test_a_picture_becomes_rows_of_numbers() -> None:
    (name,) = page_data(outcome())["variants"]
    drawn = page_data(outcome())["variants"][name]
    lag = [[0, 0], [10_000_000, 0], [13_000_000, 3000], [16_000_000, 0], [40_000_000, 0]]
    assert (name, drawn["caption"], drawn["from"], drawn["to"]) == ("eager", "seed 1", 0, 40_000_000)
    assert [cause for cause, _ in drawn["causes"]] == ["rebalance"]
    assert drawn["gone"] == [[0, 0], [11_000_000, 2], [13_000_000, 0], [25_000_000, 1], [26_000_000, 0]]
    assert (drawn["lanes"], drawn["left_out"], drawn["whole"]) == (["orders-0", "orders-1"], 0, 0)
    assert (drawn["owners"], drawn["how"]) == (["app-0", "app-1"], ["", "rebalance"])
    assert drawn["segments"] == [
        [0, 0, 11_000_000, 0, 0],
        [0, 11_000_000, 13_000_000, 1],
        [0, 13_000_000, 25_000_000, 0, 1],
        [0, 25_000_000, 26_000_000, 1],
        [0, 26_000_000, 40_000_000, 0, 0],
        [1, 0, 11_000_000, 0, 1],
        [1, 11_000_000, 13_000_000, 1],
        [1, 13_000_000, 24_000_000, 0, 1],
        [1, 24_000_000, 25_000_000, 0, 0, 1],
        [1, 25_000_000, 40_000_000, 0, 1],
    ]
    assert (drawn["marks"], drawn["replicas"]) == ([[10_000_000, "restart app/0"]], [])
    assert drawn["lag"] == [{"topic": "orders", "points": lag}]
    assert drawn["generations"] == [[0, 3], [13_000_000, 4], [26_000_000, 5]]


def test_each_step_of_a_rollout_has_what_it_cost_until_the_next_one() -> None:
    marks = (Mark(10 * SECOND, "rollout, step 1"), Mark(12 * SECOND, "rollout, step 2"), Mark(25_500_000, "after rollout"))
    stepped = replace(picture(), steps=marks)
    data = page_data(replace(outcome(), variants={"eager": replace(outcome().variants["eager"], picture=stepped)}))
    assert data["variants"]["eager"]["steps"] == [
        ["rollout, step 1", 10_000_000, 12_000_000, 2_000_000],
        ["rollout, step 2", 12_000_000, 25_500_000, 2_500_000],
        ["after rollout", 25_500_000, 40_000_000, 500_000],
    ]
    assert costs(without_consumer(picture().lanes, 0, 40 * SECOND), marks[:1], 40 * SECOND) == []


def test_a_gap_of_a_millisecond_in_hours_is_seen_as_high_as_it_was() -> None:
    segment = (
        Segment(0, 3_600 * SECOND, ("a",)),
        Segment(3_600 * SECOND, 3_600_001_000),
        Segment(3_600_001_000, 7_200 * SECOND, ("b",)),
    )
    found = in_columns(without_consumer([Lane("t", i, segment) for i in range(50)], 0, 7_200 * SECOND), 7_200 * SECOND)
    assert [(at_us, now.total()) for at_us, now in found] == [(0, 0), (3_600 * SECOND, 50), (3_607_200_000, 0)]


def test_causes_that_follow_one_another_within_a_column_are_not_added_up() -> None:
    segment = (*segments((3_600, "a")), Segment(3_600 * SECOND, 3_601 * SECOND, (), "rebalance"))
    segment += (Segment(3_601 * SECOND, 3_602 * SECOND, (), "fetch"), Segment(3_602 * SECOND, 7_200 * SECOND, ("b",)))
    found = in_columns(without_consumer([Lane("t", i, segment) for i in range(50)], 0, 7_200 * SECOND), 7_200 * SECOND)
    assert max(now.total() for _, now in found) == 50


def test_a_partition_that_was_consumed_all_the_time_has_no_lane() -> None:
    whole = Lane("orders", 7, segments((20, "app-0"), (40, "app-1")))
    calm = replace(picture(), lanes=(*picture().lanes, whole))
    drawn = page_data(replace(outcome(), variants={"eager": replace(outcome().variants["eager"], picture=calm)}))["variants"][
        "eager"
    ]
    assert (drawn["lanes"], drawn["whole"]) == (["orders-0", "orders-1"], 1)


def test_pods_of_an_autoscaler_become_two_lines() -> None:
    pods = Replicas("app", ((0, 2), (9_000_000, 4)), ((0, 2), (12_000_000, 3), (13_000_000, 4)))
    eager = replace(picture(), replicas=(pods,))
    data = page_data(replace(outcome(), variants={"eager": replace(outcome().variants["eager"], picture=eager)}))
    assert data["variants"]["eager"]["replicas"] == [
        {"what": "app, wanted", "points": [[0, 2], [9_000_000, 4]]},
        {"what": "app, running", "points": [[0, 2], [12_000_000, 3], [13_000_000, 4]]},
    ]


def test_of_very_many_partitions_those_with_the_longest_gaps_are_drawn() -> None:
    lanes = tuple(Lane("t", i, segments((i + 1, "?boot"), (1000, "m-0"))) for i in range(MOST_LANES + 10))
    wide = Outcome("s", "", "0", "", (1,), {"default": VariantOutcome({}, {}, replace(picture(), lanes=lanes))})

    drawn = page_data(wide)["variants"]["default"]

    assert (drawn["lanes"][0], len(drawn["lanes"]), drawn["left_out"]) == ("t-10", MOST_LANES, 10)


def test_page_has_figures_verdicts_and_replay_without_any_script(page: str) -> None:
    frame = _without_scripts(page)

    assert '<h1>tiny</h1><span class="badge fail">1 FAILED</span>' in frame
    assert '<td class="">longest gap</td><td class="figure">3.2s</td><td class="figure">3.2s</td>' in frame
    assert "<code>eager: max_gap &lt; 3s</code>" in frame
    assert "kgctl simulate run tiny.yaml --variant eager --seed 2 --check &#x27;max_gap &lt; 3s&#x27;" in frame


def test_what_a_limit_has_left_out_is_no_pass() -> None:
    cut = html_page(replace(outcome(), stopped="stopped at the time limit: 1 of 9 seeds were run in every variant"))
    assert ('<span class="badge fail">STOPPED</span>' in cut, ">PASS</span>" in html_page(outcome())) == (True, True)


def test_where_an_expectation_only_warns_the_page_does_not_say_that_all_passed() -> None:
    held, *others = outcome().expectations
    warned = html_page(replace(outcome(), expectations=(replace(held, passed=False, severity="warn"), *others)))
    assert re.findall(r'</h1><span class="badge (\w+)">(\w+)<', warned) == [("warn", "WARN")]


def test_page_refers_to_nothing_outside_itself(page: str) -> None:
    assert re.findall(r"https?:|\b(?:src|href)=|@import|url\(", _without_scripts(page)) == []
    assert "default-src 'none'" in page


def test_same_outcome_gives_the_same_bytes(page: str) -> None:
    assert html_page(failing()) == page


def test_names_cannot_become_markup_or_end_a_script() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    lane = Lane(evil, 0, segments((30, evil), (40, "?boot")))
    variant = VariantOutcome({}, {}, replace(picture(), lanes=(lane,)))
    named = replace(outcome(), scenario=evil, question=evil, variants={evil: variant}, expectations=())

    page = html_page(named)

    assert "<img" not in _without_scripts(page)
    assert _json(page, "data")["variants"][evil]["lanes"] == [f"{evil}-0"]


def test_outcome_without_pictures_needs_no_charts() -> None:
    plain = replace(outcome(), variants={"cooperative": outcome().variants["cooperative"]})

    assert "<script" not in html_page(plain)


def _without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def _json(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])
