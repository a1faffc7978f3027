"""What an incremental build goes on from: the state of a slice, rows of tables as large as what is still going on.

From the horizon on rows are made again by each build, with all that came since, and take the place of those that were there. So
the state has every commit from the horizon on, and of what is older as much as those rows look back at: of each series its last
entries by Burrow's rules and a few numbers, of each group where playing it back stands and its last generation, of each log the
samples around these commits. A horizon is one of a partition of the log: each group lives on one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.sampled import CLEANED, Sampled, each_sample_once
from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, order_by, ranked
from kgctl.pipeline.decode.schemas import COMMITS, TEXT
from kgctl.pipeline.store.states import packed, unpacked
from kgctl.pipeline.tables.collected import LOG_END_COLUMNS
from kgctl.pipeline.tables.lag import INTERVALS, MIN_DISTANCE_MS, status_until
from kgctl.pipeline.tables.membership import (
    ASSIGNMENT_CHANGES,
    GENERATION_COLUMNS,
    MEMBER_CHANGES,
    MEMBER_COLUMNS,
)
from kgctl.pipeline.tables.points import ends_of_rows
from kgctl.pipeline.tables.registry import BEGIN_MS, Horizon, PartitionInputs
from kgctl.pipeline.tables.replay import NAMES, STATES, spans
from kgctl.pipeline.tables.resets import moves_until
from kgctl.pipeline.tables.samples import UNKNOWN
from kgctl.pipeline.tables.series import KNOWN, CommitSeries, begins, known_table, series
from kgctl.pipeline.tables.windows import cells_until


class Slice(NamedTuple):
    """The partitions of the log from ``first`` on and before ``end``."""

    first: int
    end: int


def text(name: str) -> pa.Field:
    """A column of texts that repeat."""
    return pa.field(name, TEXT, nullable=False)


def number(name: str) -> pa.Field:
    """A column of whole numbers."""
    return pa.field(name, pa.int64(), nullable=False)


PARTITIONS = pa.schema(
    [number(name) for name in ("log_partition", "newest_ms", "last_ms", "horizon_ms")]
    + [number(name) for name in ("first_offset", "last_offset", "first_run_ms", "last_run_ms")]
)
"""Of each partition of the log how far its clock has come (`kgctl.pipeline.tables.rounds`), its horizon, its last run."""
ENTRIES = pa.schema(
    [
        *(text("group"), text("topic"), pa.field("partition", pa.int32(), nullable=False), ("committed_offset", pa.int64())),
        *(number(name) for name in ("time_ms", "clock_ms", "effect_offset", "log_offset")),
        *(("topic_id", TEXT), ("end", pa.int64()), number("out")),
    ]
)
"""Rows of ``offset_commits`` with their clock, and the log's end of old ones. Offsets of the log are places."""
GROUPS = pa.schema([text("group"), pa.field("state", pa.string(), nullable=False), pa.field("is_waiting", pa.bool_())])
IS_OPEN = pa.field("is_open", pa.bool_(), nullable=False)
"""That playing back the group makes the row again."""
OPEN = "open"
"""Rows of tables that the next record of their group may still change, by this name and the table's."""
SCHEMAS: Mapping[str, pa.Schema] = {
    "partitions": PARTITIONS,
    "homes": pa.schema([text("group"), number("log_partition")]),
    "pending": COMMITS,
    "entries": ENTRIES,
    "known": KNOWN,
    STATES: GROUPS,
    NAMES: pa.schema([text("group"), text("topic_id"), text("topic")]),
    "group_generations": GENERATION_COLUMNS.append(IS_OPEN),
    "members": MEMBER_COLUMNS.append(IS_OPEN),
    f"{OPEN} generations": GENERATION_COLUMNS,
    f"{OPEN} member_changes": MEMBER_CHANGES,
    f"{OPEN} assignment_changes": ASSIGNMENT_CHANGES,
    "samples": CLEANED,
    "raw samples": LOG_END_COLUMNS,
}
"""``pending``: commits of transactions that have not ended."""


@dataclass(frozen=True)
class Carried:
    """The state of a slice. `bytes_of` and `of_bytes` are each other's reverse. ``sampled_ms``: see `Sampled.until_ms`;
    ``likely_ms``: the highest horizon that samples may still be from before."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    sampled_ms: int = BEGIN_MS
    likely_ms: int = BEGIN_MS

    def table(self, name: str) -> pa.Table:
        """Return a table's rows; none where the state has no such table."""
        found = self.tables.get(name)
        return SCHEMAS[name].empty_table() if found is None else found

    @property
    def sampled(self) -> Sampled:
        """Return its samples."""
        return Sampled(self.table("samples"), self.table("raw samples"), self.sampled_ms)

    def of_slice(self, chosen: Slice) -> Carried:
        """Return the part of some partitions of the log, with the samples of all."""
        if set(self.table("partitions").column("log_partition").to_pylist()) <= set(range(*chosen)):
            return self
        homes = self.table("homes")
        partition = homes.column("log_partition")
        mine = homes.filter(pc.and_(pc.greater_equal(partition, chosen.first), pc.less(partition, chosen.end)))
        groups = pc.unique(mine.column("group").cast(pa.string()))
        return replace(self, tables={name: _of_slice(name, self.table(name), chosen, groups) for name in SCHEMAS})


