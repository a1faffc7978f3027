"""What an incremental build goes on from: the state of a slice, rows of tables as large as what is still going on.

From the horizon on rows are made again by each build, with all that came since, and take the place of those that were there. So
the state has every commit from the horizon on, and of what is older as much as those rows look back at: of each series its last
entries by Burrow's rules and what resets are told by, of each group where playing it back stands and its last generation, of each
log the samples around these commits.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, nulls, order_by, ranked
from kgctl.pipeline.decode.schemas import COMMITS, OFFSET_COMMITS
from kgctl.pipeline.store.files import bucket_of
from kgctl.pipeline.store.tables import LOG_OFFSETS, RAW
from kgctl.pipeline.tables.collected import log_end_rows
from kgctl.pipeline.tables.lag import INTERVALS, MIN_DISTANCE_MS
from kgctl.pipeline.tables.membership import GROUP_GENERATIONS, MEMBERS
from kgctl.pipeline.tables.registry import BEGIN_MS, ClusterInputs, LateSamplesError, OutdatedError, PartitionInputs
from kgctl.pipeline.tables.replay import STATES, spans
from kgctl.pipeline.tables.resets import KNOWN, known_until
from kgctl.pipeline.tables.series import Samples, Series, begins, numbered, samples, series

PLACE_BITS = 47
_MASK = (1 << PLACE_BITS) - 1
_MOST_PARTITIONS = 1 << 16
_GROUP_AT = 4
_STRETCH_ROWS = 1 << 20
"""So many records are sorted into slices at a time; their values fit into one array."""
ROWS_IN_SLICE = 150_000


class Slice(NamedTuple):
    """The buckets from ``first`` on and before ``end``."""

    first: int
    end: int


def slices_of(rows: int, buckets: int) -> list[Slice]:
    """Return as many slices as this number of rows is worth."""
    return slices_into(max(rows // ROWS_IN_SLICE, 1), buckets)


def slices_into(count: int, buckets: int) -> list[Slice]:
    """Return this number of slices, or one for each bucket."""
    count = min(count, buckets)
    edges = [buckets * number // count for number in range(count + 1)]
    return [Slice(first, end) for first, end in pairwise(edges)]


def sliced(tables: Iterable[pa.Table], slices: Sequence[Slice], buckets: int) -> list[pa.Table]:
    """The records (`RAW`, keys plain or as dictionaries) of each slice, with places, sorted by them; markers, which have no key,
    are in all slices. Each record is copied once, out of a stretch that is one piece of memory: elsewhere `take` costs much more.
    """
    parts: list[list[pa.Table]] = [[] for _ in slices]
    for table in tables:
        for low in range(0, table.num_rows, _STRETCH_ROWS):
            stretch, _ = placed(table.slice(low, _STRETCH_ROWS).combine_chunks())
            rows = _rows_of_slices(stretch, slices, buckets)
            taken = stretch if len(slices) == 1 else stretch.take(pa.array(np.concatenate(rows)))
            ends = np.cumsum([len(each) for each in rows])
            for part, each, end in zip(parts, rows, ends.tolist(), strict=True):
                part.append(taken.slice(end - len(each), len(each)))
    return [_joined(part) for part in parts]


def _rows_of_slices(raw: pa.Table, slices: Sequence[Slice], buckets: int) -> list[Int64s]:
    if len(slices) == 1:
        return [np.arange(raw.num_rows)]
    bucket = buckets_of_keys(raw.column("key"), buckets).astype(np.int16)  # numpy sorts short integers in one pass
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], [0, *(each.end for each in slices)])
    markers = order[: edges[0]]
    return [np.sort(np.concatenate([markers, order[low:high]])) for low, high in pairwise(edges.tolist())]


def _joined(parts: list[pa.Table]) -> pa.Table:
    """Stretches of one slice as one table, sorted by place."""
    if not parts:
        return RAW.empty_table()
    table = pa.concat_tables(parts).unify_dictionaries().combine_chunks()
    place = table.column("offset").to_numpy()
    if (np.diff(place) < 0).any():
        table = table.take(pa.array(np.argsort(place, kind="stable")))
    key = table.column("key")
    if not pa.types.is_dictionary(key.type) or not table.num_rows:
        return table
    encoded = key.chunk(0)
    used = pc.unique(encoded.indices.drop_null())
    numbers = np.zeros(len(encoded.dictionary) + 1, np.int32)
    numbers[used.to_numpy()] = np.arange(len(used))
    missing = nulls(encoded)
    indices = pa.array(numbers[encoded.indices.fill_null(-1).to_numpy()], mask=missing if missing.any() else None)
    return table.set_column(
        RAW.get_field_index("key"), "key", pa.DictionaryArray.from_arrays(indices, encoded.dictionary.take(used))
    )


def buckets_of_keys(keys: pa.ChunkedArray, buckets: int) -> Int64s:
    """Each row's bucket; -1 without a key. A key that names no group is in bucket 0."""
    if not len(keys):
        return np.zeros(0, np.int64)
    encoded = keys.dictionary_encode().unify_dictionaries().combine_chunks() if keys.num_chunks != 1 else keys.dictionary_encode()
    array = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    found = np.array([_bucket_of_key(key, buckets) for key in array.dictionary.to_pylist()] + [-1], np.int64)
    buckets_of_rows: Int64s = found[array.indices.fill_null(len(array.dictionary)).to_numpy()]
    return buckets_of_rows


