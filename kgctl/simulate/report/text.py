"""A run's result as text: the summary of a terminal with its lanes of partitions, Markdown, and JUnit XML.

JUnit's suite is the scenario, a case is one expectation in one variant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_lowercase
from textwrap import wrap
from unicodedata import combining, east_asian_width
from xml.etree import ElementTree as ET

from kgctl.simulate.report.outcome import Expectation, Lane, Outcome, Replicas, RunPicture, Segment, duration, show
from kgctl.simulate.report.tables import (
    CheckVerdict,
    MetricRow,
    assumption_rows,
    beside_lines,
    column_names,
    metric_of,
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


def summary_lines(
    outcome: Outcome, width: int = 100, gantt: Sequence[str] = (), *, explains: bool = True, assumes: bool = False
) -> list[str]:
    """The whole summary, what went wrong unasked first. Lines are not cut: ``width`` (columns) only decides whether hints and
    details fit beside the figures.

    ``gantt`` is drawn between the verdicts and the notes, and the stories of the worst moments after it (``explains``), then what
    the runs assume (``assumes``). The last lines are commands that replay what failed.
    """
    return [
        *(f"FAIL {text}" for text in trouble_lines(outcome)),
        f"{outcome.scenario}   {outcome.question}".rstrip(),
        *_table(outcome, metric_rows(outcome), width),
        *beside_lines(outcome),
        *_verdict_lines([*verdicts(outcome), *played_verdicts(outcome)], width),
        *gantt,
        *(why_lines(outcome) if explains else ()),
        *(_assumptions(outcome) if assumes else ()),
        *notes(outcome),
        *(f"replay: {text}" for text in replays(outcome)),
    ]


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
    """`summary_lines` with a newline after each."""
    lines = summary_lines(outcome, width, gantt, explains=explains, assumes=assumes)
    return "".join(f"{line}\n" for line in lines)


def _table(outcome: Outcome, rows: list[MetricRow], width: int) -> list[str]:
    if not rows:
        return []
    names = column_names(outcome)
    label_width = max(len(row.label) for row in rows)
    widths = [max(_columns_of(name), *(len(row.cells[i]) for row in rows)) for i, name in enumerate(names)]

    def line(label: str, cells: Sequence[str], shown: Sequence[int], hint: str) -> str:
        figures = "".join(f"   {_to_right(cells[i], widths[i])}" for i in shown)
        text = f"{label:<{label_width}}{figures}"
        with_hint = f"{text}     {hint}" if hint else text
        return (with_hint if _columns_of(with_hint) <= width else text).rstrip()

    note, lines = seeds_note(outcome), list[str]()
    for shown in _blocks(widths, width - label_width):
        head = line("", names, shown, note)
        above = ([head] if head.endswith(note) else [note, head]) if not lines else ["", line("", names, shown, "")]
        lines += [text for text in above if text or lines]
        lines += [line(row.label, row.cells, shown, row.hint) for row in rows]
    return lines


def _blocks(widths: Sequence[int], room: int) -> list[range]:
    """Columns that stand beside each other in so much room, block by block; at least one in each."""
    first, used, found = 0, 0, list[range]()
    for place, width in enumerate(widths):
        if place > first and used + width + 3 > room:
            found.append(range(first, place))
            first, used = place, 0
        used += width + 3
    return [*found, range(first, len(widths))]


def _columns_of(text: str) -> int:
    """How many columns a terminal needs for it: two for a wide letter, none for a mark on the one before."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _to_right(text: str, width: int) -> str:
    return " " * (width - _columns_of(text)) + text


