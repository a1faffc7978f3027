"""What is drawn of one group: lag, commit rate, health, rebalances, resets; as plain lists for the page."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.answers.series import COMMIT_RATE, HEALTH, REBALANCES, RESETS, Row, flooded, rows_between
from kgctl.pipeline.report.lines import Line, lag_lines

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

MOST_MARKS = 1000
"""Rebalances, resets, stretches of health: of more than that the longest are drawn."""
MOST_WINDOWS = 400
"""Of the commit rate: more windows than that are averaged."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which something held."""

    from_ms: int
    to_ms: int
    what: str
    label: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything of one group. ``notes`` say what was left out or averaged; ``resets`` has all of them, ``marks`` those drawn."""

    cluster: str
    group: str
    lag: Sequence[Line]
    rate: Sequence[Line]
    rate_ms: int
    health: Sequence[Stretch]
    rebalances: Sequence[Stretch]
    members: Sequence[tuple[int, int]]
    resets: Sequence[Row]
    marks: Sequence[Row]
    notes: Sequence[str]


def figures(history: History, group: str, from_ms: int, to_ms: int) -> Figures:
    """What happened from ``from_ms`` on and before ``to_ms``."""
    notes: list[str] = []
    lag = _known(lag_lines(history, group, from_ms, to_ms), notes)
    if thinned := [line for line in lag if len(line.points) < line.of]:
        names = ", ".join(f"{line.name} {len(line.points)} of {line.of}" for line in thinned)
        notes.append(f"lag: the highest and lowest points of each stretch are drawn ({names})")
    rate, rate_ms, windows_ms = _rates(history, group, from_ms, to_ms)
    if rate_ms > windows_ms:
        notes.append(f"commit rate: averaged over {_span(rate_ms)}")
    health = _longest(_health(history, group, from_ms, to_ms), "stretches of health", notes)
    rows = rows_between(history, REBALANCES, [group], None, to_ms)
    rebalances = _longest(_rebalances(rows, from_ms), "rebalances", notes)
    members = [(max(_begin(row), from_ms), row["members"]) for row in rows if _begin(row) >= 0]
    resets = flooded(rows_between(history, RESETS, [group], from_ms, to_ms))
    marks = resets
    if len(resets) > MOST_MARKS:
        notes.append(f"resets: the {MOST_MARKS} that moved most of {len(resets)} are drawn")
        marks = sorted(sorted(resets, key=lambda row: -abs(row["records"]))[:MOST_MARKS], key=lambda row: row["time_ms"])
    return Figures(history.cluster, group, lag, rate, rate_ms, health, rebalances, members, resets, marks, notes)


def _known(lines: Sequence[Line], notes: list[str]) -> list[Line]:
    known = {line.name for line in lines if any(value is not None for _, value in line.points)}
    if len(known) < len(lines):
        names = ", ".join(line.name for line in lines if line.name not in known)
        notes.append(f"lag: not known of {names}, whose log end was never sampled")
    return [line for line in lines if line.name in known]


def _health(history: History, group: str, from_ms: int, to_ms: int) -> list[Stretch]:
    """Windows that follow each other with the same status are one stretch; a window that is not there is as the last."""
    found: list[Stretch] = []
    rows = rows_between(history, HEALTH, [group], None, to_ms)
    ends = [*(row["window_start_ms"] for row in rows[1:]), to_ms]
    for row, end in zip(rows, ends, strict=False):
        status, begin = row["status"] or "unknown", max(row["window_start_ms"], from_ms)
        if end <= from_ms:
            continue
        if found and found[-1].what == status:
            begin = found.pop().from_ms
        found.append(Stretch(begin, end, status, status))
    return found


def _rebalances(rows: Sequence[Row], from_ms: int) -> list[Stretch]:
    return [
        Stretch(begin, begin + (row["duration_ms"] or 0), row["cause"], _rebalance_text(row))
        for row in rows
        if (begin := _begin(row)) >= from_ms
    ]


def _rebalance_text(row: Row) -> str:
    parts = [
        f"generation {row['generation_id']}: {row['cause'].replace('_', ' ')}",
        f"{row['members']} member{'s' if row['members'] != 1 else ''}",
    ]
    for name, word in (("members_joined", "joined"), ("members_left", "left")):
        if row[name]:
            parts.append(f"{len(row[name])} {word}")
    if row["duration_ms"] is not None:
        least = "at least " if row["started_by"] == "join_phase_ended" else ""
        parts.append(f"{least}{row['duration_ms']} ms")
    return ", ".join(parts)


def _begin(row: Row) -> int:
    return next((row[name] for name in REBALANCES.time if row[name] is not None), -1)


def _rates(history: History, group: str, from_ms: int, to_ms: int) -> tuple[list[Line], int, int]:
    """Records a second by topic, over windows of the width that is returned, and the width of the table's."""
    rows = rows_between(history, COMMIT_RATE, [group], from_ms, to_ms)
    windows_ms = rows[0]["window_ms"] if rows else 60_000
    every = -(-(to_ms - from_ms) // (windows_ms * MOST_WINDOWS)) or 1
    width_ms = every * windows_ms
    read: dict[str, dict[int, int]] = {}
    for row in rows:
        if row["records_consumed"] is not None:
            at = max(row["window_start_ms"] // width_ms * width_ms, from_ms)
            sums = read.setdefault(row["topic"], {})
            sums[at] = sums.get(at, 0) + row["records_consumed"]
    lines = [Line(topic, [(at, total) for at, total in sorted(sums.items())], len(sums)) for topic, sums in sorted(read.items())]
    return lines, width_ms, windows_ms


def _longest(found: list[Stretch], what: str, notes: list[str]) -> list[Stretch]:
    """Of many the longest; of equally long ones some from everywhere (multiples of the golden ratio are spread evenly)."""
    if len(found) <= MOST_MARKS:
        return found
    notes.append(f"{what}: the {MOST_MARKS} longest of {len(found)} are drawn")
    places = sorted(range(len(found)), key=lambda i: (found[i].from_ms - found[i].to_ms, i * 0.6180339887 % 1))
    return [found[i] for i in sorted(places[:MOST_MARKS])]


def _span(width_ms: int) -> str:
    minutes = width_ms // 60_000
    return f"{minutes} minutes" if width_ms % 60_000 == 0 and minutes > 1 else f"{width_ms / 1000:g} seconds"


def as_data(each: Figures) -> dict[str, Any]:
    """The figures as JSON has them."""
    return {
        "cluster": each.cluster,
        "group": each.group,
        "lag": [{"topic": line.name, "points": line.points} for line in each.lag],
        "rate": [{"topic": line.name, "points": line.points} for line in each.rate],
        "rate_ms": each.rate_ms,
        "health": [[one.from_ms, one.to_ms, one.what] for one in each.health],
        "rebalances": [[one.from_ms, one.to_ms, one.label] for one in each.rebalances],
        "members": each.members,
        "resets": [[row["time_ms"], reset_text(row), reset_id(each, row)] for row in each.marks],
        "notes": list(each.notes),
    }


def reset_id(each: Figures, row: Row) -> str:
    """What names a reset on a page."""
    return f"reset-{zlib.crc32(each.cluster.encode()):x}-{zlib.crc32(each.group.encode()):x}-{row['log_offset']}"


def reset_text(row: Row) -> str:
    """A row of ``resets`` for people."""
    why = ", ".join(row["evidence"]).replace("_", " ")
    if row["times"] > 1:
        why += f", {row['times']} times"
    return f"{row['topic']}-{row['partition']}: {row['offset_before']} to {row['offset_after']} ({row['records']:+}): {why}"
