"""The page: its frame with the tables, the data, and the scripts, put together as one text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from kgctl.charts.page import chart_scripts, page
from kgctl.simulate.report.html.charts import chart
from kgctl.simulate.report.html.data import page_data
from kgctl.simulate.report.tables import column_names, metric_rows, notes, replays, seeds_note, verdicts
from kgctl.simulate.report.view import Outcome

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
    main = Template(_file("page.html")).substitute(
        scenario=escape(outcome.scenario),
        question=escape(outcome.question),
        kgctl=escape(outcome.kgctl),
        seeds=escape(_seeds(outcome.seeds)),
        digest=escape(outcome.digest),
        badge=_badge(outcome),
        metrics=_metrics(outcome),
        verdicts=_verdicts(outcome),
        figure=_FIGURE.substitute(choices=_choices(data["variants"])) if drawn else "",
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
    return f"<section><h2>Variants, {escape(seeds_note(outcome))}</h2><table>{_rows([head, *rows])}</table></section>\n"


def _verdicts(outcome: Outcome) -> str:
    rows = [
        f'<td><span class="badge {each.word.lower()}">{each.word}</span></td>'
        f'<td><code>{escape(each.check)}</code></td><td class="hint">{escape(each.detail)}</td>'
        for each in verdicts(outcome)
    ]
    below = "".join(f'<p class="note">{escape(text)}</p>' for text in notes(outcome))
    commands = "".join(f"<pre><code>{escape(text)}</code></pre>" for text in replays(outcome))
    if not rows:
        return below
    return f"<section><h2>Expectations</h2><table>{_rows(rows)}</table>{below}{commands}</section>\n"


def _rows(rows: Iterable[str]) -> str:
    return "".join(f"<tr>{row}</tr>" for row in rows)


def _tag(tag: str, cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<{tag} class="{css}">{escape(text)}</{tag}>' for css, text in cells)


def _choices(names: Iterable[str]) -> str:
    return "".join(
        f'<label><input type="radio" name="variant" value="{escape(name)}"{" checked" * (not i)}>{escape(name)}</label>'
        for i, name in enumerate(names)
    )
