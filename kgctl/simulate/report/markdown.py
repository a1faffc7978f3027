"""The summary for a pull request, in GitHub's Markdown: goes into a comment or ``$GITHUB_STEP_SUMMARY``."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.simulate.report.tables import column_names, metric_rows, notes, replays, seeds_note, verdicts
from kgctl.simulate.report.view import Outcome

_SIGNS = {"PASS": "✅", "WARN": "⚠️", "FAIL": "❌"}


def markdown_text(outcome: Outcome) -> str:
    """One section: heading, question, the variants side by side, the verdicts, and the commands that replay failures."""
    blocks = [f"### {_sign(outcome)} {_plain(outcome.scenario)}"]
    if outcome.question:
        blocks.append(_plain(outcome.question))
    blocks += _metrics(outcome)
    blocks += _verdicts(outcome)
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


def _verdicts(outcome: Outcome) -> list[str]:
    lines = [_line([_SIGNS[each.word], _code(each.check), each.detail]) for each in verdicts(outcome)]
    return ["\n".join([_line(["", "expectation", "observed"]), _line(["---"] * 3), *lines])] if lines else []


def _commands(commands: Sequence[str]) -> list[str]:
    return ["Replay:\n\n```console\n" + "\n".join(commands) + "\n```"] if commands else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if cell.startswith("<code>") else _plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~#" else letter for letter in text)


def _code(text: str) -> str:
    """Code in a table's cell: as HTML, where a bar needs no quoting rule of its own."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return f"<code>{' '.join(escaped.split())}</code>"
