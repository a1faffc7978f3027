"""Tables with a row a window of time, which begins at a multiple of ``window_ms``: how often a group commits, and how it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, only_used, ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.store.tables import columns_of
from kgctl.pipeline.tables.group_history import Cause
from kgctl.pipeline.tables.lag import STATUSES as BURROW
from kgctl.pipeline.tables.lag import stalls
from kgctl.pipeline.tables.points import BELOW_START, PAST_END, points
from kgctl.pipeline.tables.registry import BEGIN_MS, PartitionInputs, Table
from kgctl.pipeline.tables.resets import jumps
from kgctl.pipeline.tables.series import NONE, Known, begins, known_of, series

COMMIT_RATE_COLUMNS = columns_of("commit_rate", text=TEXT)


def commit_rate_rows(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group, topic, partition, window_start_ms; windows without a commit have no row."""
    commits = series(inputs)
    rows = np.flatnonzero(commits.is_commit & commits.is_asked)
    window = commits.clock_ms[rows] // inputs.window_ms
    first = np.flatnonzero(begins(commits.key[rows], window))
    previous = commits.previous[rows]
    known = previous >= 0
    steps = np.where(known, np.maximum(commits.committed[rows] - commits.committed[previous], 0), 0)
    steps[np.searchsorted(rows, jumps(inputs).row)] = 0
    consumed, is_known = _sums(steps, first), _sums(known.astype(np.int64), first) > 0
    columns = {
        **commits.names(rows[first]),
        "window_start_ms": pa.array(window[first] * inputs.window_ms),
        "window_ms": pa.array(np.full(len(first), inputs.window_ms)),
        "commits": pa.array(np.diff(np.append(first, len(rows)))),
        "records_consumed": pa.array(consumed, mask=~is_known),
        "records_per_s": pa.array(consumed * 1000 / inputs.window_ms, mask=~is_known),
    }
    return pa.Table.from_arrays([columns[name] for name in COMMIT_RATE_COLUMNS.names], schema=COMMIT_RATE_COLUMNS)


def _sums(values: Int64s, first: Int64s) -> Int64s:
    found: Int64s = np.add.reduceat(values, first) if len(first) else values[:0]
    return found


COMMIT_RATE = Table("commit_rate", COMMIT_RATE_COLUMNS, commit_rate_rows)
"""How often a group commits and how much it reads.

``records_consumed`` is what the commits in the window moved on since the commit before each. A step back counts 0, and so does a
jump forward that is a row of ``resets``: neither is reading. A first commit, and the first after the offset was removed, moves on
from nowhere: where a window has only such ones, what was read is null.
"""


