"""The page of a sweep: a chart for each metric over the parameter with the most values, and the summary as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

from kgctl import __version__
from kgctl.charts.page import SCHEMA, chart_scripts, config, page
from kgctl.simulate.scenario.metric import metric_kinds
from kgctl.simulate.sweep.plan import STATISTICS, Cell, RowLayout, RunRow, Sweep, digest_of_rows, summary_columns, summary_rows


def sweep_page(sweep: Sweep, rows: Sequence[RunRow], metrics: Sequence[str]) -> str:
    """The whole file; the same rows, kgctl and library give the same bytes.

    Raises:
        UsageError: the extra ``html`` is not installed.
    """
    lines = list(summary_rows(sweep, rows, metrics))
    title = f"{sweep.name} - kgctl simulate sweep"
    main = (
        f"<header><h1>{escape(sweep.name)}</h1></header>\n"
        f'<p class="question">{escape(_what(sweep, rows))}</p>\n'
        '<section><div id="figure" role="img" aria-label="metrics over the parameters of the sweep"></div>\n'
        f'<p class="note">Lines: the median of the seeds; bands: from the median to the worst of them.</p></section>\n'
        f"{_table(summary_columns(sweep, metrics), lines)}"
        f"<footer>kgctl {__version__}, digest <code>{digest_of_rows(rows)}</code></footer>\n"
    )
    script = resources.files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    return page(title, __version__, main, chart_scripts({"chart": chart(sweep, lines, metrics)}, script))


def chart(sweep: Sweep, lines: Iterable[dict[str, Cell]], metrics: Sequence[str]) -> dict[str, Any]:
    """The figure: one chart below the other, the same parameter along all, a colour for each combination of the others."""
    names = RowLayout(sweep).parameters
    x = _along(sweep, names)
    others = [name for name in names if name != x]
    values = [_point(line, x, others) for line in lines]
    is_number = all(isinstance(value["x"], int | float) for value in values)
    return {
        "$schema": SCHEMA,
        "data": {"values": values},
        "vconcat": [_chart_of(name, x, is_number=is_number) for name in metrics],
        "spacing": 18,
        "config": config(),
    }


def _along(sweep: Sweep, names: Sequence[str]) -> str:
    """The column that all charts have along: the one that the file asks for, or the one with the most values."""
    for axis, name in zip(sweep.axes, names, strict=True):
        if axis.path == sweep.along:
            return name
    along = max(range(len(names)), key=lambda place: len(sweep.axes[place].values), default=None)
    return "variant" if along is None else names[along]


def _point(line: dict[str, Cell], x: str, others: Sequence[str]) -> dict[str, Any]:
    series = [str(line["variant"])] if x != "variant" and line.get("variant") else []
    series += [f"{_short(name)} {line[name]}" for name in others]
    figures = {key: value for key, value in line.items() if key.rpartition("_")[2] in STATISTICS}
    counts = {name: line[name] for name in ("runs", "errors", "failed")}
    return {"x": line.get(x, "all runs"), "series": ", ".join(series) or "all runs", **counts, **figures}


def _chart_of(name: str, x: str, *, is_number: bool) -> dict[str, Any]:
    across: dict[str, Any] = {"field": "x", "title": x, "type": "quantitative" if is_number else "ordinal"}
    across |= {"scale": {"zero": False}} if is_number else {"sort": None, "axis": {"labelAngle": 0}}
    legend = {"labelLimit": 0, "symbolOpacity": 1, "symbolStrokeWidth": 0}
    color = {"field": "series", "type": "nominal", "title": None, "sort": None, "legend": legend}
    unit = metric_kinds()[name.partition("(")[0]].unit.name
    up = {"field": _field(f"{name}_median"), "type": "quantitative", "title": f"{name} ({unit})"}
    lines = [*(("series", "nominal"), ("x", "nominal")), *((f"{name}_{key}", "quantitative") for key in STATISTICS)]
    lines += [("runs", "quantitative"), ("errors", "quantitative"), ("failed", "quantitative")]
    hints = [{"field": _field(field), "type": kind, "title": x if field == "x" else field} for field, kind in lines]
    return {
        "height": 220,
        "encoding": {"x": across, "color": color},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"y": up, "y2": {"field": _field(f"{name}_max")}}},
            {"mark": {"type": "line", "point": {"size": 50}}, "encoding": {"y": up, "tooltip": hints}},
        ],
    }


def _field(name: str) -> str:
    """A field by this name: in Vega's own words a dot or a bracket leads into what the field holds."""
    return re.sub(r"([.\[\]\\'\"])", r"\\\1", name)


def _short(path: str) -> str:
    """``session.timeout.ms`` of ``group.config.session.timeout.ms``, ``app.count`` of ``members.app.count``."""
    _, found, setting = path.partition(".config.")
    return setting if found else ".".join(path.split(".")[-2:])


def _what(sweep: Sweep, rows: Sequence[RunRow]) -> str:
    grid = " x ".join(f"{len(axis.values)} {axis.path}" for axis in sweep.axes) or "no parameters"
    broken = sum(row.error is not None for row in rows)
    failed = sum(bool(row.expectations_failed) for row in rows)
    return f"{len(rows):,} runs over {grid}: {broken:,} without a result, {failed:,} with expectations that did not hold"


def _table(columns: Sequence[str], lines: Iterable[dict[str, Cell]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(_cell(line[name]) for name in columns)}</tr>" for line in lines)
    scrolls = '<div style="overflow-x: auto">'
    return f"<section><h2>Summary</h2>{scrolls}<table><tr>{head}</tr>{body}</table></div></section>\n"


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    return f'<td class="figure">{"-" if value is None else f"{value:,}"}</td>'
