"""What an incremental build goes on from: the state of a slice, rows of tables as large as what is still going on.

From the horizon on rows are made again by each build, with all that came since, and take the place of those that were there. So
the state has every commit from the horizon on, and of what is older as much as those rows look back at: of each series its last
entries by Burrow's rules and its speeds, of each group where playing it back stands and its last generation, of each log the
samples around these commits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.builds.sampled import CLEANED, settled
from kgctl.pipeline.builds.slices import Slice, bucket_of
from kgctl.pipeline.decode.cells import Bools, Int64s
from kgctl.pipeline.decode.columns import int64s
from kgctl.pipeline.decode.schemas import COMMITS, OFFSET_COMMITS
from kgctl.pipeline.tables import group_generations, members
from kgctl.pipeline.tables.groups.replay import STATES, spans
from kgctl.pipeline.tables.outdated import OutdatedError
from kgctl.pipeline.tables.registry import BEGIN_MS, PartitionInputs
from kgctl.pipeline.tables.resets import SPEEDS, speeds_until
from kgctl.pipeline.tables.series.burrow import INTERVALS, MIN_DISTANCE_MS
from kgctl.pipeline.tables.series.commits import Series, series
from kgctl.pipeline.tables.series.samples import Samples, samples
from kgctl.pipeline.tables.series.scan import begins

GROUPS = pa.schema([pa.field("group", pa.string(), nullable=False), pa.field("state", pa.string(), nullable=False)])
SCHEMAS: Mapping[str, pa.Schema] = {
    "open": COMMITS,
    "commits": OFFSET_COMMITS,
    "speeds": SPEEDS,
    STATES: GROUPS,
    group_generations.NAME: group_generations.SCHEMA,
    members.NAME: members.SCHEMA,
    "samples": CLEANED,
}
"""``open``: commits of transactions that have not ended. Offsets are places (`kgctl.pipeline.builds.slices`)."""


@dataclass(frozen=True)
class Carried:
    """The state of a slice. Made by `carry`; `bytes_of` and `of_bytes` are each other's reverse."""

    horizon_ms: int = BEGIN_MS
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def table(self, name: str) -> pa.Table:
        """Its rows; none where there is no state."""
        found = self.tables.get(name)
        return SCHEMAS[name].empty_table() if found is None else found

    def of_slice(self, chosen: Slice, buckets: int) -> Carried:
        """The part of some buckets; samples are of all."""
        return Carried(self.horizon_ms, {name: _of_buckets(name, table, chosen, buckets) for name, table in self.tables.items()})


def together(parts: list[Carried]) -> Carried:
    """The states of slices as one. Raises `OutdatedError` where their horizons differ: each has what lies behind its own."""
    if len(parts) <= 1:
        return parts[0] if parts else Carried()
    if len({part.horizon_ms for part in parts}) > 1:
        raise OutdatedError("the groups are spread over more slices")
    tables = {name: pa.concat_tables([part.table(name) for part in parts]).unify_dictionaries() for name in SCHEMAS}
    tables["samples"] = _each_sample_once(tables["samples"])
    return Carried(parts[0].horizon_ms, tables)


def _of_buckets(name: str, table: pa.Table, chosen: Slice, buckets: int) -> pa.Table:
    if name == "samples":
        return table
    groups = pc.unique(table.column("group")).cast(pa.string())
    mine = [group for group in groups.to_pylist() if chosen.first <= bucket_of(group, buckets) < chosen.end]
    return table.filter(pc.is_in(table.column("group").cast(pa.string()), pa.array(mine, pa.string())))


def bytes_of(carried: Carried) -> bytes:
    """As the table ``state`` keeps it."""
    return packed_tables({"horizon_ms": carried.horizon_ms}, {name: carried.table(name) for name in SCHEMAS})


def of_bytes(data: bytes) -> Carried:
    """What `bytes_of` was given."""
    head, tables = unpacked_tables(data)
    return Carried(head["horizon_ms"], tables)


