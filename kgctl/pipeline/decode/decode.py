"""Decode raw records, in batches cut as one likes; and which of the offset commits took effect, and when.

The latter by the rule of Kafka's loader, for a whole partition of ``__consumer_offsets``: Kafka
(``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker``) holds a transactional commit back until the producer's
next marker, whatever its epoch. One that commits moves it into the store, unless a record with a higher log offset is there
already; a tombstone removes it, stored or held back. So, with the commits and tombstones of a key in the order in which they
take effect, a row counts exactly if its record lies behind the records of all rows before it, and no later record of the key
takes effect at the same marker. Sorting and a running maximum do for all keys what Kafka does record by record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kgctl.model.coordinator_records import RecordType
from kgctl.pipeline.decode.arrow import Bools, Cells, Int64s, int64s, nulls, only_used, order_by, ranked, text_column
from kgctl.pipeline.decode.records import NEWEST_VERSION, NO_TYPE, KeyDictionary, Values, decode_keys, decode_values, walk
from kgctl.pipeline.decode.schemas import (
    COMMITS,
    COVERAGE,
    GROUP_RECORDS,
    MARKERS,
    OFFSET_COMMITS,
    TEXT,
    UNDECODED,
    Decoded,
    Reason,
    Resolved,
    merge_runs,
    runs_of,
)
from kgctl.pipeline.store.tables import RAW
from kgctl.serde.coordinator_records import RecordDecodeError
from kgctl.serde.epoch_groups import structure_of
from kgctl.serde.record_schema import Reader, Structure, uuid_text

_NO_EXPIRY = -1


def commit_rows(keys: KeyDictionary, codes: Int64s, values: Values, is_tombstone: Bools, fine: Bools) -> dict[str, pa.Array]:
    """The columns that come from key and value, of the rows that are ``fine``. ``codes``: each row's key."""
    kept: slice | Bools = slice(None) if fine.all() else fine
    empty = is_tombstone[kept] if is_tombstone.any() else None
    key = codes[kept]
    leader_epoch = values.leader_epoch[kept]
    expire_ms = values.expire_ms[kept]
    no_expiry = expire_ms == _NO_EXPIRY
    return {
        "group": dictionary(keys.group[key], keys.groups),
        "topic": dictionary(keys.topic[key], keys.topics),
        "partition": pa.array(keys.partition[key]),
        "committed_offset": pa.array(values.committed[kept], mask=empty),
        "leader_epoch": pa.array(leader_epoch if empty is None else np.where(empty, np.int32(-1), leader_epoch)),
        "metadata": _metadata(values, is_tombstone, fine),
        "commit_timestamp_ms": pa.array(values.commit_ms[kept], mask=empty),
        "expire_timestamp_ms": pa.nulls(len(key), pa.int64()) if no_expiry.all() else pa.array(expire_ms, mask=no_expiry),
        "topic_id": _topic_ids(values.topic_ids[0][kept], values.topic_ids[1][kept], key, len(keys.commits)),
    }


def dictionary(indices: npt.NDArray[np.int32], texts: pa.Array) -> pa.Array:
    """Texts by their numbers; a negative one is null."""
    missing = indices < 0
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32(), mask=missing if missing.any() else None), texts)


def _metadata(values: Values, is_tombstone: Bools, fine: Bools) -> pa.Array:
    texts = values.metadata.dictionary_encode()
    indices = np.where(is_tombstone, np.int32(-1), np.int32(0))
    indices[values.with_metadata] = texts.indices.to_numpy() + 1
    return dictionary(indices[fine], pa.concat_arrays([pa.array([""]), texts.dictionary]))


def _topic_ids(high: Int64s, low: Int64s, key: Int64s, key_count: int) -> pa.Array:
    """The rows of a key nearly always have the same id, so it is turned into text once a key; if not, once a row."""
    key_high, key_low = np.zeros(key_count, np.int64), np.zeros(key_count, np.int64)
    key_high[key], key_low[key] = high, low
    if (key_high[key] == high).all() and (key_low[key] == low).all():
        numbers, texts = _distinct(key_high, key_low)
        return dictionary(numbers[key], texts)
    return dictionary(*_distinct(high, low))


