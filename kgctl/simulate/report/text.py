"""The summary of a run in a terminal: the question, the variants side by side, the verdicts, how to run a failure again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgctl.simulate.report.outcome import Outcome
from kgctl.simulate.report.tables import (
    MetricRow,
    Verdict,
    assumption_rows,
    beside_lines,
    column_names,
    metric_rows,
    notes,
    played_verdicts,
    replays,
    seeds_note,
    tables,
    title,
    verdicts,
)

TITLE, HEAD, ROW, PASS, WARN, FAIL, NOTE, REPLAY = "title", "head", "row", "pass", "warn", "fail", "note", "replay"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text. ``kind`` (one of the names above) is for whoever has colours."""

    text: str
    kind: str


def summary_lines(
    outcome: Outcome, width: int = 100, gantt: Sequence[str] = (), *, explains: bool = True, assumes: bool = False
) -> list[Line]:
    """The whole summary. Lines are not cut: ``width`` (columns) only decides whether hints and details fit beside the figures.

    ``gantt`` is drawn between the verdicts and the notes, and the stories of the worst moments after it (``explains``), then what
    the runs assume (``assumes``). The last lines are commands that replay what failed.
    """
    lines = [Line(f"{outcome.scenario}   {outcome.question}".rstrip(), TITLE)]
    lines += _table(outcome, metric_rows(outcome), width)
    lines += [Line(text, ROW) for text in beside_lines(outcome)]
    lines += _verdict_lines([*verdicts(outcome), *played_verdicts(outcome)], width)
    told = (*gantt, *(why_lines(outcome) if explains else ()), *(_assumptions(outcome) if assumes else ()), *notes(outcome))
    lines += [Line(text, NOTE) for text in told]
    return lines + [Line(f"replay: {text}", REPLAY) for text in replays(outcome)]


def _assumptions(outcome: Outcome) -> list[str]:
    rows = assumption_rows(outcome)
    width = max((len(what) for what, _ in rows), default=0)
    return ["", "assumed:", *(f"  {what:<{width}}  {value}" for what, value in rows)] if rows else []


def why_lines(outcome: Outcome) -> list[str]:
    """The stories of the worst moments, a heading before each; nothing where none was asked for."""
    return [
        line for variant in outcome.variants.values() if variant.why for line in ("", f"why: {variant.why[0]}", *variant.why[1:])
    ]


def summary_text(
    outcome: Outcome, width: int = 100, gantt: Sequence[str] = (), *, explains: bool = True, assumes: bool = False
) -> str:
    """`summary_lines` without colours, with a newline at the end."""
    lines = summary_lines(outcome, width, gantt, explains=explains, assumes=assumes)
    return "".join(f"{line.text}\n" for line in lines)


def _table(outcome: Outcome, rows: list[MetricRow], width: int) -> list[Line]:
    if not rows:
        return []
    names = column_names(outcome)
    label_width = max(len(row.label) for row in rows)
    widths = [max(len(name), *(len(row.cells[i]) for row in rows)) for i, name in enumerate(names)]

    def line(label: str, cells: Sequence[str], hint: str) -> str:
        figures = "".join(f"   {cell:>{size}}" for cell, size in zip(cells, widths, strict=True))
        text = f"{label:<{label_width}}{figures}"
        with_hint = f"{text}     {hint}" if hint else text
        return (with_hint if len(with_hint) <= width else text).rstrip()

    note = seeds_note(outcome)
    head = line("", names, note)
    lines = [Line(text, HEAD) for text in ([head] if head.endswith(note) else [note, head]) if text]
    return lines + [Line(line(row.label, row.cells, row.hint), ROW) for row in rows]


def _verdict_lines(found: list[Verdict], width: int) -> list[Line]:
    check_width = min(max((len(each.check) for each in found), default=0), max(width // 2, 20))
    return [Line(f" {each.word} {each.check:<{check_width}}  {each.detail}".rstrip(), each.word.lower()) for each in found]


_SIGNS = {"PASS": "✅", "WARN": "⚠️", "FAIL": "❌"}


def markdown_text(outcome: Outcome) -> str:
    """One section: heading, question, the variants side by side, the verdicts, and the commands that replay failures."""
    blocks = [f"### {_sign(outcome)} {_plain(outcome.scenario)}"]
    if outcome.question:
        blocks.append(_plain(outcome.question))
    blocks += _metrics(outcome)
    blocks += _beside(outcome)
    blocks += _verdicts(outcome)
    blocks += _stories(outcome)
    blocks += _assumed(outcome)
    blocks += map(_plain, notes(outcome))
    blocks += _commands(replays(outcome))
    blocks.append(f"<sub>kgctl {_plain(outcome.kgctl)}, {seeds_note(outcome)}, digest <code>{outcome.digest[:16]}</code></sub>")
    return "\n\n".join(blocks) + "\n"


def _sign(outcome: Outcome) -> str:
    return _SIGNS["FAIL" if outcome.failures else "WARN" if outcome.warnings else "PASS"]


def _metrics(outcome: Outcome) -> list[str]:
    rows = metric_rows(outcome)
    if not rows:
        return []
    names = column_names(outcome)
    hints = any(row.hint for row in rows)
    lines = [_line(["", *names, *[""] * hints]), _line(["---", *["--:"] * len(names), *["---"] * hints])]
    lines += [_line([row.label, *row.cells, *[row.hint] * hints]) for row in rows]
    return ["\n".join(lines)]


def _beside(outcome: Outcome) -> list[str]:
    found = [f"#### {_plain(title(outcome))}"] if title(outcome) else []
    for head, *rows in tables(outcome):
        lines = [_line(head), _line(["---", "--:", "--:", "---"]), *(_line(row) for row in rows)]
        found.append("\n".join(lines))
    return found


def _verdicts(outcome: Outcome) -> list[str]:
    found = [*verdicts(outcome), *played_verdicts(outcome)]
    lines = [_line([_SIGNS[each.word], _code(each.check), each.detail]) for each in found]
    return ["\n".join([_line(["", "expectation", "observed"]), _line(["---"] * 3), *lines])] if lines else []


def _assumed(outcome: Outcome) -> list[str]:
    """What the runs went by, folded."""
    rows = [_line([_plain(what), _plain(value)]) for what, value in assumption_rows(outcome)]
    lines = "\n".join([_line(["what is assumed", "value"]), _line(["---"] * 2), *rows])
    return [f"<details><summary>Assumptions</summary>\n\n{lines}\n\n</details>"] if rows else []


def _stories(outcome: Outcome) -> list[str]:
    """Return each story, folded to a terminal's width."""
    return [
        f"<details><summary>Why? {_plain(variant.why[0])}</summary>\n\n```text\n"
        + "\n".join(variant.why[1:])
        + "\n```\n\n</details>"
        for variant in outcome.variants.values()
        if variant.why
    ]


def _commands(commands: Sequence[str]) -> list[str]:
    return ["Replay:\n\n```console\n" + "\n".join(commands) + "\n```"] if commands else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if cell.startswith("<code>") else _plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Return the text with Markdown's special characters escaped."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~#" else letter for letter in text)


def _code(text: str) -> str:
    """Code in a table's cell: as HTML, where a bar needs no quoting rule of its own."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return f"<code>{' '.join(escaped.split())}</code>"