def _bucket_of_key(key: bytes, buckets: int) -> int:
    """Every key begins with a type and a group: int16, then a text with its length before it as int16."""
    if len(key) < _GROUP_AT:
        return 0
    size = int.from_bytes(key[2:_GROUP_AT], "big", signed=True)
    return zlib.crc32(key[_GROUP_AT : _GROUP_AT + max(size, 0)]) % buckets


def placed(raw: pa.Table) -> tuple[pa.Table, int]:
    """(records with places for offsets, how many are left out because no log is that long); sorted by place."""
    partition, offset = raw.column("partition").to_numpy().astype(np.int64), raw.column("offset").to_numpy()
    fine = (offset >= 0) & (offset <= _MASK) & (partition >= 0) & (partition < _MOST_PARTITIONS)
    left_out = int((~fine).sum())
    if left_out:
        raw, partition, offset = raw.filter(pa.array(fine)), partition[fine], offset[fine]
    place = (partition << PLACE_BITS) | offset
    producer = raw.column("producer_id").to_numpy(zero_copy_only=False) if raw.column("producer_id").null_count == 0 else None
    if producer is None:
        filled = raw.column("producer_id").fill_null(0).to_numpy()
        producers = pa.array((partition << PLACE_BITS) | (filled & _MASK), mask=nulls(raw.column("producer_id")))
    else:
        producers = pa.array((partition << PLACE_BITS) | (producer & _MASK))
    columns = {name: raw.column(name) for name in RAW.names}
    columns["offset"], columns["producer_id"] = pa.chunked_array([pa.array(place)]), pa.chunked_array([producers])
    table = pa.table(columns)
    if (np.diff(place) < 0).any():
        table = table.take(pa.array(np.argsort(place, kind="stable")))
    return table, left_out


def placed_runs(coverage: pa.Table) -> pa.Table:
    """Return the runs of offsets that were read, with their places."""
    shift = pa.array(coverage.column("log_partition").to_numpy().astype(np.int64) << PLACE_BITS)
    found = coverage
    for name in ("first_offset", "last_offset"):
        found = found.set_column(found.schema.get_field_index(name), found.schema.field(name), pc.add(found.column(name), shift))
    return found


def unplaced(table: pa.Table) -> pa.Table:
    """The rows with ``log_partition`` and ``log_offset`` as they are, instead of places."""
    if "log_offset" not in table.column_names:
        return table
    place = table.column("log_offset").to_numpy()
    columns = {name: table.column(name) for name in table.column_names}
    columns["log_partition"] = pa.array((place >> PLACE_BITS).astype(np.int32))
    columns["log_offset"] = pa.array(place & _MASK)
    if "effect_offset" in columns:
        columns["effect_offset"] = pa.array(table.column("effect_offset").to_numpy() & _MASK)
    return pa.table(columns)


KEPT = INTERVALS + 2
"""So many samples before the horizon are kept of each log: as many as Burrow's rules look back, and those beside them."""
_NEIGHBOURS = 2

CLEANED = pa.schema([*LOG_OFFSETS, ("number", pa.int64()), ("life", pa.int64()), ("is_first", pa.bool_())])
"""Samples with a known end, numbered without a gap by log; ``life`` numbers the log's lives, ``is_first`` begins one."""


