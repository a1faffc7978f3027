"""The page: an overview of all groups, the figures of those that are drawn, when they were behind and what happened as that
began, and their resets with the way to undo them.

``charts.yaml`` has the charts as Vega-Lite; ``page.js`` fills in data and sizes under the names of the views.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from kgctl import __version__
from kgctl.charts.page import ALARM, DARK, SCHEMA, chart_scripts, charts, config, page
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.causes import MOST, worst
from kgctl.pipeline.answers.series import RESETS, Row, flooded, rows_between
from kgctl.pipeline.report.figures import Figures, GroupOverview, as_data, figures, overview, reset_id, reset_text, worst_first

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History


def chart() -> dict[str, Any]:
    """The whole figure: ``charts.yaml`` in the colours of the page."""
    return {"$schema": SCHEMA, **charts(__package__, alarm=ALARM, dark=DARK), "config": config()}


_FIGURE = Template("""\
<section id="charts">
<p class="onscreen"><label>Group <select id="group">$choices</select></label>
<label>Topic <select id="topic"></select></label> <a href="" id="here">link to this</a></p>
<h2 id="shown"></h2>
<div id="figure" role="img" aria-label="health, rebalances, resets, changes, members, lag and commit rate over time"></div>
<p class="note" id="notes"></p>
<p class="note onscreen">Drag to move, turn the wheel to zoom, double-click to go back. A reset leads to its row.</p>
</section>
""")
_COLUMNS = ("group", "worst status", "rebalances", "their time", "resets", "commits", "highest lag", "in time")


@frozen_in_order
class ListedReset:
    """A row of the list of resets. ``row_id`` names it on the page, ``undo`` is the command that undoes it."""

    row_id: str
    cluster: str
    group: str
    at_ms: int
    at: str
    text: str
    undo: str


@frozen_in_order
class ListedSpell:
    """A row of the list of stretches in which a group was behind. ``said`` is what may have caused it, or why none is named."""

    cluster: str
    group: str
    from_ms: int
    to_ms: int
    at: str
    text: str
    said: Sequence[str]


@frozen_in_order
class Content:
    """What a page is made of. Times are texts, except ``from_ms`` and ``to_ms``; ``notes`` are said under the overview."""

    clusters: Sequence[str]
    kgctl: str
    span: str
    from_ms: int
    to_ms: int
    overview: Sequence[GroupOverview]
    figures: Sequence[Figures]
    spells: Sequence[ListedSpell]
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
        span=_text(content.span),
        clusters=_text(f"cluster{'s' if is_of_several else ''} {', '.join(content.clusters)}"),
        heading=f"{len(content.overview)} group{'s' if len(content.overview) != 1 else ''}",
        overview=_overview(content.overview, drawn, is_of_several=is_of_several),
        notes="".join(f'<p class="note">{_text(note)}</p>' for note in content.notes),
        figure=_FIGURE.substitute(choices=_choices(names)) if names else "",
        spells=_spells(content.spells, is_of_several=is_of_several),
        resets=_resets(content.resets, drawn, is_of_several=is_of_several),
        links=_links({"groups": True, "charts": bool(names), "behind": bool(content.spells), "resets": bool(content.resets)}),
        kgctl=escape(content.kgctl),
    )
    data = {"from": content.from_ms, "to": content.to_ms, "groups": [as_data(each) for each in content.figures]}
    scripts = chart_scripts({"data": data, "chart": chart()}, _file("page.js")) if names else ""
    return page(f"{title} - kgctl history", content.kgctl, main, scripts)


def undo_command(group: str, before: str, cluster: str | None = None) -> str:
    """The command line that brings back what a group had committed at ``before``; ``cluster``: where there are several."""
    words = ["kgctl", "reset-offsets", group, "--to-history", before]
    return _typed(words if cluster is None else [*words, "--history-cluster", cluster])


def _typed(words: Sequence[str]) -> str:
    """Return a command line, as bash takes it, in which nothing is hidden."""
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_visible(quoted)}'"


def _visible(text: str) -> str:
    """The text with what cannot be seen, or turns the direction of what follows, written as an escape."""
    if text.isprintable():
        return text
    codes = ((char, ord(char)) for char in text)
    return "".join(char if char.isprintable() else f"\\u{at:04x}" if at < 1 << 16 else f"\\U{at:08x}" for char, at in codes)


def _text(text: str) -> str:
    return escape(_visible(text))


def link_to(cluster: str, group: str, *, from_ms: int | None = None, to_ms: int | None = None) -> str:
    """Where the page shows a group, and of it a stretch of time: what stands behind ``#`` in its address."""
    parts = {"cluster": cluster, "group": group}
    if from_ms is not None and to_ms is not None:
        parts |= {"from": str(from_ms), "to": str(to_ms)}
    return "#" + urlencode(parts)


