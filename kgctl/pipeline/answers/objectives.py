"""An objective over a span of time: for how many minutes each group kept to it, and of how many that is not known.

A row of ``group_health`` holds until the group's next one, so minutes without a row count. Lag is known where log ends were
sampled: a minute counts as not known where the next sample of the cluster comes later than any sample counts
(`kgctl.pipeline.tables.rounds`), whatever was seen before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.inferred import unseen_since
from kgctl.pipeline.answers.series import gone
from kgctl.pipeline.tables.registry import DEFAULT_WINDOW_MS
from kgctl.pipeline.tables.rounds import LONGEST

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

_COLUMNS = ("group", "window_start_ms", "commits", "total_lag", "max_lag_ms", "past_end", "below_start")


@frozen_in_order
class Objective:
    """A minute is good where, at its end, no partition is further behind than ``within_ms`` and the group not further than
    ``records``, as far as these are asked for, and no commit is outside of its log. ``target``: the share of minutes that have to
    be good."""

    within_ms: int | None
    records: int | None
    target: Fraction

    def holds(self, row: dict[str, Any]) -> bool | None:
        """Whether a row of ``group_health`` keeps to it; None: that is not known."""
        if row["past_end"] or row["below_start"]:
            return False
        asked = ((self.within_ms, row["max_lag_ms"]), (self.records, row["total_lag"]))
        found = [None if value is None else value <= limit for limit, value in asked if limit is not None]
        return False if False in found else None if None in found else True


@dataclass(slots=True)
class Kept:
    """How a group kept to an objective, in minutes from ``from_ms`` to ``to_ms``."""

    group: str
    from_ms: int
    to_ms: int
    good: int = 0
    bad: int = 0
    unknown: int = 0

    @property
    def minutes(self) -> int:
        """Return how many there are."""
        return self.good + self.bad + self.unknown

    @property
    def share(self) -> Fraction:
        """Return the share of the good ones: what is not known is none of them."""
        return Fraction(self.good, max(self.minutes, 1))

    def left(self, target: Fraction) -> Fraction:
        """Return how many more minutes may be other than good; below 0: how many too many were."""
        return self.minutes * (1 - target) - self.bad - self.unknown


def kept(
    history: History, groups: Sequence[str] | None, span: tuple[int, int], objective: Objective, *, is_whole: bool = False
) -> list[Kept]:
    """Of each group that was there, sorted. It counts from its first row on, if that is later than the span's begin, and up to
    the minute in which it went, if it is gone at the span's end. ``is_whole``: the minutes before its first row are not known,
    unless it is known to have come with that."""
    from kgctl.pipeline.store.states import rounds_of

    first, last = span[0] // DEFAULT_WINDOW_MS, span[1] // DEFAULT_WINDOW_MS
    rounds = rounds_of(history.warehouse.table("state", history.as_of), history.cluster)
    unmeasured = _Unmeasured(rounds)
    rows = history.rows("group_health", _COLUMNS, groups).to_pylist()
    rows.sort(key=lambda row: (row["group"], row["window_start_ms"]))
    ended = {group: time_ms // DEFAULT_WINDOW_MS for group, time_ms in gone(history, groups, span[1]).items()}
    of_groups = groupby(rows, lambda row: str(row["group"]))
    ends = {group: min(end, last) for group, end in ended.items()}
    seen = {group: at // DEFAULT_WINDOW_MS for group, at in unseen_since(history, groups, span[1]).items() if group not in ended}
    history.partitions(sorted({row["group"] for row in rows}))  # looked for together
    found = []
    for group, some in of_groups:
        own = list(some)
        unknown = unmeasured.after(seen.get(group)).and_in(_unrecorded(history, group, own))
        found.append(_kept(group, own, (first, ends.get(group, last)), objective, unknown))
    for each in found if is_whole else ():
        before = each.from_ms // DEFAULT_WINDOW_MS - first
        if before and each.minutes and not _came(history, each, rounds):
            each.from_ms, each.unknown = first * DEFAULT_WINDOW_MS, each.unknown + before
    wanted = None if groups is None else set(groups)
    return [each for each in found if each.minutes and (wanted is None or each.group in wanted)]


def _unrecorded(history: History, group: str, rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """From and before which windows nothing was collected of a group's log, while it may have committed: it did later.

    Of a group that commits no more compaction would have left the last commit.
    """
    committed = max((row["window_start_ms"] for row in rows if row["commits"]), default=0)
    holes = ((before, after) for before, after in history.holes([group]) if after - DEFAULT_WINDOW_MS < committed)
    return [(before // DEFAULT_WINDOW_MS + 1, after // DEFAULT_WINDOW_MS) for before, after in holes]


def _came(history: History, found: Kept, rounds: Sequence[int]) -> bool:
    """Whether the cluster was looked at before a group's first row, or its log was collected whole up to there."""
    from kgctl.pipeline.answers.history import is_whole_until

    was_looked_at = found.from_ms > (rounds[0] if rounds else 1 << 40) * DEFAULT_WINDOW_MS
    runs = [run for partition in history.partitions([found.group]) for run in history.coverage(partition)]
    return found.from_ms >= history.pruned_until_ms and (was_looked_at or is_whole_until(runs, found.from_ms))


