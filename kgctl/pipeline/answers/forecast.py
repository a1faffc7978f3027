"""When a group will have caught up, if it goes on as it did; and how often saying so held before, on its own history.

A group has caught up with a topic where it has no more to read than is written in a minute. Until then it takes
``(unread - written in a minute) / (read - written)`` minutes, by the mean of both in the last ``over`` minutes. What was said so
at every minute of the past is compared with what came: the range around a forecast is from the first to the last decile of
``took / said``, of the outcomes that were known when it was said. So nothing is tried on what it was made of.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.inferred import FRESH_MS, UNMEASURED, standings
from kgctl.pipeline.answers.series import LAG, RESETS, Row, rows_at, rows_between

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

MINUTE_MS = 60_000
_Key = tuple[str, str]
FEWEST = 20
"""Outcomes that make a range; with fewer it is from half to twice as long as said."""
_UNTRIED = (0.5, 2.0)
_DECILE = 0.1


@frozen_in_order
class Course:
    """What a group had read of a topic and what was written to it since the first minute, and what it had to read, as of each
    minute's end; lists of one length. ``unread`` is None where that is not known."""

    read: Sequence[int]
    written: Sequence[int]
    unread: Sequence[int | None]


@frozen_in_order
class Pace:
    """How a group and a topic went on for some minutes; records a minute."""

    unread: int
    read: float
    written: float

    @property
    def minutes(self) -> float | None:
        """Return how long it takes until the group has caught up, 0 where it has; None: it does not."""
        if self.unread <= self.written or not self.unread:
            return 0.0
        gained = self.read - self.written
        return (self.unread - self.written) / gained if gained > 0 else None


@dataclass(slots=True)
class Trials:
    """What was forecast at minutes of the past and has come, or is too late to: ``held`` of ``count`` lay in their range."""

    held: int = 0
    count: int = 0
    _ratios: list[float] = field(default_factory=list)
    _coming: list[tuple[int, float]] = field(default_factory=list)

    def range(self, minute: int) -> tuple[float, float]:
        """Return by what to multiply a forecast of that minute for the ends of its range. Minutes may not go back."""
        while self._coming and self._coming[0][0] <= minute:
            insort(self._ratios, heappop(self._coming)[1])
        if len(self._ratios) < FEWEST:
            return _UNTRIED
        last = len(self._ratios) - 1
        return self._ratios[int(last * _DECILE)], self._ratios[last - int(last * _DECILE)]

    def add(self, minute: int, said: float, took: int | None, end: int) -> None:
        """Count a forecast. ``took``: None where the group had not caught up at minute ``end``, the last one."""
        low, high = self.range(minute)
        if took is None and minute + said * high >= end:
            return
        self.count += 1
        # As of minutes' ends: what is done within a minute is seen at its end.
        self.held += took is not None and said * low - 1 <= took <= said * high + 1
        if took is not None:
            heappush(self._coming, (minute + took, took / said))


def pace_at(course: Course, minute: int, over: int) -> Pace | None:
    """Return how it went on in the minutes up to this one; None where a part of them is not known."""
    unread = course.unread[minute]
    if minute < over or unread is None or None in course.unread[minute - over : minute]:
        return None
    read, written = (each[minute] - each[minute - over] for each in (course.read, course.written))
    return Pace(unread, read / over, written / over)


def tried(course: Course, over: int) -> Trials:
    """Forecast at each minute, the last one left out, and compare with what came."""
    paces = [pace_at(course, minute, over) for minute in range(len(course.unread))]
    caught_up = _next_caught_up(paces)
    found = Trials()
    for minute, pace in enumerate(paces[:-1]):
        said = pace.minutes if pace is not None else None
        outcome = caught_up[minute]
        if said and outcome is not _NOT_KNOWN:
            found.add(minute, said, None if outcome is None else outcome - minute, len(paces) - 1)
    return found


_NOT_KNOWN = -1


def _next_caught_up(paces: Sequence[Pace | None]) -> list[int | None]:
    """Of each minute the next one at which the group had caught up; None: there is none; `_NOT_KNOWN`: what came is not."""
    found: list[int | None] = []
    following: int | None = None
    for minute in range(len(paces) - 1, -1, -1):
        pace = paces[minute]
        if pace is None:
            following = _NOT_KNOWN
        elif pace.minutes == 0:
            following = minute
        found.append(following)
    return found[::-1]


@frozen_in_order
class Outlook:
    """When a group will have caught up with a topic, in milliseconds from now; None: it does not, or that is not known (``why``).

    ``trials``: how the same went before.
    """

    group: str
    topic: str
    trials: Trials
    unread: int | None = None
    pace: Pace | None = None
    in_ms: int | None = None
    earliest_ms: int | None = None
    latest_ms: int | None = None
    why: str = ""


