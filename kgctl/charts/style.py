"""How charts look, the same on every page."""

from __future__ import annotations

from typing import Any

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


def tooltip(field: str, title: str) -> dict[str, str]:
    """One line of a tooltip: the text of ``field`` under ``title``."""
    return {"field": field, "title": title, "type": "nominal"}
