"""The charts as Vega-Lite has them: what the scenario did, the pods, the lanes of partitions, the lag; one time axis for all.

Data and sizes are filled in by ``page.js`` as ``events``, ``replicas``, ``segments`` and ``lag``, for the variant that
is chosen; it leaves out the charts that have no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from kgctl.charts.page import ALARM, DARK, SCHEMA, chart_scripts, config, page, tooltip
from kgctl.simulate.report.outcome import Outcome, Picture
from kgctl.simulate.report.tables import (
    assumption_rows,
    column_names,
    metric_rows,
    notes,
    played_verdicts,
    replays,
    seeds_note,
    tables,
    title,
    trouble_lines,
    verdicts,
)
from kgctl.simulate.report.text import natural, worst_lanes

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
        "height": 66,
        "data": {"name": "events"},
        "encoding": {
            "x": _time(axis=False),
            "y": {"field": "row", "type": "quantitative", "axis": None, "scale": {"domain": [4.5, -0.5], "nice": False}},
        },
        "layer": [
            {
                "name": "events",
                "mark": {
                    "type": "point",
                    "shape": "triangle-down",
                    "filled": True,
                    "size": 70,
                    "color": ALARM,
                    "opacity": 0.9,
                    "clip": True,
                },
                "encoding": {"tooltip": [tooltip("text", "event"), tooltip("at", "at")], "description": {"field": "label"}},
            },
            {
                "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 7, "fontSize": 10},
                "encoding": {"text": {"field": "words"}},
            },
        ],
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


MOST_LANES = 240
"""More than that cannot be told apart on a screen, and a browser is slow with them."""


def page_data(outcome: Outcome) -> dict[str, Any]:
    """``{"variants": {name: picture}}``, only of variants that have one."""
    failed = {each.variant for each in outcome.failures}
    variants = sorted(outcome.variants.items(), key=lambda entry: entry[0] not in failed)  # what failed is seen first
    pictures = {name: each.picture for name, each in variants if each.picture is not None}
    if outcome.measured is not None:
        played = {f"{name}, played": each.picture for name, each in outcome.measured.variants.items()}
        pictures |= {name: picture for name, picture in played.items() if picture is not None}
    return {"variants": {name: _picture(picture) for name, picture in pictures.items()}}


def _picture(picture: Picture) -> dict[str, Any]:
    lanes = worst_lanes(picture, MOST_LANES)
    owners = sorted({owner for lane in lanes for each in lane.segments for owner in each.owners}, key=natural)
    causes = sorted({each.cause for lane in lanes for each in lane.segments})
    owner_index = {owner: i for i, owner in enumerate(owners)}
    cause_index = {cause: i for i, cause in enumerate(causes)}
    rows = [
        [number, each.from_us, each.to_us, cause_index[each.cause], *(owner_index[owner] for owner in each.owners)]
        for number, lane in enumerate(lanes)
        for each in lane.segments
        if each.to_us > each.from_us
    ]
    return {
        "seed": picture.seed,
        "caption": picture.caption,
        "from": picture.from_us,
        "to": picture.to_us,
        "lanes": [lane.name for lane in lanes],
        "left_out": len(picture.lanes) - len(lanes),
        "owners": owners,
        "causes": causes,
        "segments": rows,
        "marks": [[mark.at_us, mark.text] for mark in picture.marks],
        "lag": [{"topic": series.topic, "points": [list(point) for point in series.points]} for series in picture.lag],
        "replicas": [
            {"what": f"{each.members}, {what}", "points": [list(point) for point in points]}
            for each in picture.replicas
            for what, points in (("wanted", each.wanted), ("running", each.running))
        ],
    }


_FIGURE = Template("""\
<section>
<fieldset aria-label="variant">$choices</fieldset>
<div id="figure" role="img" aria-label="who consumed which partition when, and how many records waited"></div>
<div id="legend"></div>
<p class="note">One lane for each partition of <span id="drawn"></span>.
Drag to move, turn the wheel to zoom, double-click to go back.</p>
</section>
""")


def html_page(outcome: Outcome) -> str:
    """The whole file. Raises `kgctl.errors.UsageError` where the extra ``html`` is not installed.

    The same outcome, kgctl and library give the same bytes.
    """
    data = page_data(outcome)
    drawn = bool(data["variants"])
    figure = _FIGURE.substitute(choices=_choices(data["variants"])) if drawn else ""
    main = Template(_file("page.html")).substitute(
        scenario=escape(outcome.scenario),
        question=escape(outcome.question),
        kgctl=escape(outcome.kgctl),
        seeds=escape(_seeds(outcome.seeds)),
        digest=escape(outcome.digest),
        badge=_badge(outcome),
        troubles="".join(f'<p class="trouble">{escape(text)}</p>' for text in trouble_lines(outcome)),
        metrics=_metrics(outcome),
        verdicts=_verdicts(outcome),
        figure=_stories(outcome) + figure + _assumptions(outcome),
    )
    scripts = chart_scripts({"data": data, "chart": chart()}, _file("page.js")) if drawn else ""
    return page(f"{outcome.scenario} - kgctl simulate", outcome.kgctl, main, scripts)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _seeds(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}..{seeds[-1]}" if len(seeds) > 1 and seeds[-1] - seeds[0] == len(seeds) - 1 else ", ".join(map(str, seeds))


def _badge(outcome: Outcome) -> str:
    word, text = ("fail", f"{len(outcome.failures)} FAILED") if outcome.failures else ("pass", "PASS")
    return f'<span class="badge {word}">{text}</span>' if outcome.expectations else ""


def _metrics(outcome: Outcome) -> str:
    head = _tag("th", [("", ""), *[("figure", name) for name in column_names(outcome)], ("", "")])
    rows = [
        _tag("td", [("", row.label), *[("figure", cell) for cell in row.cells], ("hint", row.hint)])
        for row in metric_rows(outcome)
    ]
    if not rows:
        return ""
    table = f"<section><h2>Variants, {escape(seeds_note(outcome))}</h2><table>{_rows([head, *rows])}</table></section>\n"
    return table + _beside(outcome)


def _beside(outcome: Outcome) -> str:
    """What was measured with real clients, a table for each variant."""
    found = []
    for head, *rows in tables(outcome):
        cells = [_tag("td", zip(("", "figure", "figure", "hint"), row, strict=True)) for row in rows]
        found.append(f"<table>{_rows([_tag('th', zip(('', 'figure', 'figure', ''), head, strict=True)), *cells])}</table>")
    return f"<section><h2>{escape(title(outcome))}</h2>{''.join(found)}</section>\n" if found else ""


def _verdicts(outcome: Outcome) -> str:
    rows = [
        f'<td><span class="badge {each.word.lower()}">{each.word}</span></td>'
        f'<td><code>{escape(each.check)}</code></td><td class="hint">{escape(each.detail)}</td>'
        for each in (*verdicts(outcome), *played_verdicts(outcome))
    ]
    below = "".join(f'<p class="note">{escape(text)}</p>' for text in notes(outcome))
    commands = "".join(f"<pre><code>{escape(text)}</code></pre>" for text in replays(outcome))
    if not rows:
        return below
    return f"<section><h2>Expectations</h2><table>{_rows(rows)}</table>{below}{commands}</section>\n"


def _stories(outcome: Outcome) -> str:
    found = [
        f"<p>{escape(each.why[0])}</p><pre>{escape(chr(10).join(each.why[1:]))}</pre>"
        for each in outcome.variants.values()
        if each.why
    ]
    return f"<section><h2>Why?</h2>{''.join(found)}</section>\n" if found else ""


def _assumptions(outcome: Outcome) -> str:
    rows = [_tag("td", [("", what), ("", value)]) for what, value in assumption_rows(outcome)]
    return f"<section><details><summary>Assumptions</summary><table>{_rows(rows)}</table></details></section>\n" if rows else ""


def _rows(rows: Iterable[str]) -> str:
    return "".join(f"<tr>{row}</tr>" for row in rows)


def _tag(tag: str, cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<{tag} class="{css}">{escape(text)}</{tag}>' for css, text in cells)


def _choices(names: Iterable[str]) -> str:
    return "".join(
        f'<label><input type="radio" name="variant" value="{escape(name)}"{" checked" * (not i)}>{escape(name)}</label>'
        for i, name in enumerate(names)
    )
