"""One HTML file: what happened over time, then what was expected and why it failed, the figures, and single partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from kgctl.charts.page import chart_scripts, page
from kgctl.simulate.report import charts
from kgctl.simulate.report.outcome import Outcome, RunPicture
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
from kgctl.simulate.report.text import natural


def page_data(outcome: Outcome) -> dict[str, Any]:
    """``{"variants": {name: picture}}``, only of variants that have one."""
    failed = {each.variant for each in outcome.failures}
    variants = sorted(outcome.variants.items(), key=lambda entry: entry[0] not in failed)  # what failed is seen first
    pictures = {name: each.picture for name, each in variants if each.picture is not None}
    if outcome.measured is not None:
        played = {f"{name}, played": each.picture for name, each in outcome.measured.variants.items()}
        pictures |= {name: picture for name, picture in played.items() if picture is not None}
    return {"variants": {name: _picture(picture) for name, picture in pictures.items()}}


def _picture(picture: RunPicture) -> dict[str, Any]:
    lanes, left_out = charts.drawn_lanes(picture)
    owners = sorted({owner for lane in lanes for each in lane.segments for owner in each.owners}, key=natural)
    owner_index = {owner: i for i, owner in enumerate(owners)}
    counts = charts.without_consumer(picture.lanes, picture.from_us, picture.to_us)
    causes = [cause for cause in charts.COLORS if any(cause in now for _, now in counts)]
    how = ["", *sorted({each.cause for lane in lanes for each in lane.segments} - {""})]
    return {
        "seed": picture.seed,
        "caption": picture.caption,
        "from": picture.from_us,
        "to": picture.to_us,
        "causes": [[cause, charts.COLORS[cause]] for cause in causes],
        "gone": [[at_us, *(now[cause] for cause in causes)] for at_us, now in charts.in_columns(counts, picture.to_us)],
        "steps": [
            [step.text, step.at_us, end_us, *(spent[cause] for cause in causes)]
            for step, end_us, spent in charts.costs(counts, picture.steps, picture.to_us)
        ],
        "generations": [list(point) for point in picture.generations],
        "lanes": [lane.name for lane in lanes],
        "left_out": left_out,
        "whole": len(picture.lanes) - len(lanes) - left_out,
        "owners": owners,
        "how": how,
        "segments": [
            [number, each.from_us, each.to_us, how.index(each.cause), *(owner_index[owner] for owner in each.owners)]
            for number, lane in enumerate(lanes)
            for each in lane.segments
            if each.to_us > each.from_us
        ],
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
<div id="figure" role="img" aria-label="partitions that nobody consumed, by cause, lag and generation, over time"></div>
<p class="note"><span id="drawn"></span>.
<span class="onscreen">Drag to move, turn the wheel to zoom, double-click to go back.</span></p>
</section>
""")
_LANES = """\
<section>
<h2>Partitions that were without a consumer</h2>
<div id="lanes" role="img" aria-label="who consumed which partition when"></div>
<div id="legend"></div>
<p class="note" id="left-out"></p>
</section>
"""


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
        figure=figure,
        verdicts=_verdicts(outcome) + _stories(outcome),
        metrics=_metrics(outcome),
        lanes=_LANES if drawn else "",
        assumptions=_assumptions(outcome),
    )
    scripts = (
        chart_scripts({"data": data, "chart": charts.over_time(), "lane-chart": charts.lanes()}, _file("page.js"))
        if drawn
        else ""
    )
    return page(f"{outcome.scenario} - kgctl simulate", outcome.kgctl, main, scripts)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _seeds(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}..{seeds[-1]}" if len(seeds) > 1 and seeds[-1] - seeds[0] == len(seeds) - 1 else ", ".join(map(str, seeds))


def _badge(outcome: Outcome) -> str:
    if outcome.failures:
        word, text = "fail", f"{len(outcome.failures)} FAILED"
    else:
        word, text = ("fail", "STOPPED") if outcome.stopped else ("warn", "WARN") if outcome.warnings else ("pass", "PASS")
    return f'<span class="badge {word}">{text}</span>' if outcome.expectations or outcome.stopped else ""


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
        if len(each.why) > 1
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
