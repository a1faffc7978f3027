"""The frame of every page."""

from __future__ import annotations

import json
import re

from kgctl.charts.page import chart_scripts, page

EVIL = "</script><img src=x onerror=alert(1)>"


def test_page_refers_to_nothing_outside_itself() -> None:
    text = page("a title", "1.0", "<p>main</p>")

    assert re.findall(r"https?:|\b(?:src|href)=|@import|url\(", text) == []
    assert "default-src 'none'" in text
    assert "<main>\n<p>main</p></main>" in text


def test_title_and_version_cannot_become_markup() -> None:
    text = page(EVIL, EVIL, "")

    assert "<img" not in text
    assert text.count("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") == 2


def test_data_cannot_end_its_script() -> None:
    text = chart_scripts({"data": {EVIL: [1, None]}, "chart": {}}, "draw();")

    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == {EVIL: [1, None]}
    assert text.endswith("<script>\ndraw();</script>\n")
    assert "vegaEmbed" in text