def _verdict_lines(found: list[CheckVerdict], width: int) -> list[str]:
    check_width = min(max((_columns_of(each.check) for each in found), default=0), max(width // 2, 20))
    checks = [each.check + " " * (check_width - _columns_of(each.check)) for each in found]
    return [f" {each.word} {check}  {each.detail}".rstrip() for each, check in zip(found, checks, strict=True)]


_SIGNS = {"PASS": "✅", "WARN": "⚠️", "FAIL": "❌"}


def markdown_text(outcome: Outcome) -> str:
    """One section: heading, question, the variants side by side, the verdicts, and the commands that replay failures."""
    first, *others = [*map(_plain, trouble_lines(outcome)), ""]
    blocks = [f"### {_sign(outcome)} {_plain(outcome.scenario)}{f': {first}' if first else ''}"]
    blocks += [f"{_SIGNS['FAIL']} {text}" for text in others if text]
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
    return _SIGNS["FAIL" if outcome.failures or outcome.stopped else "WARN" if outcome.warnings else "PASS"]


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
    rows = [_line([_plain(what), _plain(value)]) for what, value in assumption_rows(outcome)]
    lines = "\n".join([_line(["what is assumed", "value"]), _line(["---"] * 2), *rows])
    return [f"<details><summary>Assumptions</summary>\n\n{lines}\n\n</details>"] if rows else []


def _stories(outcome: Outcome) -> list[str]:
    return [
        f"<details><summary>Why? {_plain(variant.why[0])}</summary>\n\n```text\n"
        + "\n".join(variant.why[1:])
        + "\n```\n\n</details>"
        for variant in outcome.variants.values()
        if len(variant.why) > 1
    ]


def _commands(commands: Sequence[str]) -> list[str]:
    return ["Replay:\n\n```console\n" + "\n".join(commands) + "\n```"] if commands else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell if cell.startswith("<code>") else _plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in "\\`*_[]|~#" else letter for letter in text)


def _code(text: str) -> str:
    """Code in a table's cell: as HTML, where a bar needs no quoting rule of its own."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return f"<code>{' '.join(escaped.split())}</code>"


def worst_lanes(picture: RunPicture, most: int) -> list[Lane]:
    """All lanes; of more than ``most`` those that were longest without a consumer, in their order."""
    if len(picture.lanes) <= most:
        return list(picture.lanes)
    places = sorted(range(len(picture.lanes)), key=lambda i: (-_nobody_us(picture.lanes[i], picture), i))
    return [picture.lanes[place] for place in sorted(places[:most])]


def _nobody_us(lane: Lane, picture: RunPicture) -> int:
    return sum(overlap_us(each, picture.from_us, picture.to_us) for each in lane.segments if not each.owners)


def overlap_us(segment: Segment, from_us: int, to_us: int) -> int:
    """How much of a stretch of time the segment covers."""
    return max(0, min(segment.to_us, to_us) - max(segment.from_us, from_us))


def natural(name: str) -> tuple[str, int]:
    """A key for sorting: ``app-2`` before ``app-10``."""
    head, dash, tail = name.rpartition("-")
    return (head, int(tail)) if dash and tail.isdecimal() else (name, -1)


BARS = "▁▂▃▄▅▆▇█"


def pod_row(replicas: Replicas, picture: RunPicture, columns: int) -> str:
    """As high as the most pods that were wanted in the slice, the highest of all in full."""
    most = max((number for _, number in replicas.wanted), default=0)
    slices = (_slice(picture, column, columns) for column in range(columns))
    return "".join(_bar(_most(replicas, first, last), most) for first, last in slices)


def pod_legend(replicas: Replicas) -> str:
    numbers = [number for _, number in replicas.wanted] or [0]
    return f"pods of {replicas.members}: {min(numbers)} to {max(numbers)}, {BARS[-1]} = {max(numbers)}"


def _most(replicas: Replicas, first: int, last: int) -> int:
    """The highest number within a slice, the one that it begins with included."""
    before = [number for at_us, number in replicas.wanted if at_us <= first][-1:]
    within = [number for at_us, number in replicas.wanted if first < at_us < last]
    return max([*before, *within], default=0)


def _bar(number: int, most: int) -> str:
    if not number:
        return " "
    return BARS[max(-(-number * len(BARS) // most) - 1, 0)]


NOBODY, TWO_OWNERS = "·", "!"
LEGEND = "letter = owner, capital = briefly nobody, · = nobody, ! = two owners"
"""To be shown once, under all pictures."""
_NARROWEST = 20
_ROUND_SECONDS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400)


def gantt_lines(picture: RunPicture, width: int = 100, max_lanes: int = 24, *, title: str = "") -> list[str]:
    """The picture in at most ``width`` columns (at least some 20 of time, however narrow) and ``max_lanes`` lanes.

    Where there are more partitions, those are shown that were longest without a consumer. The same picture gives the same
    lines. Empty where there is no time or no partition.
    """
    lanes = worst_lanes(picture, max_lanes)
    if not lanes or picture.to_us <= picture.from_us:
        return []
    label_width = max(len("events"), *(len(lane.name) for lane in lanes))
    columns = max(width - label_width - 2, _NARROWEST)
    letters = _letters(picture.lanes)
    lines = [f"{title}, {picture.caption}" if title else picture.caption]
    lines.append(f"{'':<{label_width}}  {_axis(picture, columns)}")
    if picture.marks:
        lines.append(f"{'events':<{label_width}}  {_mark_row(picture, columns)}".rstrip())
    lines += [f"{'pods':<{label_width}}  {pod_row(each, picture, columns)}".rstrip() for each in picture.replicas]
    lines += [f"{lane.name:<{label_width}}  {_cells(lane, picture, columns, letters)}".rstrip() for lane in lanes]
    left_out = len(picture.lanes) - len(lanes)
    lines += [f"({left_out} more partitions, with shorter gaps)"] if left_out else []
    lines += [pod_legend(each) for each in picture.replicas]
    return [*lines, *_mark_words(picture, width), *_owners(lanes, letters, width)]


def _mark_words(picture: RunPicture, width: int) -> list[str]:
    """What the scenario did and when, in three lines at most. Pods that start or go are among the marks, not among the words."""
    done = [mark for mark in picture.marks if not mark.text.endswith((" starts", " goes"))]
    lines = wrap(", ".join(f"{duration(round(mark.at_us, -5))} {mark.text}" for mark in done), width - 2)
    return [f"{'v' if not place else ' '} {line}" for place, line in enumerate([*lines[:3], *["..."][: len(lines) - 3]])]


def _letters(lanes: Sequence[Lane]) -> dict[str, str]:
    """A letter for each owner, by the order of first sight; after z they start again."""
    owners = dict.fromkeys(owner for lane in lanes for each in lane.segments for owner in each.owners)
    return {owner: ascii_lowercase[i % 26] for i, owner in enumerate(sorted(owners, key=natural))}


def _cells(lane: Lane, picture: RunPicture, columns: int, letters: dict[str, str]) -> str:
    cells, first, segments = [], 0, lane.segments
    for column in range(columns):
        from_us, to_us = _slice(picture, column, columns)
        while first < len(segments) and segments[first].to_us <= from_us:
            first += 1
        last = first
        while last < len(segments) and segments[last].from_us < to_us:
            last += 1
        cells.append(_cell(segments[first:last], from_us, to_us, letters))
    return "".join(cells)


def _slice(picture: RunPicture, column: int, columns: int) -> tuple[int, int]:
    length = picture.to_us - picture.from_us
    return picture.from_us + length * column // columns, picture.from_us + length * (column + 1) // columns


def _cell(segments: Sequence[Segment], from_us: int, to_us: int, letters: dict[str, str]) -> str:
    shares: dict[str, int] = {}
    nobody = 0
    for each in segments:
        if len(each.owners) > 1:
            return TWO_OWNERS
        if each.owners:
            shares[each.owners[0]] = shares.get(each.owners[0], 0) + overlap_us(each, from_us, to_us)
        else:
            nobody += overlap_us(each, from_us, to_us)
    if not shares:
        return NOBODY if segments else " "
    if nobody * 2 >= to_us - from_us:
        return NOBODY
    letter = letters[max(shares, key=lambda owner: shares[owner])]
    return letter.upper() if nobody else letter


def _axis(picture: RunPicture, columns: int) -> str:
    """Round times, each label beginning where its time is."""
    text, step = "", _tick_us(picture, columns)
    for us in range(-(-picture.from_us // step) * step, picture.to_us, step):
        column, label = _column(us, picture, columns), duration(us)
        if len(text) <= column and column + len(label) <= columns:
            text = f"{text:<{column}}{label}"
    return text


def _tick_us(picture: RunPicture, columns: int) -> int:
    """The smallest round time that leaves a label some ten columns."""
    wanted = (picture.to_us - picture.from_us) * 10 // columns
    for seconds in _ROUND_SECONDS:
        if seconds * 1_000_000 >= wanted:
            return seconds * 1_000_000
    return -(-wanted // 86_400_000_000) * 86_400_000_000


def _column(us: int, picture: RunPicture, columns: int) -> int:
    return (us - picture.from_us) * columns // (picture.to_us - picture.from_us)


def _mark_row(picture: RunPicture, columns: int) -> str:
    cells = [" "] * columns
    for mark in picture.marks:
        if picture.from_us <= mark.at_us < picture.to_us:
            cells[_column(mark.at_us, picture, columns)] = "v"
    return "".join(cells)


def _owners(lanes: Sequence[Lane], letters: dict[str, str], width: int) -> list[str]:
    seen = {owner for lane in lanes for each in lane.segments for owner in each.owners}
    owners = [f"{letter} {owner}" for owner, letter in letters.items() if owner in seen]
    text = "  ".join(owners)
    if len(text) > width:
        kept = [owner for i, owner in enumerate(owners) if len("  ".join(owners[: i + 1])) <= width - 10]
        text = "  ".join([*kept, "..." if len(letters) <= 26 else "... (letters repeat)"])
    return [text] if owners else []


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(outcome: Outcome) -> str:
    """The document, with a newline at the end. Times are the machine's: a suite has that of all runs, a case its share of that of
    its variant's runs, so that they add up.

    A failure's text has the observed value, the seed and the command that replays it; a warning that did not hold passes,
    and says so in ``system-out``, as what the file allows does; what was not asked is skipped. What a limit has left out is an
    error.
    """
    failures, cases = len(outcome.failures), len(outcome.expectations) + bool(outcome.stopped)
    skipped = sum(not each.was_asked for each in outcome.expectations)
    numbers = {"tests": cases, "failures": failures, "errors": int(bool(outcome.stopped)), "skipped": skipped}
    counts = {name: str(number) for name, number in numbers.items()}
    took = _seconds(sum(variant.took_s for variant in outcome.variants.values()))
    root = ET.Element("testsuites", {"name": "kgctl simulate", **counts, "time": took})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(outcome.scenario), **counts, "time": took})
    _properties(suite, outcome)
    for each in outcome.expectations:
        _case(suite, outcome, each)
    if outcome.stopped:
        case = ET.SubElement(suite, "testcase", {"classname": _clean(outcome.scenario), "name": "every run ends", "time": "0"})
        ET.SubElement(case, "error", {"message": _clean(outcome.stopped), "type": "limit"})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, outcome: Outcome) -> None:
    holder = ET.SubElement(suite, "properties")
    seeds = ",".join(str(seed) for seed in outcome.seeds)
    values = {"question": outcome.question, "kgctl": outcome.kgctl, "digest": outcome.digest, "seeds": seeds}
    for name, value in values.items():
        ET.SubElement(holder, "property", {"name": name, "value": _clean(value)})


def _case(suite: ET.Element, outcome: Outcome, each: Expectation) -> None:
    classname = f"{outcome.scenario}.{each.variant}"
    alike = sum(other.variant == each.variant for other in outcome.expectations)
    took_s = outcome.variants[each.variant].took_s / alike if each.variant in outcome.variants else 0.0
    case = ET.SubElement(
        suite, "testcase", {"classname": _clean(classname), "name": _clean(each.check), "time": _seconds(took_s)}
    )
    if each.passed:
        if each.is_unasked:
            ET.SubElement(case, "system-out").text = _clean(f"allowed: {each.note}")
        return
    if not each.was_asked:
        ET.SubElement(case, "skipped", {"message": _clean(each.note)})
        return
    observed = each.note if each.is_unasked else f"observed {show(metric_of(each.check), each.observed)}"
    lines = [f"{each.check} does not hold in variant {each.variant}", f"{observed} with seed {each.seed}"]
    lines += [each.note] * (bool(each.note) and not each.is_unasked) + [f"replay: {each.replay}"] * bool(each.replay)
    text = _clean("\n".join(lines))
    if each.severity == "fail":
        ET.SubElement(case, "failure", {"message": _clean(f"{each.check}: {observed}"), "type": "expectation"}).text = text
    else:
        ET.SubElement(case, "system-out").text = f"warning: {text}"


def _seconds(took_s: float) -> str:
    return f"{took_s:.3f}" if took_s else "0"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
