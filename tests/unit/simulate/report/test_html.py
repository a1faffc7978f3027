"""The HTML file, as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from kgctl.simulate.report.html import MOST_LANES, html_page, page_data
from kgctl.simulate.report.outcome import Lane, Outcome, Replicas, VariantOutcome
from tests.support.simulate.outcomes import failing, outcome, picture, segments


@pytest.fixture(scope="module")
def page() -> str:
    return html_page(failing())


def test_lanes_become_rows_of_numbers() -> None:
    assert page_data(outcome()) == {
        "variants": {
            "eager": {
                "seed": 1,
                "caption": "seed 1",
                "from": 0,
                "to": 40_000_000,
                "lanes": ["orders-0", "orders-1"],
                "left_out": 0,
                "owners": ["app-0", "app-1"],
                "causes": ["", "rebalance"],
                "segments": [
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
                ],
                "marks": [[10_000_000, "restart app/0"]],
                "lag": [
                    {"topic": "orders", "points": [[0, 0], [10_000_000, 0], [13_000_000, 3000], [16_000_000, 0], [40_000_000, 0]]}
                ],
                "replicas": [],
            }
        }
    }


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


def test_page_refers_to_nothing_outside_itself(page: str) -> None:
    assert re.findall(r"https?:|\b(?:src|href)=|@import|url\(", _without_scripts(page)) == []
    assert "default-src 'none'" in page


def test_same_outcome_gives_the_same_bytes(page: str) -> None:
    assert html_page(failing()) == page


def test_names_cannot_become_markup_or_end_a_script() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    lane = Lane(evil, 0, segments((40, evil)))
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
