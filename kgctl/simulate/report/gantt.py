"""Which lanes of a picture are worth drawing, and the order of the names in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase

from kgctl.simulate.report.outcome import Lane, Picture, Replicas, Segment, duration


def worst_lanes(picture: Picture, most: int) -> list[Lane]:
    """All lanes; of more than ``most`` those that were longest without a consumer, in their order."""
    if len(picture.lanes) <= most:
        return list(picture.lanes)
    places = sorted(range(len(picture.lanes)), key=lambda i: (-_nobody_us(picture.lanes[i], picture), i))
    return [picture.lanes[place] for place in sorted(places[:most])]


def _nobody_us(lane: Lane, picture: Picture) -> int:
    return sum(overlap_us(each, picture.from_us, picture.to_us) for each in lane.segments if not each.owners)


def overlap_us(segment: Segment, from_us: int, to_us: int) -> int:
    """How much of a stretch of time the segment covers."""
    return max(0, min(segment.to_us, to_us) - max(segment.from_us, from_us))


def natural(name: str) -> tuple[str, int]:
    """A key for sorting: ``app-2`` before ``app-10``."""
    head, dash, tail = name.rpartition("-")
    return (head, int(tail)) if dash and tail.isdecimal() else (name, -1)


BARS = "▁▂▃▄▅▆▇█"


def pod_row(replicas: Replicas, picture: Picture, columns: int) -> str:
    """As high as the most pods that were wanted in the slice, the highest of all in full."""
    most = max((number for _, number in replicas.wanted), default=0)
    length = picture.to_us - picture.from_us
    edges = [picture.from_us + length * column // columns for column in range(columns + 1)]
    return "".join(_bar(_most(replicas, first, last), most) for first, last in pairwise(edges))


def pod_legend(replicas: Replicas) -> str:
    """Return the legend of the pods' bars."""
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


def gantt_lines(picture: Picture, width: int = 100, max_lanes: int = 24, *, title: str = "") -> list[str]:
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
    return [*lines, *_owners(lanes, letters, width)]


def _letters(lanes: Sequence[Lane]) -> dict[str, str]:
    """A letter for each owner, by the order of first sight; after z they start again."""
    owners = dict.fromkeys(owner for lane in lanes for each in lane.segments for owner in each.owners)
    return {owner: ascii_lowercase[i % 26] for i, owner in enumerate(sorted(owners, key=natural))}


def _cells(lane: Lane, picture: Picture, columns: int, letters: dict[str, str]) -> str:
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


def _slice(picture: Picture, column: int, columns: int) -> tuple[int, int]:
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


def _axis(picture: Picture, columns: int) -> str:
    """Round times, each label beginning where its time is."""
    text, step = "", _tick_us(picture, columns)
    for us in range(-(-picture.from_us // step) * step, picture.to_us, step):
        column, label = _column(us, picture, columns), duration(us)
        if len(text) <= column and column + len(label) <= columns:
            text = f"{text:<{column}}{label}"
    return text


def _tick_us(picture: Picture, columns: int) -> int:
    """The smallest round time that leaves a label some ten columns."""
    wanted = (picture.to_us - picture.from_us) * 10 // columns
    for seconds in _ROUND_SECONDS:
        if seconds * 1_000_000 >= wanted:
            return seconds * 1_000_000
    return -(-wanted // 86_400_000_000) * 86_400_000_000


def _column(us: int, picture: Picture, columns: int) -> int:
    return (us - picture.from_us) * columns // (picture.to_us - picture.from_us)


def _mark_row(picture: Picture, columns: int) -> str:
    cells = [" "] * columns
    for mark in picture.marks:
        if picture.from_us <= mark.at_us < picture.to_us:
            cells[_column(mark.at_us, picture, columns)] = "v"
    return "".join(cells)


def _owners(lanes: Sequence[Lane], letters: dict[str, str], width: int) -> list[str]:
    """Return the legend of the letters that occur in the lanes."""
    seen = {owner for lane in lanes for each in lane.segments for owner in each.owners}
    owners = [f"{letter} {owner}" for owner, letter in letters.items() if owner in seen]
    text = "  ".join(owners)
    if len(text) > width:
        kept = [owner for i, owner in enumerate(owners) if len("  ".join(owners[: i + 1])) <= width - 10]
        text = "  ".join([*kept, "..." if len(letters) <= 26 else "... (letters repeat)"])
    return [text] if owners else []
