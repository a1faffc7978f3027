"""The page in a browser without a network."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from kgctl.pipeline.report.page import Content, html_page
from tests.support.pipeline.example import minute
from tests.support.simulate.chromium import dom_of

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

WHEN_DRAWN = """
const wait = setInterval(() => {{
  if (document.getElementById("figure").dataset.drawn !== {group!r}) return;
  clearInterval(wait);
  {then}
}}, 20);
"""
COUNT_FETCHES = 'document.body.dataset.fetched = performance.getEntriesByType("resource").length;'
CHOOSE_THE_SECOND = """
  const choice = document.getElementById("group");
  choice.selectedIndex = 1;
  choice.dispatchEvent(new Event("change"));
"""


def test_group_is_drawn_with_everything_that_happened(example: Content, tmp_path: Path) -> None:
    dom = dom_of(html_page(example), tmp_path, WHEN_DRAWN.format(group="payments", then=COUNT_FETCHES))

    assert 'data-charts="health rebalances resets members lag rate"' in dom
    assert "health: REWIND, 2026-03-02 08:40:00 to 2026-03-02 09:00:00.001" in labels(dom, "health")
    assert len(labels(dom, "health")) == len(example.figures[0].health)
    assert labels(dom, "reset") == ["reset: orders-0: 70 to 0 (-70): went back at 2026-03-02 08:40:00"]
    assert len(labels(dom, "rebalance")) == 3
    for text in ("records to read", "committed a second", "UTC", "08:40"):
        assert f">{text}</text>" in dom
    assert 'data-fetched="0"' in dom


@pytest.mark.deep
def test_another_group_can_be_chosen_and_charts_of_nothing_are_left_out(example: Content, tmp_path: Path) -> None:
    dom = dom_of(html_page(example), tmp_path, WHEN_DRAWN.format(group="payments", then=CHOOSE_THE_SECOND))

    assert 'data-drawn="audit"' in dom
    assert 'data-charts="health lag"' in dom


def labels(dom: str, kind: str) -> list[str]:
    """What a screen reader says of each mark of this kind, sorted."""
    return sorted({html.unescape(label) for label in re.findall(rf'aria-label="({kind}: [^"]*)"', dom)})


LEAD = """
  addEventListener("hashchange", () => {{
    const wait = setInterval(() => {{
      if (!document.getElementById("shown").textContent.includes("topic orders")) return;
      clearInterval(wait);
      document.body.dataset.here = document.getElementById("here").getAttribute("href");
    }}, 20);
  }});
  location.hash = "{address}";
"""


def test_an_address_names_group_topic_and_time(example: Content, tmp_path: Path) -> None:
    address = f"#cluster=staging&group=payments&topic=orders&from={minute(30)}&to={minute(50)}"
    dom = dom_of(html_page(example), tmp_path, WHEN_DRAWN.format(group="payments", then=LEAD.format(address=address)))

    assert html.unescape(re.search('data-here="([^"]*)"', dom)[1]) == address  # type: ignore[index]
    assert ">payments, topic orders</h2>" in dom
    assert 'data-theme="light"' in dom