def _distinct(high: Int64s, low: Int64s) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """(each row's number, -1 for an id of zeros; the distinct ids' texts)."""
    raw = np.stack([high, low], axis=1).astype(">i8")
    encoded = pa.Array.from_buffers(pa.binary(16), len(raw), [None, pa.py_buffer(raw.tobytes())]).dictionary_encode()
    ids = encoded.dictionary.to_pylist()
    texts = pa.array([uuid_text(one) for one in ids], pa.string())
    numbers = encoded.indices.to_numpy().astype(np.int32)
    return np.where((high == 0) & (low == 0), np.int32(-1), numbers), texts


_NEVER_INTERPRETED = (RecordType.CONSUMER_GROUP_PARTITION_METADATA, RecordType.STREAMS_GROUP_TOPOLOGY)
_VERSION_BYTES = 2


@dataclass
class GroupRows:
    """``rows`` are whole records of groups; ``refused`` the others, by reason; ``columns`` those that come from the keys."""

    rows: Int64s
    refused: dict[Reason, Int64s]
    columns: dict[str, pa.Array]


def group_rows(keys: KeyDictionary, values: pa.Array, rows: Int64s) -> GroupRows:
    """Look at the records at ``rows``, none of them an offset commit."""
    codes = keys.codes[rows]
    refused = {reason: rows[np.isin(codes, found)] for reason, found in _by_reason(keys).items()}
    of_groups = np.isin(codes, np.fromiter(keys.others, np.int64, len(keys.others)))
    rows, codes = rows[of_groups], codes[of_groups]
    is_newer, is_damaged = _judge(keys, values, rows, codes)
    refused[Reason.UNKNOWN_VERSION], refused[Reason.DAMAGED_VALUE] = rows[is_newer], rows[is_damaged]
    fine = ~(is_newer | is_damaged)
    return GroupRows(rows[fine], refused, _columns(keys, codes[fine]))


def _by_reason(keys: KeyDictionary) -> dict[Reason, Int64s]:
    found: dict[Reason, list[int]] = {}
    for code, reason in keys.reasons.items():
        found.setdefault(reason, []).append(code)
    return {reason: np.array(codes) for reason, codes in found.items()}


def _judge(keys: KeyDictionary, values: pa.Array, rows: Int64s, codes: Int64s) -> tuple[Bools, Bools]:
    """(of a version that nobody knows, damaged) of each row."""
    is_newer, is_damaged = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    cells, types = Cells(values), keys.types[codes]
    starts, ends = cells.starts[rows], cells.ends[rows]
    looked_at = ~np.isin(types, _NEVER_INTERPRETED) & values.take(pa.array(rows)).is_valid().to_numpy(zero_copy_only=False)
    is_damaged[looked_at & (ends - starts < _VERSION_BYTES)] = True
    at = np.flatnonzero(looked_at & ~is_damaged)
    versions = cells.int16s(starts[at])
    for record_type, version in sorted(set(zip(types[at].tolist(), versions.tolist(), strict=True))):
        here = at[(types[at] == record_type) & (versions == version)]
        structure = structure_of(record_type, version)
        if structure is None:
            is_newer[here] = True
            continue
        damaged, alone = walk(cells, starts[here] + _VERSION_BYTES, ends[here], structure)
        for index in np.flatnonzero(alone):
            damaged[index] = not _is_whole(structure, values[int(rows[here[index]])].as_py())
        is_damaged[here] = damaged
    return is_newer, is_damaged


def _is_whole(structure: Structure, value: bytes) -> bool:
    try:
        structure.read(Reader(value, _VERSION_BYTES))
    except RecordDecodeError:
        return False
    return True


def _columns(keys: KeyDictionary, codes: Int64s) -> dict[str, pa.Array]:
    places: npt.NDArray[np.int64] = np.zeros(len(keys.types), np.int64)
    places[list(keys.others)] = np.arange(len(keys.others))
    at = pa.array(places[codes])
    groups = pa.array([key.group for key in keys.others.values()], pa.string())
    members = pa.array([getattr(key, "member_id", None) for key in keys.others.values()], pa.string())
    return {"group": groups.take(at), "record_type": pa.array(keys.types[codes]), "member_id": members.take(at)}


BLOCK_ROWS = 1 << 18
"""Rows that are worked on at a time: bounds the memory, and the numbers stay in the processor's caches."""