def _shown(cluster: str, group: str) -> str:
    return f"{cluster} / {group}" if cluster else group


def _links(sections: Mapping[str, bool]) -> str:
    return "".join(f'<a href="#{name}">{name}</a>' for name, is_there in sections.items() if is_there)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _choices(names: Iterable[str]) -> str:
    return "".join(f"<option>{_text(name)}</option>" for name in names)


def _overview(groups: Sequence[GroupOverview], drawn: Set[tuple[str, str]], *, is_of_several: bool) -> str:
    rows = []
    for each in groups:
        name = _text(each.group)
        if (each.cluster, each.group) in drawn:
            name = f'<a href="{escape(link_to(each.cluster, each.group))}">{name}</a>'
        cluster = f"<td>{_text(each.cluster)}</td>" if is_of_several else ""
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


def _spells(spells: Sequence[ListedSpell], *, is_of_several: bool) -> str:
    """Time, which leads to the charts around it, how far behind, and what happened as it began."""
    if not spells:
        return ""
    head = "<thead><tr><th>behind from</th><th>how far</th><th>likely causes: what the log shows as it began</th></tr></thead>"
    rows = []
    for each in spells:
        link = link_to(each.cluster, each.group, from_ms=each.from_ms - _AROUND_MS, to_ms=each.to_ms + _AROUND_MS)
        said = "<br>".join(_text(one) for one in each.said)
        name = _shown(each.cluster if is_of_several else "", each.group)
        at = f'<td class="figure"><a href="{escape(link)}">{_text(each.at)}</a></td>'
        rows.append(f"<tr>{at}<td>{_text(f'{name}: {each.text}')}</td><td>{said}</td></tr>")
    body = "".join(rows)
    return f'<section id="behind"><h2>When groups were behind</h2><table>{head}<tbody>{body}</tbody></table></section>\n'


def _resets(resets: Sequence[ListedReset], drawn: Set[tuple[str, str]], *, is_of_several: bool) -> str:
    """Time, which leads to the charts around it where there are such, text, and the command that undoes it."""
    if not resets:
        return ""
    head = "<thead><tr><th>time</th><th>reset</th><th>to undo it</th></tr></thead>"
    rows = "".join(
        _reset(each, _shown(each.cluster if is_of_several else "", each.group), is_drawn=(each.cluster, each.group) in drawn)
        for each in resets
    )
    return f'<section id="resets"><h2>Resets</h2><table>{head}<tbody>{rows}</tbody></table></section>\n'


def _reset(each: ListedReset, name: str, *, is_drawn: bool) -> str:
    link = link_to(each.cluster, each.group, from_ms=each.at_ms - _AROUND_MS, to_ms=each.at_ms + _AROUND_MS)
    at = f'<a href="{escape(link)}">{_text(each.at)}</a>' if is_drawn else _text(each.at)
    return (
        f'<tr id="{escape(each.row_id)}"><td class="figure">{at}</td>'
        f"{_cells('td', [('', f'{name}: {each.text}')])}<td><code>{_text(each.undo)}</code></td></tr>"
    )


