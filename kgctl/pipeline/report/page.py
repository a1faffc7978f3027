"""The page: an overview of all groups, the figures of those that are drawn, and their resets with the way to undo them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from urllib.parse import urlencode

from kgctl.charts.page import chart_scripts, page
from kgctl.pipeline.report.charts import chart
from kgctl.pipeline.report.figures import Figures, as_data
from kgctl.pipeline.report.overview import GroupOverview

_FIGURE = Template("""\
<section id="charts">
<p class="onscreen"><label>Group <select id="group">$choices</select></label>
<label>Topic <select id="topic"></select></label> <a href="" id="here">link to this</a></p>
<h2 id="shown"></h2>
<div id="figure" role="img" aria-label="health, rebalances, resets, members, lag and commit rate over time"></div>
<p class="note" id="notes"></p>
<p class="note onscreen">Drag to move, turn the wheel to zoom, double-click to go back. A reset leads to its row.</p>
</section>
""")
_COLUMNS = ("group", "worst status", "rebalances", "their time", "resets", "commits", "highest lag", "in time")


@dataclass(frozen=True, slots=True)
class ListedReset:
    """A row of the list of resets. ``row_id`` names it on the page, ``undo`` is the command that undoes it."""

    row_id: str
    cluster: str
    group: str
    at_ms: int
    at: str
    text: str
    undo: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a page is made of. Times are texts, except ``from_ms`` and ``to_ms``; ``notes`` are said under the overview."""

    clusters: Sequence[str]
    kgctl: str
    span: str
    from_ms: int
    to_ms: int
    overview: Sequence[GroupOverview]
    figures: Sequence[Figures]
    resets: Sequence[ListedReset]
    notes: Sequence[str]


def html_page(content: Content) -> str:
    """The whole file. Raises `kgctl.errors.UsageError` where the extra ``html`` is not installed.

    The same content, kgctl and library give the same bytes.
    """
    is_of_several = len(content.clusters) > 1
    names = [_shown(each.cluster if is_of_several else "", each.group) for each in content.figures]
    title = f"History of {names[0]}" if len(content.overview) == 1 and names else "History of groups"
    drawn = {(each.cluster, each.group) for each in content.figures}
    main = Template(_file("page.html")).substitute(
        title=escape(title),
        span=escape(content.span),
        clusters=escape(f"cluster{'s' if is_of_several else ''} {', '.join(content.clusters)}"),
        heading=f"{len(content.overview)} group{'s' if len(content.overview) != 1 else ''}",
        overview=_overview(content.overview, drawn, is_of_several=is_of_several),
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in content.notes),
        figure=_FIGURE.substitute(choices=_choices(names)) if names else "",
        resets=_resets(content.resets, is_of_several=is_of_several),
        links=_links(has_charts=bool(names), has_resets=bool(content.resets)),
        kgctl=escape(content.kgctl),
    )
    data = {"from": content.from_ms, "to": content.to_ms, "groups": [as_data(each) for each in content.figures]}
    scripts = chart_scripts({"data": data, "chart": chart()}, _file("page.js")) if names else ""
    return page(f"{title} - kgctl history", content.kgctl, main, scripts)


def undo_command(group: str, before: str, cluster: str | None = None) -> str:
    """The command line that brings back what a group had committed at ``before``; ``cluster``: where there are several."""
    words = ["kgctl", "reset-offsets", group, "--to-history", before]
    return shlex.join(words if cluster is None else [*words, "--history-cluster", cluster])


def link_to(cluster: str, group: str, *, from_ms: int | None = None, to_ms: int | None = None) -> str:
    """Where the page shows a group, and of it a stretch of time: what stands behind ``#`` in its address."""
    parts = {"cluster": cluster, "group": group}
    if from_ms is not None and to_ms is not None:
        parts |= {"from": str(from_ms), "to": str(to_ms)}
    return "#" + urlencode(parts)


def _shown(cluster: str, group: str) -> str:
    return f"{cluster} / {group}" if cluster else group


def _links(*, has_charts: bool, has_resets: bool) -> str:
    there = {"groups": "groups", **({"charts": "charts"} if has_charts else {}), **({"resets": "resets"} if has_resets else {})}
    return "".join(f'<a href="#{name}">{text}</a>' for name, text in there.items())


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _choices(names: Iterable[str]) -> str:
    return "".join(f"<option>{escape(name)}</option>" for name in names)


def _overview(groups: Sequence[GroupOverview], drawn: Set[tuple[str, str]], *, is_of_several: bool) -> str:
    rows = []
    for each in groups:
        name = escape(each.group)
        if (each.cluster, each.group) in drawn:
            name = f'<a href="{escape(link_to(each.cluster, each.group))}">{name}</a>'
        cluster = f"<td>{escape(each.cluster)}</td>" if is_of_several else ""
        rows.append(f"<tr>{cluster}<td>{name}</td>{_cells('td', _facts(each))}</tr>")
    columns = ["cluster", *_COLUMNS] if is_of_several else _COLUMNS
    head = _cells("th", [("" if name in ("cluster", "group", "worst status") else "figure", name) for name in columns])
    return f"<thead><tr>{head}</tr></thead><tbody>" + "".join(rows) + "</tbody>"


def _facts(each: GroupOverview) -> list[tuple[str, str]]:
    return [
        ("", each.status or "-"),
        ("figure", _number(each.rebalances)),
        ("figure", _seconds(each.rebalance_ms)),
        ("figure", _number(each.resets)),
        ("figure", _number(each.commits)),
        ("figure", _number(each.max_lag)),
        ("figure", _seconds(each.max_lag_ms)),
    ]


_AROUND_MS = 30 * 60_000
"""Before and after a reset: what its row leads to in the charts."""


def _resets(resets: Sequence[ListedReset], *, is_of_several: bool) -> str:
    """Time, which leads to the charts around it, text, and the command that undoes it."""
    if not resets:
        return ""
    head = "<thead><tr><th>time</th><th>reset</th><th>to undo it</th></tr></thead>"
    rows = "".join(_reset(each, _shown(each.cluster if is_of_several else "", each.group)) for each in resets)
    return f'<section id="resets"><h2>Resets</h2><table>{head}<tbody>{rows}</tbody></table></section>\n'


def _reset(each: ListedReset, name: str) -> str:
    link = link_to(each.cluster, each.group, from_ms=each.at_ms - _AROUND_MS, to_ms=each.at_ms + _AROUND_MS)
    return (
        f'<tr id="{escape(each.row_id)}"><td class="figure"><a href="{escape(link)}">{escape(each.at)}</a></td>'
        f"{_cells('td', [('', f'{name}: {each.text}')])}<td><code>{escape(each.undo)}</code></td></tr>"
    )


def _cells(tag: str, cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<{tag} class="{css}">{escape(text)}</{tag}>' for css, text in cells)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _seconds(value_ms: int | None) -> str:
    return "-" if value_ms is None else f"{value_ms / 1000:,.1f} s"