@dataclass(frozen=True)
class Sampled:
    """``cleaned``: `CLEANED`, settled; ``raw``: as collected, from the horizon on and a few before it."""

    cleaned: pa.Table
    raw: pa.Table
    horizon_ms: int = BEGIN_MS

    @classmethod
    def nothing(cls) -> Sampled:
        """Return the state of samples before the first build."""
        return cls(CLEANED.empty_table(), LOG_OFFSETS.empty_table())

    def with_more(self, fresh: pa.Table) -> pa.Table:
        """`CLEANED`: what was settled, and what is so far of the samples from the horizon on, new ones among them.

        Raises `LateSamplesError` where a new one is older than the horizon, or shows that a settled one has to go.
        """
        is_late = pc.less(fresh.column("timestamp_ms"), self.horizon_ms)
        if pc.any(is_late).as_py():
            raise LateSamplesError("samples of log ends came late", topics_of(fresh.filter(is_late)))
        together = pa.concat_tables([self.raw, fresh])
        found = _clean(together)
        is_settled = pc.less(found.column("timestamp_ms"), self.horizon_ms)
        if self.raw.num_rows and fresh.num_rows:
            before = _clean(self.raw)
            gone = _lacking(_until_first_behind(found, self.horizon_ms), _until_first_behind(before, self.horizon_ms))
            if gone.num_rows:
                raise LateSamplesError("a sample of a log end came from a replica that was behind", topics_of(gone))
        return _numbered_on(self.cleaned, found.filter(pc.invert(is_settled)))

    def until(self, horizon_ms: int, fresh: pa.Table, cleaned: pa.Table) -> Sampled:
        """What is kept for a build from a later horizon on. ``cleaned``: what `with_more` has made of ``fresh``."""
        raw = pa.concat_tables([self.raw, fresh])
        order, log, times = _ordered(raw)
        is_old = times < horizon_ms
        moments: Int64s = np.cumsum(begins(log, times)).astype(np.int64)
        kept = ~is_old | _is_among_last(log, moments, is_old, _NEIGHBOURS)
        return Sampled(settled(cleaned, horizon_ms), raw.take(pa.array(order[kept])), horizon_ms)


def settled(cleaned: pa.Table, horizon_ms: int) -> pa.Table:
    """The last samples of each log before the horizon, and the first of its life then."""
    order, log, times = _ordered(cleaned)
    life, is_first = int64s(cleaned, "life")[order], int64s(cleaned, "is_first")[order] > 0
    is_old = times < horizon_ms
    kept = _is_among_last(log, np.arange(len(log)), is_old, KEPT)
    last_life = np.full(int(log[-1]) + 1 if len(log) else 0, -1)
    np.maximum.at(last_life, log[is_old], life[is_old])
    kept |= is_old & is_first & (life == last_life[log])
    return cleaned.take(pa.array(order[kept]))


def _until_first_behind(cleaned: pa.Table, horizon_ms: int) -> pa.Table:
    """The samples that rows from before the horizon depend on: those up to there, and the next one of each log."""
    order, log, times = _ordered(cleaned)
    is_behind = times >= horizon_ms
    first = is_behind & begins(log, is_behind.astype(np.int64)) if len(log) else is_behind
    return cleaned.select(LOG_OFFSETS.names).take(pa.array(order[~is_behind | first]))


