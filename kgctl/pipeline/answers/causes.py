"""Why groups fell behind: what the log shows of a group as each stretch of lag began, with its evidence.

A stretch begins after the last moment at which the group was measured and well. What happened between the two may have caused it,
and nothing else is named. Where the history cannot know (no lag was known before, records of that time are missing) it says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, takewhile
from typing import TYPE_CHECKING

from kgctl.errors import plural
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.answers.series import HEALTH, LAG, PAST_LOG_END, REBALANCES, RESETS, Row, rows_between
from kgctl.pipeline.tables.group_history import Cause

if TYPE_CHECKING:
    from kgctl.pipeline.answers.history import History

MINUTE_MS = 60_000
BEHIND_MS = 60_000
"""A group is behind where a partition is further behind than this, and than it usually is between two commits. So what let it
fall behind came at most so long before it was last seen well."""
VAGUE_MS = 10 * MINUTE_MS
"""Where a group was not measured for longer before it was behind, when it began is not known."""
BUSY = 3
"""So many times as much as before is a burst."""


@frozen_in_order
class Likely:
    """What may have caused a stretch: ``text`` says what the log shows."""

    at_ms: int
    text: str


@frozen_in_order
class Spell:
    """A stretch in which a group was behind. ``well_ms``: when it was last known not to be, None: never before; ``to_ms``: None
    while it lasts; ``is_end_known``: whether it was well then, and not only no more known. ``doubt``: why a cause may be missing,
    empty where none can."""

    group: str
    well_ms: int | None
    from_ms: int
    to_ms: int | None
    max_lag: int | None
    max_lag_ms: int | None
    is_end_known: bool = True
    causes: Sequence[Likely] = ()
    doubt: str = ""


MOST = 10
"""Stretches of a group whose causes are looked for: for each its lag is looked up."""


def worst(found: Sequence[Spell]) -> list[Spell]:
    """Return the stretches in which a group was furthest behind, in order."""
    kept = sorted(found, key=lambda each: (-(each.max_lag_ms or 0), -each.from_ms))[:MOST]
    return sorted(kept, key=lambda each: each.from_ms)


def spells(history: History, group: str, from_ms: int, to_ms: int) -> list[Spell]:
    """The stretches of a group that touch a span, in order; the `worst` of them have their likely causes."""
    return GroupEvidence(history, group, to_ms).spells(from_ms)


def _limit_ms(rows: Sequence[Row]) -> int:
    """How far behind a group may be: one that commits every ten minutes is as far behind before each commit, and well."""
    moments = [row["window_start_ms"] for row in rows if row["commits"]]
    gaps = sorted(later - earlier for earlier, later in pairwise(moments))
    usual_ms: int = gaps[len(gaps) // 2] if gaps else 0
    return BEHIND_MS + (usual_ms if usual_ms > MINUTE_MS else 0)


def _is_behind(row: Row, limit_ms: int) -> bool | None:
    """Whether a row of ``group_health`` says that the group is behind; None: that is not known."""
    if row["past_end"] or row["below_start"]:
        return True
    return None if row["max_lag_ms"] is None else row["max_lag_ms"] > limit_ms


def _spells(rows: Sequence[Row], rounds: Sequence[int], limit_ms: int) -> list[Spell]:
    found: list[Spell] = []
    well_ms: int | None = None
    ill: list[Row] = []
    for at, row in enumerate(rows):
        is_behind = _is_behind(row, limit_ms)
        if is_behind or ill:
            ill.append(row)
        if is_behind is False:
            if ill:
                found.append(_spell(ill, well_ms, row["window_start_ms"], limit_ms))
            following = rows[at + 1]["window_start_ms"] if at + 1 < len(rows) else None
            well_ms, ill = _measured_until(row, following, rounds), []
    return found + ([_spell(ill, well_ms, None, limit_ms)] if ill else [])


def _measured_until(row: Row, following_ms: int | None, rounds: Sequence[int]) -> int:
    """Up to when a row is known to hold that nothing has changed since: to the last sample before the next one."""
    end: int = row["window_start_ms"] + row["window_ms"]
    if following_ms is None:
        return end
    last = bisect_right(rounds, following_ms // MINUTE_MS - 1) - 1
    return max(end, (rounds[last] + 1) * MINUTE_MS) if last >= 0 else end


def _spell(rows: Sequence[Row], well_ms: int | None, to_ms: int | None, limit_ms: int) -> Spell:
    lags, times = ([row[name] for row in rows if row[name] is not None] for name in ("max_lag", "max_lag_ms"))
    from_ms = rows[0]["window_start_ms"] + rows[0]["window_ms"]
    unknown = list(takewhile(lambda row: _is_behind(row, limit_ms) is None, reversed(rows)))
    end_ms = to_ms if to_ms is not None or not unknown else unknown[-1]["window_start_ms"]
    worst = max(lags, default=None), max(times, default=None)
    return Spell(rows[0]["group"], well_ms, from_ms, end_ms, *worst, is_end_known=end_ms == to_ms)


class GroupEvidence:
    """What the log tells of a group up to a moment; all that it looks at is read once."""

    def __init__(self, history: History, group: str, to_ms: int) -> None:
        self._history = history
        self._group = group
        self._health = rows_between(history, HEALTH, [group], None, to_ms)
        self._limit_ms = _limit_ms(self._health)
        self._commits_ms = [row["window_start_ms"] + row["window_ms"] for row in self._health if row["commits"]]
        self._resets = rows_between(history, RESETS, [group], None, to_ms)
        self._generations = rows_between(history, REBALANCES, [group], None, to_ms)
        self._changes = [*_changes_of_generations(self._generations), *_changes_of_members(history, group, to_ms)]

    def spells(self, from_ms: int) -> list[Spell]:
        """The stretches in which it was behind since then, in order; the `worst` of them have their likely causes."""
        from kgctl.pipeline.store.states import rounds_of

        rounds = rounds_of(self._history.warehouse.table("state", self._history.as_of), self._history.cluster)
        found = _spells(self._health, rounds, self._limit_ms)
        touching = [each for each in found if each.to_ms is None or each.to_ms > from_ms]
        meant = {each.from_ms for each in worst(touching)}
        return [self._explained(each) if each.from_ms in meant else each for each in touching]

    def changes(self, from_ms: int) -> list[Likely]:
        """What was set otherwise from some moment on, as far as the log tells: protocol, assignor, what is subscribed to and its
        partitions, time-outs of members."""
        return sorted((each for each in self._changes if each.at_ms >= from_ms), key=lambda each: each.at_ms)

    def _explained(self, spell: Spell) -> Spell:
        if spell.well_ms is None:
            return replace(spell, doubt="it was behind from the first minute on of which its lag is known")
        span = (spell.well_ms - self._limit_ms, spell.from_ms)
        found = [*self._moved(*span), *self._rebalanced(*span), *self._set(*span), *self._silent(*span), *self._written(*span)]
        return replace(spell, causes=sorted(found, key=lambda each: each.at_ms), doubt=self._doubt(spell, span))

    def _doubt(self, spell: Spell, span: tuple[int, int]) -> str:
        assert spell.well_ms is not None
        runs = [run for home in self._history.partitions([self._group]) for run in self._history.coverage(home)]
        before = [run for run in runs if run.first_ms <= span[0]]
        is_missing = not before or (before[-1] != runs[-1] and before[-1].last_ms < span[1])
        if is_missing or self._history.pruned_until_ms > span[0]:
            return "not all records of that time are there: what happened may be missing"
        if spell.from_ms - spell.well_ms > VAGUE_MS:
            return (
                f"when it began is not known: its lag was not, for {(spell.from_ms - spell.well_ms) // MINUTE_MS} minutes before"
            )
        return ""

    def _moved(self, low: int, high: int) -> Iterator[Likely]:
        """Resets that left more to read, or nothing that there is."""
        rows = [row for row in self._resets if low < row["time_ms"] <= high and _leaves_more(row)]
        rows.sort(key=lambda row: row["topic"])
        for topic, own in groupby(rows, lambda row: str(row["topic"])):
            moved = list(own)
            evidence = ", ".join(dict.fromkeys(each for row in moved for each in row["evidence"])).replace("_", " ")
            count, records = len({row["partition"] for row in moved}), sum(row["records"] for row in moved)
            text = f"reset of {topic}: {plural(count, 'partition')} by {records:+} records ({evidence})"
            yield Likely(min(row["time_ms"] for row in moved), text)

    def _rebalanced(self, low: int, high: int) -> Iterator[Likely]:
        there, before, rows = set[str](), None, []
        for row in self._generations:
            if low < _end_of(row) and _begin_of(row) <= high:
                rows.append(row)
            elif not rows:
                there = there.union(row["members_joined"] or ()).difference(row["members_left"] or ())
                before = row["members"]
        if not rows:
            return
        causes = ", ".join(dict.fromkeys(row["cause"] for row in rows)).replace("_", " ")
        took = sum(row["duration_ms"] or 0 for row in rows) / 1000
        members = f"{plural(rows[-1]['members'], 'member')}" + ("" if before is None else f", {before} before")
        least = "at least " if any(row["started_by"] == "join_phase_ended" for row in rows) else ""
        text = f"{plural(len(rows), 'rebalance')}, {least}{took:g} s together ({causes}); {members}"
        left = {member for row in rows for member in row["members_left"] or ()}
        if there and there <= left and rows[-1]["members"]:
            text += ": all members were replaced, as by a deploy or a restart"
        yield Likely(_begin_of(rows[0]), text)

    def _set(self, low: int, high: int) -> Iterator[Likely]:
        yield from (each for each in self._changes if low < each.at_ms <= high)

    def _silent(self, low: int, high: int) -> Iterator[Likely]:
        """The last minute with a commit, where none came since it was well."""
        before = [moment for moment in self._commits_ms if moment <= high]
        if before and before[-1] <= low + self._limit_ms:
            yield Likely(before[-1], "it committed nothing more")

    def _written(self, low: int, high: int) -> Iterator[Likely]:
        """How much faster the topics were written than in the ten minutes before, where that is known and is a burst."""
        rows = rows_between(self._history, LAG, [self._group], low - VAGUE_MS, high + 1)
        known = [row for row in rows if row["log_end_offset"] is not None and row["time_ms"] >= low - VAGUE_MS]
        before = now = 0.0
        for _, own in groupby(known, lambda row: (row["topic"], row["partition"])):
            courses = list(own)
            split = bisect_right(courses, low, key=lambda row: row["time_ms"])
            before += _pace(courses[:split])
            now += _pace(courses[max(split - 1, 0) :])
        if before > 0 and now >= BUSY * before:
            text = f"its topics were written {now / before:.1f} times as fast as in the ten minutes before"
            yield Likely(low, f"{text} ({now * 1000:.1f} records a second)")


def _pace(rows: Sequence[Row]) -> float:
    """How fast a log was written, from the first of these moments to the last; records a millisecond."""
    if not rows or rows[0]["time_ms"] == rows[-1]["time_ms"]:
        return 0.0
    return float((rows[-1]["log_end_offset"] - rows[0]["log_end_offset"]) / (rows[-1]["time_ms"] - rows[0]["time_ms"]))


_OF_SETTINGS = {
    Cause.SUBSCRIPTION_CHANGED: "the members subscribe to other topics",
    Cause.PARTITIONS_CHANGED: "topics or partitions came or went",
    Cause.UPGRADED: "from the classic to the consumer protocol",
    Cause.DOWNGRADED: "from the consumer to the classic protocol",
}


def _changes_of_generations(rows: Sequence[Row]) -> Iterator[Likely]:
    assignor = None
    for row in rows:
        if row["cause"] in _OF_SETTINGS:
            yield Likely(_begin_of(row), _OF_SETTINGS[Cause(row["cause"])])
        if assignor and row["assignor"] and row["assignor"] != assignor:
            yield Likely(_begin_of(row), f"assignor {row['assignor']}, before {assignor}")
        assignor = row["assignor"] or assignor


_TIMEOUTS = {"session_timeout_ms": "session time-out", "rebalance_timeout_ms": "longest time for a rebalance"}


def _changes_of_members(history: History, group: str, to_ms: int) -> Iterator[Likely]:
    """Time-outs that a member brings and that no member had before; once for each value."""
    rows = history.rows("member_changes", ("time_ms", "change", "log_offset", *_TIMEOUTS), [group]).to_pylist()
    for name, what in _TIMEOUTS.items():
        last: int | None = None
        for row in sorted(rows, key=lambda row: row["log_offset"]):
            value = row[name]
            if value is None or row["change"] not in ("joined", "updated") or row["time_ms"] >= to_ms:
                continue
            if last is not None and value != last:
                yield Likely(row["time_ms"], f"{what} of a member {value / 1000:g} s, before {last / 1000:g} s")
            last = value


def _leaves_more(row: Row) -> bool:
    return bool(row["records"] < 0 or PAST_LOG_END in row["evidence"])


def _begin_of(row: Row) -> int:
    return next((row[name] for name in REBALANCES.time if row[name] is not None), 0)


def _end_of(row: Row) -> int:
    return max(_begin_of(row), row["stable_ms"] or 0)
