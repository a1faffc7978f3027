"""One HTML file: the frame, the style, the charting library's JavaScript out of its wheel, and the scripts with their data."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from html import escape
from importlib import resources
from string import Template
from typing import Any

from kgctl.extras import require

VEGA_LITE = "6.4"
"""The version that charts are written in."""


def require_library() -> None:
    """Raise `kgctl.errors.UsageError`, which says what to install, where the library is missing. Cheap: loads nothing."""
    require("--html", "vl_convert")


@functools.cache
def library_script() -> str:
    """What goes between ``<script>`` and ``</script>``: defines ``vegaEmbed``. Some 0.9 MB, made in about a second, once."""
    require_library()
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)


def page(title: str, kgctl: str, main: str, scripts: str = "") -> str:
    """The whole file. ``title`` and ``kgctl`` (its version) are plain text, ``main`` and ``scripts`` are HTML.

    Nothing in it is fetched from anywhere: its content security policy forbids the browser to.
    """
    frame, css = (resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    return Template(frame).substitute(css=css, title=escape(title), kgctl=escape(kgctl), main=main, scripts=scripts)


def chart_scripts(values: Mapping[str, Any], script: str) -> str:
    """``values`` as JSON elements by their ids, then the library and its colours (``vegaEmbed``), then ``script``.

    Raises:
        UsageError: the extra ``html`` is not installed.
    """
    data = "".join(f'<script type="application/json" id="{name}">{_json(value)}</script>\n' for name, value in values.items())
    theme = resources.files(__package__).joinpath("theme.js").read_text(encoding="utf-8")
    return f"{data}<script>{library_script()}</script>\n<script>\n{theme}</script>\n<script>\n{script}</script>\n"


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
DARK, ALARM, INK = "#1d2430", "#e5484d", "#5b6472"


def config() -> dict[str, Any]:
    """The ``config`` of a Vega-Lite chart."""
    axis = {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": "#e7eaee",
        "tickColor": "#c8ced6",
        "domainColor": "#c8ced6",
    }
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
    return {"font": font, "axis": axis, "view": {"stroke": "#e1e5ea"}, "background": "transparent", "legend": {"labelColor": INK}}


def charts(package: str, **values: str) -> dict[str, Any]:
    """``charts.yaml`` of a package, with these values in the place of their names."""
    import yaml

    text = resources.files(package).joinpath("charts.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(Template(text).substitute(values))
    return found