def _cells(tag: str, cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<{tag} class="{css}">{_text(text)}</{tag}>' for css, text in cells)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _seconds(value_ms: int | None) -> str:
    return "-" if value_ms is None else f"{value_ms / 1000:,.1f} s"


MOST_GROUPS = 40
"""Groups with charts of their own. A page with more of them takes a browser too long."""
MOST_ROWS = 1000
MOST_RESETS = 200
"""Of one group."""


@frozen_in_order
class Asked:
    """A cluster's history and the groups of it that are wanted; None: all."""

    history: History
    groups: Sequence[str] | None = None


def content(asked: Sequence[Asked], from_ms: int, to_ms: int, when: Callable[[int], str]) -> Content:
    """Of these groups of one cluster or several, from ``from_ms`` on and before ``to_ms``; ``when`` writes a time down.

    Of very many groups those are drawn that were worst: most resets, then the worst status, most rebalances, the highest lag.
    """
    found = worst_first([each for one in asked for each in _overview_of(one, from_ms, to_ms)])
    histories = {one.history.cluster: one.history for one in asked}
    drawn = [figures(histories[each.cluster], each.group, from_ms, to_ms) for each in found[:MOST_GROUPS]]
    everywhere = [each for one in asked for each in _resets_of(one, found, from_ms, to_ms)]
    resets, notes = _listed(everywhere, when, is_of_several=len(asked) > 1)
    behind = [_listed_spells(each, to_ms, when) for each in drawn]
    return Content(
        clusters=list(histories),
        kgctl=__version__,
        span=f"{when(from_ms)} to {when(to_ms - 1)}",
        from_ms=from_ms,
        to_ms=to_ms,
        overview=found[:MOST_ROWS],
        figures=drawn,
        spells=sorted((each for some in behind for each in some), key=lambda each: each.from_ms),
        resets=resets,
        notes=[
            *_left_out(found, len(drawn)),
            *(_spells_left_out(each) for each in drawn if len(each.spells) > MOST),
            *notes,
        ],
    )


def _overview_of(asked: Asked, from_ms: int, to_ms: int) -> list[GroupOverview]:
    found = overview(asked.history, asked.groups, from_ms, to_ms)
    there = {each.group for each in found}
    return found + [_idle(asked.history.cluster, group) for group in asked.groups or () if group not in there]


def _idle(cluster: str, group: str) -> GroupOverview:
    """One of which nothing is known in that time, and that was asked for by name."""
    return GroupOverview(group, None, 0, None, 0, 0, None, None, cluster)


def _left_out(found: Sequence[GroupOverview], drawn: int) -> list[str]:
    notes = []
    if drawn < len(found):
        notes.append(f"Charts are there for {drawn} of {len(found)} groups, those that were worst; --group chooses others.")
    if len(found) > MOST_ROWS:
        notes.append(f"The {MOST_ROWS} groups that were worst are listed, of {len(found)}.")
    return notes


def _spells_left_out(each: Figures) -> str:
    return f"Of {each.group} the {MOST} stretches furthest behind are listed, of {len(each.spells)}."


def _listed_spells(figures: Figures, to_ms: int, when: Callable[[int], str]) -> Iterator[ListedSpell]:
    for each in worst(figures.spells):
        lasted = "still is" if each.to_ms is None else f"for {_seconds(each.to_ms - each.from_ms)}"
        lasted += "" if each.is_end_known else ", then it is not known"
        far = [f"{_number(each.max_lag)} records of one partition", f"{_seconds(each.max_lag_ms)}", lasted]
        said = [f"{when(cause.at_ms)} {cause.text}" for cause in each.causes] or ([] if each.doubt else [NOTHING])
        end = to_ms if each.to_ms is None else each.to_ms
        at = when(each.from_ms)
        yield ListedSpell(
            figures.cluster, each.group, each.from_ms, end, at, ", ".join(far), (*said, *filter(None, [each.doubt]))
        )


NOTHING = "nothing: no reset, no rebalance and no change of settings that it would show"
"""What is said where nothing in the log may have caused it, and nothing of the log is missing."""


def _resets_of(asked: Asked, found: Sequence[GroupOverview], from_ms: int, to_ms: int) -> list[tuple[str, Row]]:
    """All resets of these groups, drawn or not, with their cluster."""
    cluster = asked.history.cluster
    groups = [each.group for each in found if each.cluster == cluster and each.resets]
    rows = flooded(rows_between(asked.history, RESETS, groups, from_ms, to_ms)) if groups else []
    return [(cluster, row) for row in rows]


def _listed(
    found: Sequence[tuple[str, Row]], when: Callable[[int], str], *, is_of_several: bool = False
) -> tuple[list[ListedReset], list[str]]:
    """The last ones of each group, by time, so that a flood in one group leaves those of the others on the page."""
    by_group: dict[tuple[str, str], list[Row]] = {}
    for cluster, row in found:
        by_group.setdefault((cluster, row["group"]), []).append(row)
    notes, kept = [], []
    for (cluster, group), rows in by_group.items():
        rows.sort(key=lambda row: (row["time_ms"], row["log_offset"]))
        kept += [(row["time_ms"], cluster, group, row["log_offset"], row) for row in rows[-MOST_RESETS:]]
        if len(rows) > MOST_RESETS:
            words = ["kgctl", "history", "resets", group, *(["--cluster", cluster] if is_of_several else [])]
            notes.append(
                f"Of {_shown(cluster if is_of_several else '', group)} the last {MOST_RESETS} of {len(rows)} resets are listed; "
                f"all of them: {_typed(words)}"
            )
    kept.sort(key=lambda one: one[:4])
    if len(kept) > MOST_ROWS:
        notes.append(f"The last {MOST_ROWS} of these {len(kept)} resets are listed.")
    listed = [
        ListedReset(
            reset_id(cluster, row),
            cluster,
            group,
            at_ms,
            when(at_ms),
            reset_text(row),
            undo_command(group, when(at_ms - 1), cluster if is_of_several else None),
        )
        for at_ms, cluster, group, _, row in kept[-MOST_ROWS:]
    ]
    return listed, notes