def _kept(
    group: str, rows: Sequence[dict[str, Any]], span: tuple[int, int], objective: Objective, unmeasured: _Unmeasured
) -> Kept:
    begin = max(span[0], rows[0]["window_start_ms"] // DEFAULT_WINDOW_MS)
    found = Kept(group, begin * DEFAULT_WINDOW_MS, span[1] * DEFAULT_WINDOW_MS)
    for row, low, end in _stretches(rows, (begin, span[1])):
        holds = objective.holds(row)
        unknown = end - low if holds is None else unmeasured.between(low, end)
        found.unknown += unknown
        found.good += end - low - unknown if holds else 0
        found.bad += end - low - unknown if holds is False else 0
    return found


def _stretches(rows: Sequence[dict[str, Any]], span: tuple[int, int]) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Each row with the windows from and before which it holds, within the span."""
    windows = [*(row["window_start_ms"] // DEFAULT_WINDOW_MS for row in rows), span[1]]
    for row, (window, following) in zip(rows, pairwise(windows), strict=True):
        low, end = max(window, span[0]), min(following, span[1])
        if low < end:
            yield row, low, end


class _Unmeasured:
    """The windows without a sample that comes soon enough, and the ``unrecorded`` ones."""

    def __init__(self, rounds: Sequence[int], unrecorded: Sequence[tuple[int, int]] = ()) -> None:
        self._rounds = rounds
        before = [-(1 << 40), *rounds]
        self._gaps = [(low + 1, high - LONGEST) for low, high in pairwise(before) if high - low > LONGEST]
        self._gaps.append((before[-1] + 1, 1 << 40))
        self._gaps = _merged([*self._gaps, *unrecorded]) if unrecorded else self._gaps

    def after(self, window: int | None) -> _Unmeasured:
        """These, and all after this one."""
        return self if window is None else _Unmeasured([at for at in self._rounds if at <= window])

    def and_in(self, unrecorded: Sequence[tuple[int, int]]) -> _Unmeasured:
        """These, and all within these stretches."""
        return _Unmeasured(self._rounds, unrecorded) if unrecorded else self

    def between(self, low: int, end: int) -> int:
        """How many of these windows there are from one on and before another."""
        from bisect import bisect_right

        first = max(bisect_right(self._gaps, (low, -1)) - 1, 0)
        total = 0
        for begin, stop in self._gaps[first:]:
            if begin >= end:
                break
            total += max(min(stop, end) - max(begin, low), 0)
        return total


def _merged(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same, none within or beside another."""
    found: list[tuple[int, int]] = []
    for low, end in sorted(stretches):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif low < end:
            found.append((low, end))
    return found