def packed_tables(head: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> bytes:
    """A line of JSON, then each table as Arrow's IPC, with zstd."""
    parts = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table.combine_chunks())
        parts[name] = sink.getvalue().to_pybytes()
    sizes = {name: len(part) for name, part in parts.items()}
    return b"".join([json.dumps({"head": dict(head), "sizes": sizes}).encode(), b"\n", *parts.values()])


def unpacked_tables(data: bytes) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """What `packed_tables` was given."""
    line, _, rest = data.partition(b"\n")
    said = json.loads(line)
    tables, at = {}, 0
    for name, size in said["sizes"].items():
        with pa.ipc.open_stream(pa.py_buffer(rest[at : at + size])) as reader:
            tables[name] = reader.read_all()
        at += size
    return said["head"], tables


def carry(inputs: PartitionInputs, open_commits: pa.Table, horizon_ms: int) -> Carried:
    """The state after these inputs, for rows from ``horizon_ms`` on. All tables have been made of them."""
    commits, known, found = series(inputs), samples(inputs), spans(inputs)
    rows = np.flatnonzero(_kept_commits(commits, horizon_ms))
    tables = {
        "open": open_commits,
        "commits": _carried_commits(inputs.offset_commits, commits, rows, horizon_ms),
        "speeds": speeds_until(inputs, horizon_ms),
        group_generations.NAME: _kept_generations(inputs, commits, horizon_ms),
        members.NAME: _kept_members(inputs, horizon_ms),
        "samples": _kept_samples(commits, known, rows, horizon_ms),
    }
    states = found.states()
    tables[STATES] = pa.table({"group": list(states), "state": list(states.values())}, schema=GROUPS)
    return Carried(horizon_ms, tables)