def _of_slice(name: str, table: pa.Table, chosen: Slice, groups: pa.Array) -> pa.Table:
    if name == "partitions":
        partition = table.column("log_partition")
        return table.filter(pc.and_(pc.greater_equal(partition, chosen.first), pc.less(partition, chosen.end)))
    return table.filter(is_of(table, groups)) if "group" in table.column_names else table


def is_of(table: pa.Table, groups: pa.Array | Iterable[str]) -> pa.ChunkedArray:
    """Which rows are of these groups."""
    wanted = groups if isinstance(groups, pa.Array) else pa.array(sorted(groups), pa.string())
    return pc.is_in(table.column("group").cast(pa.string()), wanted)


def together(parts: Sequence[Carried]) -> Carried:
    """The states of slices as one."""
    if len(parts) <= 1:
        return parts[0] if parts else Carried()
    tables = {name: pa.concat_tables([part.table(name) for part in parts]).unify_dictionaries() for name in SCHEMAS}
    tables["samples"] = _each_once(tables["samples"])
    tables["raw samples"] = each_sample_once(tables["raw samples"])
    return Carried(tables, min(part.sampled_ms for part in parts), max(part.likely_ms for part in parts))


def _each_once(cleaned: pa.Table) -> pa.Table:
    """Slices number samples by themselves: of those of a moment the ones of the slice that has most of the log."""
    names = ("topic", "partition", "timestamp_ms", "number")
    codes = [ranked(cleaned.column(name))[0] if name == "topic" else int64s(cleaned, name) for name in names]
    order = order_by(codes)
    return cleaned.take(pa.array(order[begins(*(each[order] for each in codes[:-1]))]))


def bytes_of(carried: Carried) -> bytes:
    """Return the state as the table ``state`` keeps it."""
    head = {"sampled_ms": carried.sampled_ms, "likely_ms": carried.likely_ms}
    stored = {name: carried.table(name) for name in SCHEMAS}
    for name in ("samples", "raw samples"):  # topics as older versions read them
        stored[name] = stored[name].cast(SCHEMAS[name].set(0, SCHEMAS[name].field("topic").with_type(pa.string())))
    return packed(head, stored)


def of_bytes(data: bytes) -> Carried:
    """Return the state that `bytes_of` wrote, of this version or an older one."""
    head, tables = unpacked(data)
    as_now = {name: table.select(SCHEMAS[name].names).cast(SCHEMAS[name]) for name, table in tables.items()}
    return Carried(as_now, head["sampled_ms"], head.get("likely_ms", BEGIN_MS))


def entries_of(commits: pa.Table) -> pa.Table:
    """Rows of ``offset_commits`` with their clock as new ones of `ENTRIES`."""
    columns = {name: commits.column(name) for name in ENTRIES.names if name in commits.column_names}
    columns["end"], columns["out"] = pa.nulls(commits.num_rows, pa.int64()), pa.repeat(pa.scalar(0), commits.num_rows)
    return pa.Table.from_arrays([columns[each.name].cast(each.type) for each in ENTRIES], schema=ENTRIES)


def carry(
    inputs: PartitionInputs, made: PartitionInputs, before: Carried, after: Horizon, played: set[str]
) -> dict[str, pa.Table]:
    """What of these inputs is kept for rows from later horizons on. ``made``: those of which tables were made, which have all
    commits from before; ``played``: the groups that were played back."""
    commits, found = series(inputs), spans(inputs)
    until = series(made).of_each(after)
    numbers = {**moves_until(made, until), **status_until(made, until), **cells_until(made, until)}
    later = () if made is inputs else [inputs.offset_commits.filter(pc.invert(pa.array(commits.is_before(after))))]
    states = found.states()
    columns = [list(states), [state for state, _ in states.values()], [is_waiting for _, is_waiting in states.values()]]
    fresh = {
        STATES: pa.Table.from_arrays(
            [pa.array(each, kind.type) for each, kind in zip(columns, GROUPS, strict=True)], schema=GROUPS
        ),
        "group_generations": _kept_generations(inputs, commits, after, played),
        "members": _kept_members(inputs, after, played),
    }
    others = {name: before.table(name).filter(pc.invert(is_of(before.table(name), played))) for name in fresh}
    return {
        "entries": pa.concat_tables([_kept_entries(made, series(made), until), *later]).unify_dictionaries(),
        "known": known_table(made, numbers),
        **{name: pa.concat_tables([others[name], fresh[name].cast(SCHEMAS[name])]).unify_dictionaries() for name in fresh},
    }


