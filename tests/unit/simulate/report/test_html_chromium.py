"""The HTML file in a browser without a network."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgctl.simulate.report.html import html_page
from kgctl.simulate.report.outcome import Lane, Mark, Outcome, VariantOutcome
from tests.support.simulate.chromium import dom_of
from tests.support.simulate.outcomes import SECOND, failing, outcome, picture, segments

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

TITLES = ("partitions, nobody", "records to read", "generation", "p*s by step")
WHEN_DRAWN = """
const wait = setInterval(() => {{
  if (document.getElementById("figure").dataset.drawn !== {variant!r}) return;
  clearInterval(wait);
  {then}
}}, 20);
"""
HOVER = """
  const lanes = [...document.querySelectorAll("#lanes path")];
  const gap = lanes.find((each) => (each.ariaLabel || "").startsWith("orders-0: nobody"));
  const { left, top, width, height } = gap.getBoundingClientRect();
  const at = { bubbles: true, clientX: left + width / 2, clientY: top + height / 2 };
  for (const kind of ["pointerover", "mouseover", "pointermove", "mousemove"]) gap.dispatchEvent(new MouseEvent(kind, at));
"""
COUNT_FETCHES = """
  document.body.dataset.fetched = performance.getEntriesByType("resource").length;
"""


def test_lanes_are_drawn_and_hovering_one_tells_owner_and_cause(tmp_path: Path) -> None:
    script = WHEN_DRAWN.format(variant="eager", then=HOVER + COUNT_FETCHES)

    dom = dom_of(html_page(failing()), tmp_path, script)

    assert _labels(dom, "orders-") == [
        "orders-0: app-0, 0s to 11s",
        "orders-0: app-0, 26s to 40s",
        "orders-0: app-1, 13s to 25s",
        "orders-0: nobody, rebalance, 11s to 13s",
        "orders-0: nobody, rebalance, 25s to 26s",
        "orders-1: app-0 and app-1, 24s to 25s",
        "orders-1: app-1, 0s to 11s",
        "orders-1: app-1, 13s to 24s",
        "orders-1: app-1, 25s to 40s",
        "orders-1: nobody, rebalance, 11s to 13s",
    ]
    assert _labels(dom, "restart") == ["restart app/0 at 10s"] * 2  # over the charts, and over the lanes
    assert _tooltip(dom) == [
        "partition", "orders-0", "owner", "nobody", "cause", "rebalance", "from", "11s", "to", "13s", "for", "2s",
    ]  # fmt: skip
    assert 'data-fetched="0"' in dom


def test_another_variant_can_be_chosen(tmp_path: Path) -> None:
    script = WHEN_DRAWN.format(variant="eager", then='document.querySelectorAll("input[name=variant]")[1].click();')

    dom = dom_of(html_page(_two_pictures()), tmp_path, script)

    assert 'data-drawn="cooperative"' in dom
    assert {label.partition(":")[0] for label in _labels(dom, "orders-")} == {"orders-1"}


def test_the_page_leads_with_what_happened_over_time(tmp_path: Path) -> None:
    marks = (Mark(10 * SECOND, "rollout, step 1"), Mark(12 * SECOND, "rollout, step 2"))
    stepped = VariantOutcome({}, {}, replace(picture(), steps=marks))

    dom = dom_of(html_page(replace(failing(), variants={"default": stepped})), tmp_path)

    first, _, rest = dom.partition("<h2>Expectations")
    assert [title for title in TITLES if title in first] == [*TITLES]
    assert "<h2>Partitions that were without a consumer" in rest
    assert _labels(first, "rollout") == ["rollout, step 1: rebalance 2.0", "rollout, step 2: rebalance 3.0"]
    assert first.count(">virtual time, 0 = end of the warm-up<") == 1


@pytest.mark.parametrize("left", ["lanes", "lag", "generations", "all"])
def test_a_picture_without_some_of_it_is_drawn(tmp_path: Path, left: str) -> None:
    whole = (Lane("orders", 0, segments((40, "app-0"))),)
    without: dict[str, Any] = {"lanes": whole, "lag": (), "generations": ()}
    parts = without if left == "all" else {left: without[left]}
    bare = VariantOutcome({}, {}, replace(picture(), **parts))

    dom = dom_of(html_page(replace(outcome(), variants={"default": bare}, expectations=())), tmp_path)

    drawn = dom.partition('<div id="figure"')[2].partition("<script")[0]
    assert 'data-drawn="default"' in dom
    assert "virtual time, 0 = end of the warm-up" in drawn
    assert ("each partition had a consumer all the time" in drawn) == (left in ("lanes", "all"))
    assert ("records to read" in drawn) == (left not in ("lag", "all"))


def _two_pictures() -> Outcome:
    one_lane = replace(picture(), lanes=picture().lanes[1:])
    eager, cooperative = outcome().variants.values()
    return replace(outcome(), variants={"eager": eager, "cooperative": replace(cooperative, picture=one_lane)})


def _labels(dom: str, start: str) -> list[str]:
    return sorted(html.unescape(label) for label in re.findall(rf'aria-label="({start}[^"]*)"', dom))


def _tooltip(dom: str) -> list[str]:
    found = re.search(r'<div id="vg-tooltip-element".*?</table>', dom, re.DOTALL)
    assert found is not None, "no tooltip"
    return [html.unescape(cell) for cell in re.findall(r"<td[^>]*>([^<]*)</td>", found[0])]
