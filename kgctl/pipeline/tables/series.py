"""Commits cut into series, one a group, topic and partition; and what is known of each from before the horizon: a few numbers
by which rows from there on are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, only_used, packed, ranked, text_column
from kgctl.pipeline.decode.schemas import TEXT

if TYPE_CHECKING:
    from kgctl.pipeline.tables.registry import Horizon, PartitionInputs


_BITS = 63


def begins(*columns: npt.NDArray[np.generic]) -> Bools:
    """Where a row differs from the one before in one of the columns; the first row does."""
    found = np.ones(len(columns[0]), np.bool_)
    found[1:] = False
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def running_max(values: Int64s, run: Int64s) -> Int64s:
    """The greatest value so far of each run; ``run`` ascends."""
    both, width = packed([run, values])
    if width <= _BITS:
        low = int(values.min()) if len(values) else 0
        mask = (1 << (int(values.max()) - low).bit_length()) - 1 if len(values) else 0
        highest: Int64s = (np.maximum.accumulate(both) & mask) + low
        return highest
    distinct, rank = np.unique(values, return_inverse=True)
    found: Int64s = distinct[running_max(rank.astype(np.int64), run)]
    return found


def last_at_or_before(keys: Int64s, values: Int64s, key: Int64s, value: Int64s) -> Int64s:
    """The last row of (keys, values), which are sorted, that has ``key`` and at most ``value``; -1 where there is none."""
    count = len(keys)
    if not count or not len(key):
        return np.full(len(key), -1, np.int64)
    both, width = packed([np.concatenate([keys, key]), np.concatenate([values, value])])
    if width > _BITS:
        rank = np.unique(np.concatenate([values, value]), return_inverse=True)[1].astype(np.int64)
        return last_at_or_before(keys, rank[:count], key, rank[count:])
    at: Int64s = np.searchsorted(both[:count], both[count:], "right") - 1
    at[keys[at] != key] = -1
    return at


def window_counts(flags: Bools, first: Int64s, last: Int64s) -> Int64s:
    """How many flags are set in rows ``first`` to ``last``, ends included; ``first`` may be just behind ``last``: none."""
    total = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=total[1:])
    counted: Int64s = total[last + 1] - total[first]
    return counted


@dataclass(frozen=True)
class CommitSeries:
    """One entry a row of ``offset_commits``, in its order.

    ``key`` numbers the series, ascending. ``clock_ms`` is the time, or that of a row before it in the series if that is later,
    so that it never goes back. ``previous`` is the row of the commit before, -1 where there is none or it was removed since.
    ``horizon`` is that of each series (`kgctl.pipeline.tables.registry.Horizon`).
    """

    key: Int64s
    groups: pa.Array
    topics: pa.Array
    group: Int64s
    topic: Int64s
    partition: Int64s
    is_commit: Bools
    committed: Int64s
    clock_ms: Int64s
    log_offset: Int64s
    previous: Int64s
    horizon: Int64s

    @property
    def is_asked(self) -> Bools:
        """Return the rows that are asked for: those from the horizon on."""
        found: Bools = self.clock_ms >= self.horizon[self.key]
        return found

    def of_each(self, later: Horizon) -> Int64s:
        """Return a later horizon of each series."""
        found: Int64s = later.of_groups(self.groups)[self.group[np.flatnonzero(begins(self.key))]]
        return found

    def is_before(self, later: Horizon) -> Bools:
        """Return the rows from before a later horizon."""
        found: Bools = self.clock_ms < self.of_each(later)[self.key]
        return found

    def names(self, rows: Int64s) -> dict[str, pa.Array]:
        """The columns ``group``, ``topic``, ``partition`` of these rows."""
        return {
            "group": text_column(*only_used(self.group[rows], self.groups)),
            "topic": text_column(*only_used(self.topic[rows], self.topics)),
            "partition": pa.array(self.partition[rows].astype(np.int32)),
        }


def series(inputs: PartitionInputs) -> CommitSeries:
    """Return the inputs' series, cut up once for all tables."""
    return inputs.once("series of commits", _series)