def _lacking(table: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows that are not in ``table``; each is in either once."""
    both = pa.concat_tables([table, rows])
    marked = both.append_column("mark", pa.array([1] * table.num_rows + [2] * rows.num_rows, pa.int64()))
    counts = marked.group_by(rows.column_names).aggregate([("mark", "sum")])
    return counts.filter(pc.equal(counts.column("mark_sum"), 2))


def topics_of(samples: pa.Table) -> frozenset[str]:
    """The topics that samples are of."""
    return frozenset(pc.unique(samples.column("topic")).to_pylist())


def _clean(raw: pa.Table) -> pa.Table:
    found = log_end_rows(ClusterInputs(raw))
    known = found.filter(pc.is_valid(found.column("log_end_offset")))
    return known.set_column(0, "topic", known.column("topic").cast(pa.string()))


def _ordered(table: pa.Table) -> tuple[Int64s, Int64s, Int64s]:
    """(rows by log and time, the logs' numbers in that order, the times)."""
    topic, _ = ranked(table.column("topic"))
    partition, times = int64s(table, "partition"), int64s(table, "timestamp_ms")
    order = order_by([topic, partition, times])
    return order, np.cumsum(begins(topic[order], partition[order])) - 1, times[order]


def _is_among_last(log: Int64s, number: Int64s, is_old: Bools, count: int) -> Bools:
    """Which rows have one of the last ``count`` numbers of their log, of those that are old."""
    last = np.full(int(log[-1]) + 1 if len(log) else 0, -1)
    np.maximum.at(last, log[is_old], number[is_old])
    found: Bools = is_old & (number > last[log] - count)
    return found


def _numbered_on(known: pa.Table, found: pa.Table) -> pa.Table:
    """``known``, and behind it in each log the rows of ``found`` with numbers and lives that go on."""
    if not known.num_rows and not found.num_rows:
        return known
    blank = {name: pa.nulls(found.num_rows, CLEANED.field(name).type) for name in ("number", "life", "is_first")}
    fresh = pa.table({**{name: found.column(name) for name in LOG_OFFSETS.names}, **blank}).cast(CLEANED)
    both = pa.concat_tables([known, fresh])
    order, log, _ = _ordered(both)
    both = both.take(pa.array(order))
    is_known = order < known.num_rows
    number, life, is_first = numbered(log, int64s(both, "log_end_offset"))
    old_number, old_life = int64s(both, "number"), int64s(both, "life")
    last = np.maximum.accumulate(np.where(is_known, np.arange(len(log)), -1))
    goes_on = (last >= 0) & (log[last] == log)
    number = np.where(goes_on, number - number[last] + old_number[last], number)
    life = np.where(goes_on, life - life[last] + old_life[last], life)
    is_first = np.where(is_known, int64s(both, "is_first") > 0, is_first)
    columns = {name: both.column(name) for name in LOG_OFFSETS.names}
    columns |= {"number": pa.array(number), "life": pa.array(life), "is_first": pa.array(is_first)}
    return pa.table(columns).cast(CLEANED)


GROUPS = pa.schema([pa.field("group", pa.string(), nullable=False), pa.field("state", pa.string(), nullable=False)])
SCHEMAS: Mapping[str, pa.Schema] = {
    "open": COMMITS,
    "commits": OFFSET_COMMITS,
    "known": KNOWN,
    STATES: GROUPS,
    GROUP_GENERATIONS.name: GROUP_GENERATIONS.schema,
    MEMBERS.name: MEMBERS.schema,
    "samples": CLEANED,
}
"""``open``: commits of transactions that have not ended. Offsets are places (`kgctl.pipeline.builds.carry`)."""


@dataclass(frozen=True)
class Carried:
    """The state of a slice. Made by `carry`; `bytes_of` and `of_bytes` are each other's reverse."""

    horizon_ms: int = BEGIN_MS
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def table(self, name: str) -> pa.Table:
        """Return a table's rows; none where the state has no such table."""
        found = self.tables.get(name)
        return SCHEMAS[name].empty_table() if found is None else found

    def of_slice(self, chosen: Slice, buckets: int) -> Carried:
        """Return the part of some buckets, with the samples of all."""
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
    """Return the state as the table ``state`` keeps it."""
    return packed_tables({"horizon_ms": carried.horizon_ms}, {name: carried.table(name) for name in SCHEMAS})


def of_bytes(data: bytes) -> Carried:
    """Return the state that `bytes_of` wrote."""
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
    """Return the tables that `packed_tables` wrote."""
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
        "known": known_until(inputs, horizon_ms),
        GROUP_GENERATIONS.name: _kept_generations(inputs, commits, horizon_ms),
        MEMBERS.name: _kept_members(inputs, horizon_ms),
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
    if not old.num_rows:
        return sampled
    return _each_sample_once(pa.concat_tables([old, sampled]))


def _kept_generations(inputs: PartitionInputs, commits: Series, horizon_ms: int) -> pa.Table:
    """Of each group those since the horizon and since the first commit that is looked at again, and the one before; and one that
    tells that it had members. Rows that may still change are found again by playing back."""
    table = inputs.table(GROUP_GENERATIONS.name)
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
    table = inputs.table(MEMBERS.name)
    still = {(span.group, span.member_id, span.from_ms) for span, _ in spans(inputs).open_members}
    rows = [row for row in table.to_pylist() if (row["group"], row["member_id"], row["from_ms"]) not in still]
    last: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["group"] not in last or row["to_ms"] > last[row["group"]]["to_ms"]:
            last[row["group"]] = row
    kept = [row for row in rows if row["to_ms"] >= horizon_ms or row is last[row["group"]]]
    return pa.Table.from_pylist(kept, schema=MEMBERS.schema)
