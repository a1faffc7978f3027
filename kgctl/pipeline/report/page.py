"""The page: an overview of all groups, the figures of those that are drawn, and their resets with the way to undo them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

from kgctl.charts.page import chart_scripts, page
from kgctl.pipeline.report.charts import chart
from kgctl.pipeline.report.figures import Figures, as_data
from kgctl.pipeline.report.overview import GroupOverview

_FIGURE = Template("""\
<section>
<p><label>Group <select id="group">$choices</select></label></p>
<div id="figure" role="img" aria-label="health, rebalances, resets, members, lag and commit rate over time"></div>
<p class="note" id="notes"></p>
<p class="note">Drag to move, turn the wheel to zoom, double-click to go back.</p>
</section>
""")
_COLUMNS = ("group", "worst status", "rebalances", "their time", "resets", "commits", "highest lag", "in time")


@dataclass(frozen=True, slots=True)
class Content:
    """What a page is made of. Times are texts, except ``from_ms`` and ``to_ms``; ``notes`` are said under the overview."""

    cluster: str
    kgctl: str
    span: str
    from_ms: int
    to_ms: int
    overview: Sequence[GroupOverview]
    figures: Sequence[Figures]
    resets: Sequence[tuple[str, str, str]]
    notes: Sequence[str]


def html_page(content: Content) -> str:
    """The whole file. Raises `kgctl.errors.UsageError` where the extra ``html`` is not installed.

    The same content, kgctl and library give the same bytes.
    """
    names = [each.group for each in content.figures]
    title = f"History of {names[0]}" if len(content.overview) == 1 and names else "History of groups"
    main = Template(_file("page.html")).substitute(
        title=escape(title),
        span=escape(content.span),
        cluster=escape(content.cluster),
        heading=f"{len(content.overview)} group{'s' if len(content.overview) != 1 else ''}",
        overview=_overview(content.overview),
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in content.notes),
        figure=_FIGURE.substitute(choices=_choices(names)) if names else "",
        resets=_resets(content.resets),
        kgctl=escape(content.kgctl),
    )
    data = {"from": content.from_ms, "to": content.to_ms, "groups": [as_data(each) for each in content.figures]}
    scripts = chart_scripts({"data": data, "chart": chart()}, _file("page.js")) if names else ""
    return page(f"{title} - kgctl history", content.kgctl, main, scripts)


def undo_command(group: str, before: str) -> str:
    """The command line that brings back what a group had committed at ``before``."""
    return shlex.join(["kgctl", "reset-offsets", group, "--to-history", before])


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _choices(names: Iterable[str]) -> str:
    return "".join(f"<option>{escape(name)}</option>" for name in names)


def _overview(groups: Sequence[GroupOverview]) -> str:
    rows = [
        (
            ("", each.group),
            ("", each.status or "-"),
            ("figure", _number(each.rebalances)),
            ("figure", _seconds(each.rebalance_ms)),
            ("figure", _number(each.resets)),
            ("figure", _number(each.commits)),
            ("figure", _number(each.max_lag)),
            ("figure", _seconds(each.max_lag_ms)),
        )
        for each in groups
    ]
    head = _cells("th", [("" if i < 2 else "figure", name) for i, name in enumerate(_COLUMNS)])
    return f"<tr>{head}</tr>" + "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)


def _resets(resets: Sequence[tuple[str, str, str]]) -> str:
    """Time, text, and the command that undoes it."""
    if not resets:
        return ""
    rows = "".join(
        f"<tr>{_cells('td', [('figure', at), ('', what)])}<td><code>{escape(undo)}</code></td></tr>" for at, what, undo in resets
    )
    head = "<tr><th>time</th><th>reset</th><th>to undo it</th></tr>"
    return f"<section><h2>Resets</h2><table>{head}{rows}</table></section>\n"


def _cells(tag: str, cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<{tag} class="{css}">{escape(text)}</{tag}>' for css, text in cells)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _seconds(value_ms: int | None) -> str:
    return "-" if value_ms is None else f"{value_ms / 1000:,.1f} s"