@dataclass(frozen=True)
class Windows:
    """``group`` and ``window`` of each row, ascending. A window is its start divided by its width; groups are numbers."""

    group: Int64s
    window: Int64s
    window_ms: int

    @classmethod
    def of(cls, moments: Sequence[tuple[Int64s, Int64s]], window_ms: int) -> Windows:
        """The rows that these moments (groups, times) fall into."""
        keys = np.unique(np.concatenate([np.empty(0, np.int64), *(_keys(group, at // window_ms) for group, at in moments)]))
        return cls(keys >> _BITS, (keys & _MASK) - _ZERO, window_ms)

    def __len__(self) -> int:
        return len(self.group)

    def at(self, group: Int64s, time_ms: Int64s) -> Int64s:
        """The row of a moment, or the next one of the group, or where that would be."""
        return self.from_window(group, time_ms // self.window_ms)

    def from_window(self, group: Int64s, window: Int64s) -> Int64s:
        """The first row of a group that is not before this window; the row behind the group's last one if there is none."""
        found: Int64s = np.searchsorted(_keys(self.group, self.window), _keys(group, window))
        return found

    def ends(self, group: Int64s) -> Int64s:
        """Return the row behind the last one of each group."""
        found: Int64s = np.searchsorted(self.group, group, "right")
        return found

    def counted(self, rows: Int64s, weights: Int64s | None = None) -> Int64s:
        """How often each row occurs, or the sum of its weights."""
        found = np.zeros(len(self), np.int64)
        np.add.at(found, rows, 1 if weights is None else weights)
        return found

    def summed(self, first: Int64s, end: Int64s, values: Int64s | int = 1) -> Int64s:
        """The sum at each row of the values that hold from row ``first`` on and before row ``end``."""
        steps = np.zeros(len(self) + 1, np.int64)
        np.add.at(steps, first, values)
        np.subtract.at(steps, end, values)
        found: Int64s = np.cumsum(steps)[:-1]
        return found

    def highest(self, first: Int64s, end: Int64s, values: Int64s) -> Int64s:
        """The greatest at each row of the values that hold from row ``first`` on and before row ``end``; `NONE` for none.

        Each stretch is two overlapping blocks whose length is a power of two; blocks are halved until they are rows.
        """
        some = end > first
        first, end, values = first[some], end[some], values[some]
        level = np.log2(np.maximum(end - first, 1)).astype(np.int64)
        above = np.full(len(self), NONE)
        for power in range(int(level.max(initial=0)), -1, -1):
            size, here = 1 << power, level == power
            now = above.copy()
            now[size:] = np.maximum(now[size:], above[:-size])
            np.maximum.at(now, first[here], values[here])
            np.maximum.at(now, end[here] - size, values[here])
            above = now
        return above


_BITS = 40
_MASK = (1 << _BITS) - 1
_ZERO = 1 << (_BITS - 1)
"""Windows before 1970 have numbers, too. A record may claim any time: what is beyond all reason falls into the first or last."""


def _keys(group: npt.NDArray[np.int64], window: npt.NDArray[np.int64]) -> Int64s:
    """Return one integer a row that sorts by group and window."""
    found: Int64s = group << _BITS | np.clip(window + _ZERO, 0, _MASK)
    return found


@dataclass(frozen=True)
class WindowCells:
    """The last known state of a partition in each window in which it was looked at, by series (``key``) and time; of what was
    known before the horizon, one at `BEGIN_MS`.

    ``group`` numbers the groups of the series; ``is_there``: the offset was not removed; ``lag`` and ``lag_ms`` are `NONE` where
    they are not known; ``out``: how it is out of its log's range (`RANGE`); ``end``: the log's; ``commits``: how many there
    were in this window; ``is_last``: the partition has no later cell.
    """

    key: Int64s
    group: Int64s
    time_ms: Int64s
    is_there: Bools
    lag: Int64s
    lag_ms: Int64s
    out: Int64s
    end: Int64s
    commits: Int64s

    @property
    def is_last(self) -> Bools:
        """Return the last cell of each partition."""
        found: Bools = np.append(self.key[1:] != self.key[:-1], True)[: len(self.key)]
        return found


def cells(inputs: PartitionInputs) -> WindowCells:
    """Return the windows' cells of all groups, found once."""
    return inputs.once("cells", _cells)


def _cells(inputs: PartitionInputs) -> WindowCells:
    commits, found, known = series(inputs), points(inputs), known_of(inputs)
    key = commits.key[found.row]
    first = begins(key, found.time_ms // inputs.window_ms)
    last = np.flatnonzero(np.append(first[1:], True)[: len(first)])
    is_commit = ~found.is_sample & commits.is_commit[found.row]
    row, lag_ms = found.row[last], found.lag_ms[last]
    is_there = commits.is_commit[row]
    lag = np.where(found.is_known[last] & is_there, found.lag(commits)[last], NONE)
    waited = np.where(is_there & ~np.isnan(lag_ms), np.rint(np.nan_to_num(lag_ms)).astype(np.int64), NONE)
    counted = np.diff(np.append(0, np.cumsum(is_commit)[last]))
    before = np.flatnonzero(known["is_there"])
    keys = np.concatenate([before, key[last]])
    order = np.argsort(keys, kind="stable")
    columns = [
        (np.full(len(before), BEGIN_MS), found.time_ms[last]),
        (known["is_there"][before] > 0, is_there),
        *((known[name][before], now) for name, now in (("lag", lag), ("lag_ms", waited), ("out", found.out[last]))),
        (known["end"][before], found.end[last]),
        (np.zeros(len(before), np.int64), counted),
    ]
    group_of_key = commits.group[np.flatnonzero(begins(commits.key))]
    return WindowCells(keys[order], group_of_key[keys[order]], *(np.concatenate(both)[order] for both in columns))


def cells_until(inputs: PartitionInputs, until: Int64s) -> Known:
    """The last cell of each series before later horizons, one of each series (`kgctl.pipeline.tables.series`)."""
    found = cells(inputs)
    names = ("is_there", "lag", "lag_ms", "out", "end")
    numbers = {name: known_of(inputs)[name].copy() for name in names}
    is_before = found.time_ms < until[found.key]
    for name in names:
        numbers[name][found.key[is_before]] = getattr(found, name)[is_before]  # of several the last one counts
    return numbers


@dataclass(frozen=True)
class Lags:
    """By row: sums and maxima over the partitions that have a commit.

    ``known`` and ``unknown`` count those partitions; ``unknown_ms``: those whose lag in time is not known. Those whose commit is
    out of its log's range are neither: ``past_end`` and ``below_start`` count them.
    """

    total: Int64s
    highest: Int64s
    highest_ms: Int64s
    known: Int64s
    unknown: Int64s
    unknown_ms: Int64s
    past_end: Int64s
    below_start: Int64s
    commits: Int64s


def lags(windows: Windows, found: WindowCells, group: Int64s) -> Lags:
    """Each cell holds until the partition's next one. ``group``: the group of each cell as ``windows`` numbers it."""
    first = windows.at(group, found.time_ms)
    end = np.append(first[1:], 0)[: len(first)]
    end[found.is_last] = windows.ends(group[found.is_last])
    is_known = found.lag != NONE
    has_time = found.lag_ms != NONE
    is_unknown = found.is_there & ~is_known & (found.out == 0)
    is_timeless = found.is_there & ~has_time & (found.out == 0)
    is_past, is_below = found.out == PAST_END, found.out == BELOW_START
    return Lags(
        total=windows.summed(first[is_known], end[is_known], found.lag[is_known]),
        highest=windows.highest(first[is_known], end[is_known], found.lag[is_known]),
        highest_ms=windows.highest(first[has_time], end[has_time], found.lag_ms[has_time]),
        known=windows.summed(first[is_known], end[is_known]),
        unknown=windows.summed(first[is_unknown], end[is_unknown]),
        unknown_ms=windows.summed(first[is_timeless], end[is_timeless]),
        past_end=windows.summed(first[is_past], end[is_past]),
        below_start=windows.summed(first[is_below], end[is_below]),
        commits=windows.counted(first[found.commits > 0], found.commits[found.commits > 0]),
    )


GROUP_HEALTH_COLUMNS = columns_of("group_health", text=TEXT)
STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND", "BELOW_START", "PAST_END")
"""From good to bad, Burrow's as it numbers them."""
_STALLED = ("STOP", "STALL")
_BADNESS = np.array([STATUSES.index(status) for status in BURROW])
"""By the number of a status."""


def group_health_rows(inputs: PartitionInputs) -> pa.Table:
    """Return the table's rows, sorted by their key and time."""
    facts = _Facts(inputs)
    windows = Windows.of(facts.moments(), inputs.window_ms)
    behind = lags(windows, facts.cells, facts.numbers(series(inputs).groups)[facts.cells.group])
    members, has_members = facts.members_at(windows)
    rebalances, rebalance_ms, has_time = facts.rebalances_in(windows)
    status = facts.status_in(windows, behind)
    columns = {
        "group": text_column(*only_used(windows.group, facts.groups)),
        "window_start_ms": pa.array(windows.window * inputs.window_ms),
        "window_ms": pa.array(np.full(len(windows), inputs.window_ms)),
        "status": text_column(*only_used(status, pa.array(STATUSES))),
        "members": pa.array(members.astype(np.int32), mask=~has_members),
        "rebalances": pa.array(rebalances.astype(np.int32)),
        "rebalance_ms": pa.array(rebalance_ms, mask=~has_time),
        "commits": pa.array(behind.commits),
        "total_lag": pa.array(behind.total, mask=(behind.unknown > 0) | (behind.known == 0)),
        "max_lag": pa.array(behind.highest, mask=(behind.unknown > 0) | (behind.highest == NONE)),
        "max_lag_ms": pa.array(behind.highest_ms, mask=(behind.unknown_ms > 0) | (behind.highest_ms == NONE)),
        "resets": pa.array(windows.counted(windows.at(*facts.resets)).astype(np.int32)),
    }
    is_unmeasured = (status < 0) | (behind.unknown > 0)  # one that is bad hides that others were not measured
    at_end = {"stalled_partitions": facts.stalled_at(windows), "past_end": behind.past_end, "below_start": behind.below_start}
    columns |= {name: pa.array(found.astype(np.int32), mask=is_unmeasured & (found == 0)) for name, found in at_end.items()}
    return pa.Table.from_arrays([columns[name] for name in GROUP_HEALTH_COLUMNS.names], schema=GROUP_HEALTH_COLUMNS)


class _Facts:
    """What the other tables say from the horizon on, in numbers; groups are numbered in the order of their names."""

    def __init__(self, inputs: PartitionInputs) -> None:
        tables = {name: inputs.table(name) for name in ("group_generations", "members")}
        commits = series(inputs)
        names = {*commits.groups.to_pylist()}
        for table in tables.values():
            names.update(table.column("group").unique().to_pylist())
        self.groups = pa.array(sorted(names, key=str.encode), pa.string())
        self._number = {name: number for number, name in enumerate(self.groups.to_pylist())}
        self._horizon = inputs.horizon.of_groups(self.groups)
        self.cells = cells(inputs)
        own = self.numbers(commits.groups)
        of_key = own[commits.group[np.flatnonzero(begins(commits.key))]]
        self._cell_group = own[self.cells.group]
        self.resets = own[commits.group[jumps(inputs).row]], commits.clock_ms[jumps(inputs).row]
        found = stalls(inputs)
        self._stalls = _Stretches(of_key[found.key], found.from_ms, found.to_ms)
        self._status = _BADNESS[found.status]
        members = tables["members"]
        self._members = _Stretches(self._group(members), int64s(members, "from_ms"), int64s(members, "to_ms", NONE))
        self._note_generations(tables["group_generations"])

    def numbers(self, names: pa.Array) -> Int64s:
        """Return the number of each name."""
        return np.array([self._number[name] for name in names.to_pylist()], np.int64)

    def moments(self) -> list[tuple[Int64s, Int64s]]:
        """Return when something happened to which group."""
        found = [
            (self._cell_group, self.cells.time_ms),
            (self._generation_group, self._generation_ms),
            self.resets,
            *self._stalls.moments(),
            *self._members.moments(),
        ]
        return [(group[is_asked], at[is_asked]) for group, at in found for is_asked in [self._is_asked(group, at)]]

    def members_at(self, windows: Windows) -> tuple[Int64s, Bools]:
        """(how many at the end of each window, whether that is known: from the first record of the group on)."""
        since = np.full(len(self.groups) + 1, len(windows))
        for group, time_ms in ((self._generation_group, self._generation_ms), (self._members.group, self._members.from_ms)):
            told = time_ms != NONE
            np.minimum.at(since, group[told], windows.at(group[told], time_ms[told]))
        is_known: Bools = np.arange(len(windows)) >= since[windows.group]
        return windows.summed(*self._members.at_ends(windows)), is_known

    def rebalances_in(self, windows: Windows) -> tuple[Int64s, Int64s, Bools]:
        """(how many, how long they took, whether that is known)."""
        counts = self._is_rebalance & self._is_asked(self._generation_group, self._generation_ms)
        row = windows.at(self._generation_group[counts], self._generation_ms[counts])
        took_ms = self._duration_ms[counts]
        timed = took_ms != NONE
        counted = windows.counted(row)
        return counted, windows.counted(row[timed], took_ms[timed]), (windows.counted(row[timed]) > 0) | (counted == 0)

    def status_in(self, windows: Windows, behind: Lags) -> Int64s:
        """The worst status, as its number; -1 where nothing bad was seen, and not all lags are known, or none is."""
        worst = windows.highest(*self._stalls.touched(windows), self._status)
        is_well = (worst == 0) | ((worst == NONE) & (behind.known > 0))
        return np.where(is_well & (behind.unknown == 0), 0, np.where(worst > 0, worst, -1))

    def stalled_at(self, windows: Windows) -> Int64s:
        """How many partitions were not read at the end of each window."""
        first, end = self._stalls.at_ends(windows)
        is_stalled = np.isin(self._status, [STATUSES.index(status) for status in _STALLED])
        return windows.summed(first[is_stalled], end[is_stalled])

    def _is_asked(self, group: Int64s, time_ms: Int64s) -> Bools:
        found: Bools = (time_ms != NONE) & (time_ms >= self._horizon[group]) & (time_ms > BEGIN_MS)
        return found

    def _group(self, table: pa.Table) -> Int64s:
        return _coded(table.column("group"), self._number)

    def _note_generations(self, table: pa.Table) -> None:
        """When each became stable, or was overtaken by the next one; one that still may become stable has no time."""
        group, generation = self._group(table), int64s(table, "generation_id", NONE)
        time_ms, stable = int64s(table, "time_ms"), int64s(table, "stable_ms", NONE)
        is_end = pc.equal(table.column("cause"), Cause.GROUP_DELETED.value).to_numpy()
        is_followed = np.append(group[1:] == group[:-1], False)[: len(group)]
        overtaken = np.where(is_followed, np.append(time_ms[1:], NONE)[: len(group)], NONE)
        self._generation_group = group
        self._generation_ms = np.where(stable != NONE, stable, np.where(is_end, time_ms, overtaken))
        self._duration_ms = int64s(table, "duration_ms", NONE)
        self._is_rebalance = begins(group, generation) & ~is_end


class _Stretches:
    """What holds from ``from_ms`` on and before ``to_ms``, or to the end."""

    def __init__(self, group: Int64s, from_ms: Int64s, to_ms: Int64s) -> None:
        self.group, self.from_ms, self.to_ms = group, from_ms, to_ms
        self.is_open = to_ms == NONE

    def moments(self) -> list[tuple[Int64s, Int64s]]:
        """Return when the stretches begin and end."""
        return [(self.group, self.from_ms), (self.group[~self.is_open], self.to_ms[~self.is_open])]

    def at_ends(self, windows: Windows) -> tuple[Int64s, Int64s]:
        """The rows (from, before) at whose windows' ends they hold."""
        return windows.at(self.group, self.from_ms), self._end(windows, windows.at(self.group, self.to_ms))

    def touched(self, windows: Windows) -> tuple[Int64s, Int64s]:
        """The rows (from, before) in whose windows they hold for a moment at least."""
        behind = windows.from_window(self.group, (self.to_ms - 1) // windows.window_ms + 1)
        first = windows.at(self.group, self.from_ms)
        least = np.where(self.from_ms > BEGIN_MS, first + 1, first)  # of one from before the horizon the windows may all be gone
        return first, self._end(windows, np.maximum(behind, least))

    def _end(self, windows: Windows, closed: Int64s) -> Int64s:
        return np.where(self.is_open, windows.ends(self.group), closed)


def _coded(texts: pa.ChunkedArray, codes: Mapping[str, int]) -> Int64s:
    """Return the number of each text."""
    ranks, distinct = ranked(texts)
    return np.array([codes[text] for text in distinct.to_pylist()], np.int64)[ranks]


GROUP_HEALTH = Table("group_health", GROUP_HEALTH_COLUMNS, group_health_rows)
"""How a group was: a row for each window in which something happened; one without a row is as the last.

``status`` is the worst that Burrow's rules say of a partition in the window (``OK``, ``WARN``, ``STOP``, ``STALL``, ``REWIND``,
in this order; Burrow itself shows the last three as ``ERR``), or ``BELOW_START`` or ``PAST_END``; null where no lag is known, or
not all are and nothing bad was seen.
``members``, the lags, ``stalled_partitions`` (in state STALL or STOP), ``past_end`` and ``below_start`` are as of the window's
end, over the partitions that have a commit: sum and maxima are of what is unread, and null where the end of one of their logs is
not known; a commit out of its log's range has no part in them. A count of none is null where not all partitions were measured.
``members`` is null where no record of the group says. ``rebalances`` became stable in the window, or were
overtaken in it; ``rebalance_ms`` is how long they took together, null if none of them tells.
"""
