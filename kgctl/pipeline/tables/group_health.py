"""How a group was, in windows of time: a row for each window in which something happened; one without a row is as the last.

``status`` is the worst that Burrow's rules say of a partition in the window (``OK``, ``WARN``, ``STOP``, ``STALL``, ``REWIND``,
in this order; Burrow itself shows the last three as ``ERR``); null where no lag is known. ``members``, the lags and
``stalled_partitions`` (in state STALL or STOP) are as of the window's end, over the partitions that have a commit: sum and maxima
are null where one of them is not known. ``members`` is null where no record of the group says. ``rebalances`` became stable in
the window, or were overtaken after they began in it; ``rebalance_ms`` is how long they took together, null if none of them tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, only_used, ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT
from kgctl.pipeline.tables.groups.causes import Cause
from kgctl.pipeline.tables.health.lags import Lags, cells, lags
from kgctl.pipeline.tables.health.windows import NONE, Windows
from kgctl.pipeline.tables.series.commits import series

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import PartitionInputs

NAME = "group_health"
VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("window_start_ms", pa.int64(), nullable=False),
        pa.field("window_ms", pa.int64(), nullable=False),
        ("status", TEXT),
        ("members", pa.int32()),
        pa.field("rebalances", pa.int32(), nullable=False),
        ("rebalance_ms", pa.int64()),
        pa.field("commits", pa.int64(), nullable=False),
        ("total_lag", pa.int64()),
        ("max_lag", pa.int64()),
        ("max_lag_ms", pa.int64()),
        pa.field("resets", pa.int32(), nullable=False),
        pa.field("stalled_partitions", pa.int32(), nullable=False),
    ]
)
STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND")
"""From good to bad, as Burrow numbers them."""
_STALLED = ("STOP", "STALL")


def build(inputs: PartitionInputs) -> pa.Table:
    """Sorted by group and window_start_ms."""
    facts = _Facts(inputs)
    windows = Windows.of(facts.moments(), inputs.window_ms)
    behind = lags(windows, facts.cells, facts.numbers(series(inputs).groups)[facts.cells.group])
    members, has_members = facts.members_at(windows)
    rebalances, rebalance_ms, has_time = facts.rebalances_in(windows)
    columns = {
        "group": text_column(*only_used(windows.group, facts.groups)),
        "window_start_ms": pa.array(windows.window * inputs.window_ms),
        "window_ms": pa.array(np.full(len(windows), inputs.window_ms)),
        "status": text_column(*only_used(facts.status_in(windows, behind), pa.array(STATUSES))),
        "members": pa.array(members.astype(np.int32), mask=~has_members),
        "rebalances": pa.array(rebalances.astype(np.int32)),
        "rebalance_ms": pa.array(rebalance_ms, mask=~has_time),
        "commits": pa.array(behind.commits),
        "total_lag": pa.array(behind.total, mask=(behind.unknown > 0) | (behind.known == 0)),
        "max_lag": pa.array(behind.highest, mask=(behind.unknown > 0) | (behind.highest == NONE)),
        "max_lag_ms": pa.array(behind.highest_ms, mask=(behind.unknown_ms > 0) | (behind.highest_ms == NONE)),
        "resets": pa.array(windows.counted(windows.at(*facts.resets)).astype(np.int32)),
        "stalled_partitions": pa.array(facts.stalled_at(windows).astype(np.int32)),
    }
    return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


class _Facts:
    """What the other tables say, in numbers; groups are numbered in the order of their names."""

    def __init__(self, inputs: PartitionInputs) -> None:
        tables = {name: inputs.table(name) for name in ("group_generations", "members", "stalls", "resets")}
        names = {*series(inputs).groups.to_pylist()}
        for table in tables.values():
            names.update(table.column("group").unique().to_pylist())
        self.groups = pa.array(sorted(names, key=str.encode), pa.string())
        self._number = {name: number for number, name in enumerate(self.groups.to_pylist())}
        self.cells = cells(inputs)
        self._cell_group = self.numbers(series(inputs).groups)[self.cells.group]
        self.resets = self._group(tables["resets"]), int64s(tables["resets"], "time_ms", NONE)
        self._stalls = _Stretches(self._group(tables["stalls"]), tables["stalls"])
        self._status = _coded(tables["stalls"].column("status"), {status: code for code, status in enumerate(STATUSES)})
        self._members = _Stretches(self._group(tables["members"]), tables["members"])
        self._note_generations(tables["group_generations"])

    def numbers(self, names: pa.Array) -> Int64s:
        """The number of each name."""
        return np.array([self._number[name] for name in names.to_pylist()], np.int64)

    def moments(self) -> list[tuple[Int64s, Int64s]]:
        """When something happened to which group."""
        return [
            (self._cell_group, self.cells.time_ms),
            (self._generation_group, self._generation_ms),
            self.resets,
            *self._stalls.moments(),
            *self._members.moments(),
        ]

    def members_at(self, windows: Windows) -> tuple[Int64s, Bools]:
        """(how many at the end of each window, whether that is known: from the first record of the group on)."""
        since = np.full(len(self.groups) + 1, len(windows))
        for group, time_ms in ((self._generation_group, self._generation_ms), (self._members.group, self._members.from_ms)):
            np.minimum.at(since, group, windows.at(group, time_ms))
        is_known: Bools = np.arange(len(windows)) >= since[windows.group]
        return windows.summed(*self._members.at_ends(windows)), is_known

    def rebalances_in(self, windows: Windows) -> tuple[Int64s, Int64s, Bools]:
        """(how many, how long they took, whether that is known)."""
        row = windows.at(self._generation_group[self._is_rebalance], self._generation_ms[self._is_rebalance])
        took_ms = self._duration_ms[self._is_rebalance]
        timed = took_ms != NONE
        counted = windows.counted(row)
        return counted, windows.counted(row[timed], took_ms[timed]), (windows.counted(row[timed]) > 0) | (counted == 0)

    def status_in(self, windows: Windows, behind: Lags) -> Int64s:
        """The worst status, as its number; -1 where no lag is known and nothing bad was seen."""
        worst = windows.highest(*self._stalls.touched(windows), self._status)
        return np.where(worst != NONE, worst, np.where(behind.known > 0, 0, -1))

    def stalled_at(self, windows: Windows) -> Int64s:
        """How many partitions were not read at the end of each window."""
        first, end = self._stalls.at_ends(windows)
        is_stalled = np.isin(self._status, [STATUSES.index(status) for status in _STALLED])
        return windows.summed(first[is_stalled], end[is_stalled])

    def _group(self, table: pa.Table) -> Int64s:
        return _coded(table.column("group"), self._number)

    def _note_generations(self, table: pa.Table) -> None:
        group, generation = self._group(table), int64s(table, "generation_id", NONE)
        started, stable = int64s(table, "started_ms", NONE), int64s(table, "stable_ms", NONE)
        is_new = np.ones(len(group), np.bool_)
        is_new[1:] = (group[1:] != group[:-1]) | (generation[1:] != generation[:-1])
        is_end = pc.equal(table.column("cause"), Cause.GROUP_DELETED.value).to_numpy()
        self._generation_group = group
        self._generation_ms = np.where(stable != NONE, stable, started)
        self._duration_ms = int64s(table, "duration_ms", NONE)
        self._is_rebalance = is_new & ~is_end


class _Stretches:
    """Rows that hold from ``from_ms`` on and before ``to_ms``, or to the end."""

    def __init__(self, group: Int64s, table: pa.Table) -> None:
        self.group = group
        self.from_ms, self.to_ms = int64s(table, "from_ms", NONE), int64s(table, "to_ms", NONE)
        self.is_open = self.to_ms == NONE

    def moments(self) -> list[tuple[Int64s, Int64s]]:
        """When they begin and end."""
        return [(self.group, self.from_ms), (self.group[~self.is_open], self.to_ms[~self.is_open])]

    def at_ends(self, windows: Windows) -> tuple[Int64s, Int64s]:
        """The rows (from, before) at whose windows' ends they hold."""
        return windows.at(self.group, self.from_ms), self._end(windows, windows.at(self.group, self.to_ms))

    def touched(self, windows: Windows) -> tuple[Int64s, Int64s]:
        """The rows (from, before) in whose windows they hold for a moment at least."""
        behind = windows.from_window(self.group, (self.to_ms - 1) // windows.window_ms + 1)
        first = windows.at(self.group, self.from_ms)
        return first, self._end(windows, np.maximum(behind, first + 1))

    def _end(self, windows: Windows, closed: Int64s) -> Int64s:
        return np.where(self.is_open, windows.ends(self.group), closed)


def _coded(texts: pa.ChunkedArray, codes: Mapping[str, int]) -> Int64s:
    """The number of each text."""
    ranks, distinct = ranked(texts)
    return np.array([codes[text] for text in distinct.to_pylist()], np.int64)[ranks]