def outlooks(
    history: History,
    groups: Sequence[str] | None,
    at_ms: int,
    over_ms: int,
    since_ms: int,
) -> list[Outlook]:
    """Of each group and topic that it has committed for, as of ``at_ms``; sorted. Tried on its history from ``since_ms`` on."""
    by_topic: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in standings(history, groups, at_ms):
        by_topic[row["group"], row["topic"]].append(row)
    courses = _courses(history, groups, by_topic, (since_ms, at_ms))
    over = max(over_ms // MINUTE_MS, 1)
    return [_outlook(*key, rows, courses[key], over) for key, rows in sorted(by_topic.items())]


def _outlook(group: str, topic: str, rows: Sequence[Row], course: Course, over: int) -> Outlook:
    trials = tried(course, over)
    found = Outlook(group, topic, trials)
    unknown = next((row for row in rows if row["lag"] is None or row["status"] in (None, UNMEASURED)), None)
    if unknown is not None:
        return replace(found, why=f"partition {unknown['partition']}: {unknown['why'] or unknown['status']}")
    last = len(course.unread) - 1
    found = replace(found, unread=sum(row["lag"] for row in rows), pace=pace_at(course, last, over))
    if found.pace is None:
        return replace(found, why=f"not measured in each of the last {over} min")
    minutes = found.pace.minutes
    if minutes is None:
        return replace(found, why="reads no faster than is written")
    low, high = trials.range(last)
    in_ms, earliest_ms, latest_ms = (round(minutes * factor * MINUTE_MS) for factor in (1, low, high))
    return replace(found, in_ms=in_ms, earliest_ms=earliest_ms, latest_ms=latest_ms)


def _courses(
    history: History, groups: Sequence[str] | None, wanted: Mapping[_Key, Sequence[Row]], span: tuple[int, int]
) -> dict[_Key, Course]:
    """The course of each of ``wanted`` over the partitions of its rows, by minutes that end at the end of ``span``."""
    since_ms, at_ms = span
    steps: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in rows_at(history, LAG, groups, since_ms) + rows_between(history, LAG, groups, since_ms + 1, at_ms + 1):
        steps[row["group"], row["topic"], row["partition"]].append(row)
    moved = {
        (row["group"], row["topic"], row["partition"], row["time_ms"])
        for row in rows_between(history, RESETS, groups, since_ms, at_ms + 1)
    }
    begin_ms = max(min((rows[0]["time_ms"] for rows in steps.values()), default=at_ms), since_ms)
    ends = range(at_ms - (at_ms - begin_ms) // MINUTE_MS * MINUTE_MS, at_ms + 1, MINUTE_MS)
    is_measured = _measured(history, ends)
    return {
        (group, topic): _together([_course(steps[group, topic, row["partition"]], moved, ends) for row in rows], is_measured)
        for (group, topic), rows in wanted.items()
    }


def _course(rows: Sequence[Row], moved: Collection[tuple[str, str, int, int]], ends: Sequence[int]) -> Course:
    """Of one partition, by its rows of ``lag``, sorted. What a reset moves (``moved``) is not read, and a commit back is none."""
    read, written, unread = [], [], []
    total, first_end, place = 0, None, 0
    before: Row | None = None
    for end in ends:
        while place < len(rows) and rows[place]["time_ms"] <= end:
            row = rows[place]
            is_reset = (row["group"], row["topic"], row["partition"], row["time_ms"]) in moved
            if before is not None and not is_reset:
                total += max(row["committed_offset"] - before["committed_offset"], 0)
            before, place = row, place + 1
            first_end = row["log_end_offset"] if first_end is None else first_end
        read.append(total)
        is_known = before is not None and before["lag"] is not None
        unread.append(before["lag"] if before is not None else None)
        written.append(before["log_end_offset"] - (first_end or 0) if before is not None and is_known else 0)
    return Course(read, written, unread)


def _together(courses: Sequence[Course], is_measured: Sequence[bool]) -> Course:
    """The sum of the partitions of a topic; ``unread`` is known where all of them are, at minutes that were measured."""

    def summed(columns: Iterable[Sequence[int]]) -> list[int]:
        return [sum(values) for values in zip(*columns, strict=True)]

    unread: list[int | None] = []
    for is_known, values in zip(is_measured, zip(*(each.unread for each in courses), strict=True), strict=True):
        known = [value for value in values if value is not None]
        unread.append(sum(known) if is_known and len(known) == len(values) else None)
    return Course(summed(each.read for each in courses), summed(each.written for each in courses), unread)


def _measured(history: History, ends: Sequence[int]) -> list[bool]:
    """Whether log ends were sampled in the two minutes before each of these moments, or its own."""
    from kgctl.pipeline.store.states import rounds_of

    rounds = rounds_of(history.warehouse.table("state", history.as_of), history.cluster)
    found = []
    for end in ends:
        place = bisect_right(rounds, end // MINUTE_MS) - 1
        found.append(place >= 0 and end // MINUTE_MS - rounds[place] <= FRESH_MS // MINUTE_MS)
    return found