def _kept_commits(commits: Series, horizon_ms: int) -> Bools:
    """All from the horizon on, and the first and last row of each of the last entries before it (`burrow.Entries`)."""
    is_old = commits.clock_ms < horizon_ms
    run = np.cumsum(begins(commits.key) | (commits.previous < 0)) - 1
    first = begins(run, commits.clock_ms // MIN_DISTANCE_MS)
    last = np.append(first[1:], True)[: len(first)]
    entry = np.cumsum(first) - 1
    last_entry = np.full(int(commits.key[-1]) + 1 if len(commits.key) else 0, -1)
    np.maximum.at(last_entry, commits.key[is_old], entry[is_old])
    found: Bools = ~is_old | ((first | last) & (entry > last_entry[commits.key] - INTERVALS))
    return found


def _carried_commits(table: pa.Table, commits: Series, rows: Int64s, horizon_ms: int) -> pa.Table:
    """These rows; old ones have the time that counts, which never goes back."""
    found = table.take(pa.array(rows))
    clock_ms = commits.clock_ms[rows]
    times = np.where(clock_ms < horizon_ms, clock_ms, int64s(found, "time_ms"))
    place = found.schema.get_field_index("time_ms")
    return found.set_column(place, found.schema.field(place), pa.array(times)).unify_dictionaries()


def _kept_samples(commits: Series, known: Samples, rows: Int64s, horizon_ms: int) -> pa.Table:
    """The last samples of each log, those around each kept commit and around the log's end being there, and all since that where
    a series that moves reads."""
    log = known.log_of_key[commits.key[rows]]
    has_log = log >= 0
    log, clock_ms, committed = log[has_log], commits.clock_ms[rows][has_log], commits.committed[rows][has_log]
    last = np.full(len(log), -1) if not len(known.log) else np.searchsorted(known.log, log, "right") - 1
    at = known.at(log, clock_ms)
    wanted = known.time_ms >= horizon_ms
    for sample in (at, last):
        wanted[known.needed(sample, committed)] = True
    moves = clock_ms >= horizon_ms
    if moves.any():
        before = known.around(last[moves], committed[moves])[0]
        since = np.where(before >= 0, before, np.searchsorted(known.log, log[moves]))
        edges = np.zeros(len(known.log) + 1, np.int64)
        np.add.at(edges, since, 1)
        np.subtract.at(edges, last[moves] + 1, 1)
        wanted |= np.cumsum(edges)[:-1] > 0
    every = known.table(np.ones(len(known.log), np.bool_)).cast(CLEANED)
    return _each_sample_once(pa.concat_tables([every.filter(pa.array(wanted)), settled(every, horizon_ms)]))


def _each_sample_once(table: pa.Table) -> pa.Table:
    ordered = table.sort_by([(name, "ascending") for name in ("topic", "partition", "number")])
    columns = [ordered.column(name).combine_chunks() for name in ("topic", "partition", "number")]
    codes = [(each.dictionary_encode().indices if pa.types.is_string(each.type) else each).to_numpy() for each in columns]
    return ordered.filter(pa.array(begins(*codes))) if ordered.num_rows else ordered


def merged_samples(carried: pa.Table, sampled: pa.Table, horizon_ms: int) -> pa.Table:
    """``carried`` of a slice, from before the horizon of the samples, and those of the cluster."""
    old = carried.filter(pc.less(carried.column("timestamp_ms"), horizon_ms))
    return _each_sample_once(pa.concat_tables([old, sampled]))


def _kept_generations(inputs: PartitionInputs, commits: Series, horizon_ms: int) -> pa.Table:
    """Of each group those since the horizon and since the first commit that is looked at again, and the one before; and one that
    tells that it had members. Rows that may still change are found again by playing back."""
    table = inputs.table(group_generations.NAME)
    unsettled = pa.array([row.log_offset for row in spans(inputs).unsettled], pa.int64())
    kept = np.zeros(table.num_rows, np.bool_)
    rows = {name: table.column(name).to_pylist() for name in ("group", "log_offset", "time_ms", "stable_ms", "members")}
    generation = table.column("generation_id").to_pylist()
    since = _first_looked_at(commits, horizon_ms)
    for low, high in _runs(rows["group"]):
        latest = [max(rows["time_ms"][at], rows["stable_ms"][at] or BEGIN_MS) for at in range(low, high)]
        from_place = since.get(rows["group"][low], 1 << 62)
        begin = next((at for at in range(low, high) if latest[at - low] >= horizon_ms), high - 1)
        begin = min(begin, max((at for at in range(low, high) if rows["log_offset"][at] <= from_place), default=low))
        begin = max(begin - 1, low)
        kept[begin:high] = True
        had = [at for at in range(low, begin + 1) if max(rows["members"][at], generation[at]) > 0]
        kept[had[-1:]] = True
    return table.filter(pc.and_(pa.array(kept), pc.invert(pc.is_in(table.column("log_offset"), unsettled))))


def _first_looked_at(commits: Series, horizon_ms: int) -> dict[str, int]:
    """By group, the place of the first commit from the horizon on."""
    rows = np.flatnonzero(commits.clock_ms >= horizon_ms)
    places = np.full(len(commits.groups), 1 << 62)
    np.minimum.at(places, commits.group[rows], commits.log_offset[rows])
    return dict(zip(commits.groups.to_pylist(), places.tolist(), strict=True))


def _runs(values: list[Any]) -> list[tuple[int, int]]:
    edges = [0, *(at for at in range(1, len(values)) if values[at] != values[at - 1]), len(values)]
    return [(low, high) for low, high in pairwise(edges) if low < high]


def _kept_members(inputs: PartitionInputs, horizon_ms: int) -> pa.Table:
    """Those that left since the horizon, and the last one before of each group; open ones are found again by playing back."""
    table = inputs.table(members.NAME)
    still = {(span.group, span.member_id, span.from_ms) for span, _ in spans(inputs).open_members}
    rows = [row for row in table.to_pylist() if (row["group"], row["member_id"], row["from_ms"]) not in still]
    last: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["group"] not in last or row["to_ms"] > last[row["group"]]["to_ms"]:
            last[row["group"]] = row
    kept = [row for row in rows if row["to_ms"] >= horizon_ms or row is last[row["group"]]]
    return pa.Table.from_pylist(kept, schema=members.SCHEMA)