def _kept_entries(inputs: PartitionInputs, commits: CommitSeries, until: Int64s) -> pa.Table:
    """All from the horizon on, and the first and last row of each of the last entries before it (`kgctl.pipeline.tables.lag`).
    Old ones have the time that counts, which never goes back, and what is known of the log then."""
    is_old = commits.clock_ms < until[commits.key]
    run = np.cumsum(begins(commits.key) | (commits.previous < 0)) - 1
    first = begins(run, commits.clock_ms // MIN_DISTANCE_MS)
    last = np.append(first[1:], True)[: len(first)]
    entry = np.cumsum(first) - 1
    last_entry = np.full(int(commits.key[-1]) + 1 if len(commits.key) else 0, -1)
    np.maximum.at(last_entry, commits.key[is_old], entry[is_old])
    rows = np.flatnonzero(~is_old | ((first | last) & (entry > last_entry[commits.key] - INTERVALS)))
    end, out = ends_of_rows(inputs)
    is_known = is_old[rows] & (end[rows] != UNKNOWN)
    table = inputs.offset_commits.take(pa.array(rows))
    columns = {name: table.column(name) for name in ENTRIES.names}
    columns["clock_ms"] = pa.array(np.where(is_old[rows], commits.clock_ms[rows], int64s(table, "clock_ms")))
    columns["end"] = pa.array(end[rows], mask=~is_known)
    columns["out"] = pa.array(np.where(is_old[rows], out[rows], 0))
    return pa.table(columns, schema=ENTRIES)


def _kept_generations(inputs: PartitionInputs, commits: CommitSeries, after: Horizon, played: set[str]) -> pa.Table:
    """Of each group those since the horizon and since the first commit that is looked at again, and the one before; and one that
    tells that it had members."""
    every = inputs.table("group_generations")
    table = every.filter(is_of(every, played))
    kept = np.zeros(table.num_rows, np.bool_)
    names = ("group", "log_offset", "time_ms", "stable_ms", "members", "generation_id")
    rows = {name: table.column(name).to_pylist() for name in names}
    since = _first_looked_at(commits, after)
    for low, high in _runs(rows["group"]):
        group, runs = rows["group"][low], range(low, high)
        horizon_ms = after.of_groups(pa.array([group]))[0]
        latest = {at: max(rows["time_ms"][at], rows["stable_ms"][at] or BEGIN_MS) for at in runs}
        begin = next((at for at in runs if latest[at] >= horizon_ms), high - 1)
        from_place = since.get(group, 1 << 62)
        begin = min(begin, max((at for at in runs if rows["log_offset"][at] <= from_place), default=low))
        begin = max(begin - 1, low)
        kept[begin:high] = True
        had = [at for at in range(low, begin + 1) if max(rows["members"][at], rows["generation_id"][at]) > 0]
        kept[had[-1:]] = True
    unsettled = pa.array([row.log_offset for row in spans(inputs).unsettled], pa.int64())
    found = table.filter(pa.array(kept))
    return found.append_column(IS_OPEN, pc.is_in(found.column("log_offset"), unsettled))


def _first_looked_at(commits: CommitSeries, after: Horizon) -> dict[str, int]:
    """By group, the place of the first commit from the horizon on."""
    rows = np.flatnonzero(commits.clock_ms >= after.of_groups(commits.groups)[commits.group])
    places = np.full(len(commits.groups), 1 << 62)
    np.minimum.at(places, commits.group[rows], commits.log_offset[rows])
    return dict(zip(commits.groups.to_pylist(), places.tolist(), strict=True))


def _runs(values: list[Any]) -> list[tuple[int, int]]:
    edges = [0, *(at for at in range(1, len(values)) if values[at] != values[at - 1]), len(values)]
    return [(low, high) for low, high in pairwise(edges) if low < high]


def _kept_members(inputs: PartitionInputs, after: Horizon, played: set[str]) -> pa.Table:
    """Those that are there, those that left since the horizon, and of each group the last one before."""
    every = inputs.table("members")
    table = every.filter(is_of(every, played))
    still = {(span.group, span.member_id, span.from_ms) for span, _ in spans(inputs).open_members}
    keys = zip(*(table.column(name).to_pylist() for name in ("group", "member_id", "from_ms")), strict=True)
    is_open = np.fromiter((key in still for key in keys), np.bool_, table.num_rows)
    left_ms = int64s(table, "to_ms", np.iinfo(np.int64).max)
    groups = table.column("group").to_pylist()
    last: dict[str, int] = {}
    for at in np.flatnonzero(~is_open).tolist():
        if groups[at] not in last or left_ms[at] > left_ms[last[groups[at]]]:
            last[groups[at]] = at
    kept: Bools = is_open | (left_ms >= after.of_rows(table.column("group")))
    kept[list(last.values())] = True
    return table.append_column(IS_OPEN, pa.array(is_open)).filter(pa.array(kept))