def _series(inputs: PartitionInputs) -> CommitSeries:
    table = inputs.offset_commits
    group, groups = ranked(table.column("group"))
    topic, topics = ranked(table.column("topic"))
    clock = "clock_ms" if "clock_ms" in table.column_names else "time_ms"
    partition, committed, time_ms, log_offset = (
        int64s(table, name) for name in ("partition", "committed_offset", clock, "log_offset")
    )
    first = begins(group, topic, partition)
    key = np.cumsum(first) - 1
    is_commit = np.ones(len(key), np.bool_)
    if table.column("committed_offset").null_count:
        is_commit = table.column("committed_offset").is_valid().to_numpy()
    previous = np.arange(len(key)) - 1
    after_commit = np.append(False, is_commit[:-1])[: len(key)]
    previous[first | ~is_commit | ~after_commit] = -1
    clock_ms = running_max(time_ms, key)
    horizon = inputs.horizon.of_groups(groups)[group[first]]
    return CommitSeries(
        key, groups, topics, group, topic, partition, is_commit, committed, clock_ms, log_offset, previous, horizon
    )


NONE = np.iinfo(np.int64).min
"""No value."""
NUMBERS: Mapping[str, int] = {
    "fastest": 0,
    "steps": 0,
    "stretch": -1,
    "ahead": 0,
    "status": 0,
    "is_there": 0,
    "lag": NONE,
    "lag_ms": NONE,
    "out": 0,
    "end": -1,
}
"""Each with its value of a series that is new: the greatest speed in records a second, how many steps forward it has shown; in
which stretch without members it last moved (-1: in none), and how often forward in a row then; its status; and, of the last
window in which it was looked at, whether it had a commit, its lag, its lag in time, whether the commit was out of the log's
range, and the log's end (-1: unknown)."""
KNOWN = pa.schema(
    [
        pa.field("group", TEXT, nullable=False),
        pa.field("topic", TEXT, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        *(pa.field(name, pa.int64(), nullable=False) for name in NUMBERS),
    ]
)
Known = Mapping[str, Int64s]
"""The columns of `NUMBERS`, an entry each series."""


def known_of(inputs: PartitionInputs) -> Known:
    """Return what was carried from before the horizon."""
    return inputs.once("known of series", _known)


def _known(inputs: PartitionInputs) -> Known:
    commits = series(inputs)
    count = int(commits.key[-1]) + 1 if len(commits.key) else 0
    found = {name: np.full(count, value, np.int64) for name, value in NUMBERS.items()}
    carried = inputs.carried.get("known")
    if carried is None or not carried.num_rows:
        return found
    first = np.flatnonzero(begins(commits.key))
    group, topic = (
        pc.index_in(carried.column(name).cast(pa.string()), value_set=values).fill_null(-1).to_numpy()
        for name, values in (("group", commits.groups), ("topic", commits.topics))
    )
    both, _ = packed(
        [
            np.concatenate([column[first], other])
            for column, other in (
                (commits.group, group),
                (commits.topic, topic),
                (commits.partition, int64s(carried, "partition")),
            )
        ]
    )
    here, carried_keys = both[: len(first)], both[len(first) :]
    is_here = np.isin(carried_keys, here)  # all commits of others are from the horizon on, and so nothing is known of them
    at = np.searchsorted(here, carried_keys[is_here])
    for name, numbers in found.items():
        numbers[at] = int64s(carried, name)[is_here]
    return found


def known_table(inputs: PartitionInputs, numbers: Known) -> pa.Table:
    """Return a row (`KNOWN`) for each series."""
    commits = series(inputs)
    columns = {**commits.names(np.flatnonzero(begins(commits.key))), **{name: pa.array(numbers[name]) for name in NUMBERS}}
    return pa.Table.from_arrays([columns[name] for name in KNOWN.names], schema=KNOWN)
