"""The charts as Vega-Lite has them: health, rebalances, resets, members, lag and commit rate; one time axis for all, in UTC.

Data and sizes are filled in by ``page.js`` under the names of the views.
"""

from __future__ import annotations

from typing import Any

from kgctl.charts.style import ALARM, DARK, SCHEMA, config, tooltip

COLORS = {"OK": "#8bc8a4", "WARN": "#f2c572", "STOP": "#8d97a5", "STALL": "#e58a8d", "REWIND": "#b594d8", "unknown": "#e1e5ea"}
_CLOCK = (
    "utchours(datum.value) || utcminutes(datum.value) || utcseconds(datum.value)"
    " ? utcFormat(datum.value, utcseconds(datum.value) ? '%H:%M:%S' : '%H:%M') : utcFormat(datum.value, '%d %b')"
)
VIEWS = ("health", "rebalances", "resets", "members", "lag", "rate")


def chart() -> dict[str, Any]:
    """The whole figure. Dragging and the wheel move all charts in time; a double click goes back.

    ``usermeta`` has the time axis for the lowest of the charts that have something to show.
    """
    return {
        "$schema": SCHEMA,
        "vconcat": [
            _health(),
            _rebalances(),
            _resets(),
            _members(),
            _lines("lag", "records to read", 150),
            _lines("rate", "committed a second", 110),
        ],
        "spacing": 6,
        "params": [
            {"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales", "views": list(VIEWS)},
        ],
        "resolve": {"scale": {"color": "independent"}},
        "config": config(),
        "usermeta": {"axis": {"labelExpr": _CLOCK, "labelFlush": True, "grid": True, "tickCount": 10}, "title": "UTC"},
    }


def _health() -> dict[str, Any]:
    return {
        **_strip("health", 18),
        "mark": {"type": "rect", "clip": True},
        "encoding": {
            "x": _time("from"),
            "x2": {"field": "to"},
            "y": {"datum": "health", "type": "nominal", "axis": _name_axis()},
            "color": {
                "field": "what",
                "type": "nominal",
                "scale": {"domain": list(COLORS), "range": list(COLORS.values())},
                "legend": {"orient": "top", "title": None, "offset": 2},
            },
            "tooltip": [tooltip("what", "health"), tooltip("begin", "from"), tooltip("end", "to")],
            "description": {"field": "label"},
        },
    }


def _rebalances() -> dict[str, Any]:
    """With an outline, so that one of a thousandth of the width is still seen."""
    return {
        **_strip("rebalances", 18),
        "mark": {"type": "rect", "clip": True, "color": DARK, "stroke": DARK, "strokeWidth": 1.2},
        "encoding": {
            "x": _time("from"),
            "x2": {"field": "to"},
            "y": {"datum": "rebalances", "type": "nominal", "axis": _name_axis()},
            "tooltip": [tooltip("what", "rebalance"), tooltip("begin", "from"), tooltip("end", "to")],
            "description": {"field": "label"},
        },
    }


def _resets() -> dict[str, Any]:
    return {
        **_strip("resets", 18),
        "mark": {
            "type": "point",
            "shape": "triangle-down",
            "filled": True,
            "size": 80,
            "color": ALARM,
            "opacity": 0.9,
            "clip": True,
        },
        "encoding": {
            "x": _time("at_ms"),
            "y": {"datum": "resets", "type": "nominal", "axis": _name_axis()},
            "tooltip": [tooltip("what", "reset"), tooltip("at", "at")],
            "description": {"field": "label"},
        },
    }


def _members() -> dict[str, Any]:
    return {
        **_strip("members", 60),
        "mark": {"type": "line", "interpolate": "step-after", "color": DARK, "clip": True},
        "encoding": {"x": _time("at_ms"), "y": _amount("members", 3, tickMinStep=1)},
    }


def _lines(name: str, title: str, height: int) -> dict[str, Any]:
    return {
        **_strip(name, height),
        "mark": {"type": "line", "interpolate": "step-after", "clip": True, "invalid": "break-paths-show-domains"},
        "encoding": {
            "x": _time("at_ms"),
            "y": {**_amount(title, 4), "field": "value"},
            "color": {
                "field": "topic",
                "type": "nominal",
                "scale": {"scheme": "tableau10"},
                "legend": {"orient": "top", "title": None, "symbolType": "stroke", "offset": 2},
            },
        },
    }


def _strip(name: str, height: int) -> dict[str, Any]:
    return {"name": name, "height": height, "data": {"name": name}}


def _time(field: str) -> dict[str, Any]:
    hidden = {"labels": False, "ticks": False, "domain": False, "grid": False}
    return {"field": field, "type": "temporal", "scale": {"type": "utc", "nice": False}, "title": None, "axis": hidden}


def _amount(title: str, ticks: int, **axis: Any) -> dict[str, Any]:
    return {"field": "value", "type": "quantitative", "title": title, "axis": {"tickCount": ticks, "format": ",~r", **axis}}


def _name_axis() -> dict[str, Any]:
    return {"title": None, "ticks": False, "domain": False}
