"""The charts as Vega-Lite has them: what the scenario did, the pods, the lanes of partitions, the lag; one time axis for all.

Data and sizes are filled in by ``page.js`` as ``events``, ``replicas``, ``segments`` and ``lag``, for the variant that
is chosen; it leaves out the charts that have no data.
"""

from __future__ import annotations

from typing import Any

from kgctl.charts.style import ALARM, DARK, SCHEMA, config, tooltip

_CLOCK = (
    "(datum.value < 0 ? '-' : '') + (abs(datum.value) >= 3600 ? floor(abs(datum.value) / 3600) + 'h ' : '')"
    " + (abs(datum.value) >= 60 && floor(abs(datum.value) / 60) % 60 ? floor(abs(datum.value) / 60) % 60 + 'm ' : '')"
    " + (abs(datum.value) % 60 || abs(datum.value) < 60 ? round(1000 * (abs(datum.value) % 60)) / 1000 + 's' : '')"
)


def chart() -> dict[str, Any]:
    """The whole figure. Dragging and the wheel move all charts in time; a double click goes back."""
    return {
        "$schema": SCHEMA,
        "vconcat": [_events(), _replicas(), _lanes(), _lag()],
        "spacing": 6,
        "params": [
            {
                "name": "zoom",
                "select": {"type": "interval", "encodings": ["x"]},
                "bind": "scales",
                "views": ["events", "replicas", "lanes", "lag"],
            }
        ],
        "resolve": {"scale": {"color": "independent"}},
        "config": config(),
    }


def _events() -> dict[str, Any]:
    return {
        "name": "events",
        "height": 16,
        "data": {"name": "events"},
        "mark": {
            "type": "point",
            "shape": "triangle-down",
            "filled": True,
            "size": 70,
            "color": ALARM,
            "opacity": 0.9,
            "clip": True,
        },
        "encoding": {
            "x": _time(axis=False),
            "tooltip": [tooltip("text", "event"), tooltip("at", "at")],
            "description": {"field": "label"},
        },
    }


def _replicas() -> dict[str, Any]:
    return {
        "name": "replicas",
        "height": 90,
        "data": {"name": "replicas"},
        "mark": {"type": "line", "interpolate": "step-after", "clip": True, "tooltip": False},
        "encoding": {
            "x": _time(axis=False),
            "y": {"field": "pods", "type": "quantitative", "title": "pods", "axis": {"tickCount": 4, "format": "d"}},
            "color": {
                "field": "what",
                "type": "nominal",
                "sort": None,
                "scale": {"scheme": "tableau10"},
                "legend": {"orient": "top", "title": None, "symbolType": "stroke", "offset": 2},
            },
        },
    }


def _lanes() -> dict[str, Any]:
    """Owners first; gaps over them with an outline, so that one of a thousandth of the width is still seen."""
    return {
        "data": {"name": "segments"},
        "encoding": {
            "x": {**_time(axis=False), "field": "from"},
            "x2": {"field": "to"},
            "y": {
                "field": "lane",
                "type": "ordinal",
                "sort": None,
                "scale": {"paddingInner": 0.12},
                "axis": {"title": None, "labelOverlap": True, "ticks": False, "domain": False, "labelLimit": 220},
            },
            "tooltip": [
                tooltip("partition", "partition"),
                tooltip("owner", "owner"),
                tooltip("cause", "cause"),
                tooltip("begin", "from"),
                tooltip("end", "to"),
                tooltip("length", "for"),
            ],
            "description": {"field": "label"},
        },
        "layer": [
            {
                "name": "lanes",
                "transform": [{"filter": "datum.kind === 'owned'"}],
                "mark": {"type": "rect", "clip": True},
                "encoding": {"color": {"field": "color", "type": "nominal", "scale": None}},
            },
            _gaps("nobody", DARK),
            _gaps("two", ALARM),
        ],
    }


def _gaps(kind: str, color: str) -> dict[str, Any]:
    return {
        "transform": [{"filter": f"datum.kind === '{kind}'"}],
        "mark": {"type": "rect", "clip": True, "color": color, "stroke": color, "strokeWidth": 0.7},
    }


def _lag() -> dict[str, Any]:
    return {
        "name": "lag",
        "height": 130,
        "data": {"name": "lag"},
        "mark": {"type": "area", "interpolate": "linear", "line": True, "fillOpacity": 0.18, "clip": True, "tooltip": False},
        "encoding": {
            "x": _time(axis=True),
            "y": {
                "field": "lag",
                "type": "quantitative",
                "stack": None,
                "title": "records to read",
                "axis": {"tickCount": 4, "format": ",~r"},
            },
            "color": {
                "field": "topic",
                "type": "nominal",
                "scale": {"scheme": "tableau10"},
                "legend": {"orient": "top", "title": None, "symbolType": "stroke", "offset": 2},
            },
        },
    }


def _time(*, axis: bool) -> dict[str, Any]:
    drawn = {"labelExpr": _CLOCK, "labelFlush": True, "grid": True, "tickCount": 12}
    hidden = {"labels": False, "ticks": False, "domain": False, "grid": False}
    title = "virtual time, 0 = end of the warm-up" if axis else None
    return {"field": "at_s", "type": "quantitative", "title": title, "axis": drawn if axis else hidden, "scale": {"nice": False}}