READ_DICTIONARY = ("key",)
"""Read these columns of raw Parquet as dictionaries (``pyarrow.parquet.read_table(.., read_dictionary=..)``): twice as fast."""

Fields = dict[str, Any]


def decode(raw: pa.Table) -> Decoded:
    """Decode records with the columns of ``RAW``, ``key`` plain or dictionary-encoded. Rows keep their order.

    Nothing that a record holds is an error: what is not understood is a row of ``undecoded``.
    """
    blocks = [_decode_block(block) for block in raw.select(RAW.names).to_batches(max_chunksize=BLOCK_ROWS) if block.num_rows]
    return Decoded(
        _together(COMMITS, [block.commits for block in blocks]),
        _together(GROUP_RECORDS, [block.group_records for block in blocks]),
        _together(MARKERS, [block.markers for block in blocks]),
        _together(UNDECODED, [block.undecoded for block in blocks]),
        merge_runs([block.coverage for block in blocks]),
    )


def _together(schema: pa.Schema, tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()


class _Block:
    """One block's columns, and what became of each row so far."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.offsets: Int64s = batch.column("offset").to_numpy()
        self.times: Int64s = batch.column("timestamp_ms").to_numpy()
        self.reasons: dict[Reason, list[Int64s]] = {}

    def refuse(self, rows: Int64s, reason: Reason) -> None:
        """Count these rows as refused for a reason."""
        if len(rows):
            self.reasons.setdefault(reason, []).append(rows)

    def places(self, rows: Int64s) -> Fields:
        """Return the columns that each table has."""
        return {
            "log_partition": self.batch.column("partition").take(pa.array(rows)),
            "log_offset": self.offsets[rows],
            "time_ms": self.times[rows],
        }


def _decode_block(batch: pa.RecordBatch) -> Decoded:
    block = _Block(batch)
    records, markers = _split_markers(block)
    keys = decode_keys(batch.column("key"))
    codes = keys.codes[records]
    is_commit = keys.commits[codes]
    commits = _commits(block, keys, records[is_commit])
    groups = _group_records(block, keys, records[~is_commit])
    return Decoded(commits, groups, markers, _undecoded(block, keys), _coverage(block))


def _split_markers(block: _Block) -> tuple[Int64s, pa.Table]:
    """The rows that are records; and a table of those that end a transaction."""
    commits, producers = block.batch.column("commits"), block.batch.column("producer_id")
    rows = np.arange(block.batch.num_rows)
    if commits.null_count == len(commits):
        return rows, MARKERS.empty_table()
    is_record = nulls(commits)
    fine = ~is_record & ~nulls(producers)
    block.refuse(rows[~is_record & ~fine], Reason.DAMAGED_MARKER)
    at = pa.array(rows[fine])
    found = {name: block.batch.column(name).take(at) for name in ("producer_id", "producer_epoch", "commits")}
    return rows[is_record], _table(MARKERS, {**block.places(rows[fine]), **found})


def _commits(block: _Block, keys: KeyDictionary, rows: Int64s) -> pa.Table:
    column = block.batch.column("value")
    is_tombstone = nulls(column)[rows]
    values = decode_values(column, rows)
    newer = (values.version > NEWEST_VERSION) | (values.version < -1) | ((values.version == -1) & ~values.damaged)
    block.refuse(rows[newer & ~is_tombstone], Reason.UNKNOWN_VERSION)
    block.refuse(rows[values.damaged & ~newer & ~is_tombstone], Reason.DAMAGED_VALUE)
    fine = is_tombstone | ~(values.damaged | newer)
    columns = commit_rows(keys, keys.codes[rows], values, is_tombstone, fine)
    places = block.places(rows[fine])
    producers = block.batch.column("producer_id").take(pa.array(rows[fine]))
    return _table(COMMITS, {**columns, **places, "producer_id": producers})


def _group_records(block: _Block, keys: KeyDictionary, rows: Int64s) -> pa.Table:
    column = block.batch.column("value")
    found = group_rows(keys, column, rows)
    for reason, refused in found.refused.items():
        block.refuse(refused, reason)
    at = pa.array(found.rows)
    values = column.take(at)
    texts = {"tombstone": values.is_null(), "key": block.batch.column("key").take(at).cast(pa.binary()), "value": values}
    return _table(GROUP_RECORDS, {**block.places(found.rows), **found.columns, **texts})


def _undecoded(block: _Block, keys: KeyDictionary) -> pa.Table:
    parts = [(rows, reason) for reason, found in block.reasons.items() for rows in found]
    if not parts:
        return UNDECODED.empty_table()
    rows = np.concatenate([rows for rows, _ in parts])
    reasons = np.concatenate([np.full(len(rows), list(Reason).index(reason)) for rows, reason in parts])
    order = np.argsort(rows, kind="stable")
    rows, reasons = rows[order], reasons[order]
    types = keys.types[keys.codes[rows]]
    at = pa.array(rows)
    is_marker = ~nulls(block.batch.column("commits"))[rows]
    fields = {
        "reason": pa.array([reason.value for reason in Reason]).take(pa.array(reasons)),
        "record_type": pa.array(types, mask=(types == NO_TYPE) | is_marker),
        "key": block.batch.column("key").take(at).cast(pa.binary()),
        "value": block.batch.column("value").take(at),
    }
    return _table(UNDECODED, {**block.places(rows), **fields})


def _coverage(block: _Block) -> pa.Table:
    partitions: npt.NDArray[np.int32] = block.batch.column("partition").to_numpy()
    if (partitions == partitions[0]).all():
        return runs_of(int(partitions[0]), block.offsets, block.times)
    runs = [runs_of(int(one), block.offsets[partitions == one], block.times[partitions == one]) for one in np.unique(partitions)]
    return pa.concat_tables([COVERAGE.empty_table(), *runs])


def _table(schema: pa.Schema, fields: Fields) -> pa.Table:
    return pa.Table.from_arrays([pa.array(fields[name], schema.field(name).type) for name in schema.names], schema=schema)


_NEVER = np.iinfo(np.int64).max
_NAMES = ("group", "topic", "metadata", "topic_id")


@dataclass
class _Written:
    """Columns of commits, sorted by log offset, each offset once."""

    table: pa.Table
    ranks: dict[str, Int64s]
    texts: dict[str, pa.Array]
    log_offset: Int64s
    duplicates: int

    def key(self) -> list[Int64s]:
        return [self.ranks["group"], self.ranks["topic"], int64s(self.table, "partition")]


@dataclass
class _Effects:
    """Where and when each row takes effect (``_NEVER``: not), and which rows are transactional."""

    offset: Int64s
    time_ms: Int64s
    transactional: Bools
    aborted: int = 0
    open_rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))


def resolve(commits: pa.Table, markers: pa.Table) -> Resolved:
    """The commits that took effect, of the tables ``commits`` and ``markers`` of one log partition.

    Rows may come in any order, and more than once; of different rows at one log offset (which only happens where a source could
    not see transactions, or a log was truncated) one is taken by a fixed rule. A marker that was not collected leaves its commits
    open, or to the producer's next marker.
    """
    found = _each_once(commits)
    effects = _effects(found, _markers_once(markers))
    rows = np.flatnonzero(effects.offset != _NEVER)
    key = [column[rows] for column in found.key()]
    rows = rows[order_by([*key, effects.offset[rows]])]
    candidates = len(rows)
    if effects.transactional.any():
        rows = rows[_counts(found, effects, rows)]
    table = _resolved_table(found, effects, rows)
    still = found.table.take(pa.array(effects.open_rows))
    return Resolved(table, still, found.duplicates, effects.aborted, len(effects.open_rows), candidates - len(rows))


def _each_once(commits: pa.Table) -> _Written:
    named = {name: ranked(commits.column(name)) for name in _NAMES}
    ranks = {name: ranks for name, (ranks, _) in named.items()}
    offsets = int64s(commits, "log_offset")
    rows = np.arange(len(offsets))
    if (np.diff(offsets) <= 0).any():
        rows = order_by([offsets])
        if (np.diff(offsets[rows]) == 0).any():
            rows = _first_of_each(commits, ranks, offsets)
        commits = commits.take(pa.array(rows))
    return _Written(
        commits,
        {name: column[rows] for name, column in ranks.items()},
        {name: texts for name, (_, texts) in named.items()},
        offsets[rows],
        len(offsets) - len(rows),
    )


def _first_of_each(commits: pa.Table, ranks: dict[str, Int64s], offsets: Int64s) -> Int64s:
    """Of the rows of a log offset: transactional before plain, then by what they hold."""
    plain = nulls(commits.column("producer_id")).astype(np.int64)
    numbers = [
        int64s(commits, name) for name in ("time_ms", "partition", "committed_offset", "leader_epoch", "commit_timestamp_ms")
    ]
    numbers += [int64s(commits, name) for name in ("expire_timestamp_ms", "producer_id")]
    order = np.lexsort((*numbers, *(ranks[name] for name in _NAMES), plain, offsets))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(offsets[order]) > 0
    rows: Int64s = order[first]
    return rows


def _markers_once(markers: pa.Table) -> pa.Table:
    offsets = int64s(markers, "log_offset")
    order = np.lexsort((int64s(markers, "commits"), int64s(markers, "time_ms"), int64s(markers, "producer_id"), offsets))
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(offsets[order]) > 0
    return markers.take(pa.array(order[first]))


def _effects(found: _Written, markers: pa.Table) -> _Effects:
    held = ~nulls(found.table.column("producer_id")) & ~nulls(found.table.column("committed_offset"))
    effects = _Effects(found.log_offset.copy(), int64s(found.table, "time_ms").copy(), held)
    rows = np.flatnonzero(held)
    if not len(rows):
        return effects
    producers = int64s(found.table, "producer_id")[rows]
    ends = _next_marker(producers, found.log_offset[rows], markers)
    commits = np.append(int64s(markers, "commits"), 0).astype(np.bool_)[ends]
    is_open = ends == markers.num_rows
    effects.offset[rows] = np.where(commits, np.append(int64s(markers, "log_offset"), _NEVER)[ends], _NEVER)
    effects.time_ms[rows] = np.append(int64s(markers, "time_ms"), 0)[ends]
    effects.open_rows = rows[is_open]
    effects.aborted = int((~commits & ~is_open).sum())
    return effects


def _next_marker(producers: Int64s, offsets: Int64s, markers: pa.Table) -> Int64s:
    """The row in ``markers`` of each producer's first marker behind each offset; their number where there is none."""
    ended, marker_offsets = int64s(markers, "producer_id"), int64s(markers, "log_offset")
    count = len(ended)
    producer = np.concatenate([ended, producers])
    order = np.lexsort((np.concatenate([marker_offsets, offsets]), producer))
    place = np.where(order < count, np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    at = np.append(order, count)[following]
    same = np.append(producer, 0)[np.where(at < count, at, 0)] == producer[order] if count else np.zeros(len(order), np.bool_)
    found = np.full(len(order), count)
    found[order] = np.where((at < count) & same, at, count)
    return found[count:]


def _counts(found: _Written, effects: _Effects, rows: Int64s) -> Bools:
    """Of ``rows``, sorted by key and effect: which Kafka's store would have taken."""
    same_key = np.ones(max(len(rows) - 1, 0), np.bool_)
    for column in found.key():
        same_key &= column[rows][1:] == column[rows][:-1]
    begins = np.concatenate([[True], ~same_key])
    record = (np.cumsum(begins) << 32) | rows
    counts: Bools = record == np.maximum.accumulate(record)
    counts[:-1] &= ~(same_key & (np.diff(effects.offset[rows]) == 0))
    return counts


def _resolved_table(found: _Written, effects: _Effects, rows: Int64s) -> pa.Table:
    at = pa.array(rows)
    columns = {}
    for schema_field in OFFSET_COMMITS:
        name = schema_field.name
        if schema_field.type == TEXT:
            columns[name] = text_column(*only_used(found.ranks[name][rows], found.texts[name]))
        elif name not in ("time_ms", "effect_offset", "transactional"):
            columns[name] = found.table.column(name).take(at)
    columns["time_ms"] = pa.array(effects.time_ms[rows])
    columns["effect_offset"] = pa.array(effects.offset[rows])
    columns["transactional"] = pa.array(effects.transactional[rows])
    return pa.Table.from_arrays([columns[name] for name in OFFSET_COMMITS.names], schema=OFFSET_COMMITS).combine_chunks()
