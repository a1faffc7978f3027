"""The summary of a run in a terminal: the question, the variants side by side, the verdicts, how to run a failure again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgctl.simulate.report.tables import MetricRow, Verdict, column_names, metric_rows, notes, replays, seeds_note, verdicts
from kgctl.simulate.report.view import Outcome

TITLE, HEAD, ROW, PASS, WARN, FAIL, NOTE, REPLAY = "title", "head", "row", "pass", "warn", "fail", "note", "replay"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text. ``kind`` (one of the names above) is for whoever has colours."""

    text: str
    kind: str


def summary_lines(outcome: Outcome, width: int = 100, gantt: Sequence[str] = ()) -> list[Line]:
    """The whole summary. Lines are not cut: ``width`` (columns) only decides whether hints and details fit beside the figures.

    ``gantt`` is drawn between the verdicts and the notes. The last lines are commands that replay what failed.
    """
    lines = [Line(f"{outcome.scenario}   {outcome.question}".rstrip(), TITLE)]
    lines += _table(outcome, metric_rows(outcome), width)
    lines += _verdict_lines(verdicts(outcome), width)
    lines += [Line(text, NOTE) for text in (*gantt, *notes(outcome))]
    return lines + [Line(f"replay: {text}", REPLAY) for text in replays(outcome)]


def summary_text(outcome: Outcome, width: int = 100, gantt: Sequence[str] = ()) -> str:
    """`summary_lines` without colours, with a newline at the end."""
    return "".join(f"{line.text}\n" for line in summary_lines(outcome, width, gantt))


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
