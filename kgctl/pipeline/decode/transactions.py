"""Which offset commits took effect, and when: the rule of Kafka's loader, for a whole partition of ``__consumer_offsets``.

Kafka (``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker``) holds a transactional commit back until the producer's
next marker, whatever its epoch. One that commits moves it into the store, unless a record with a higher log offset is there
already; a tombstone removes it, stored or held back. So, with the commits and tombstones of a key in the order in which they
take effect, a row counts exactly if its record lies behind the records of all rows before it, and no later record of the key
takes effect at the same marker. Sorting and a running maximum do for all keys what Kafka does record by record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, Int64s, int64s, nulls, only_used, order_by, ranked, text_column
from kgctl.pipeline.decode.schemas import OFFSET_COMMITS, TEXT, Resolved

_NEVER = np.iinfo(np.int64).max
_NAMES = ("group", "topic", "metadata", "topic_id")


@dataclass
class _Commits:
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
    table = _table(found, effects, rows)
    still = found.table.take(pa.array(effects.open_rows))
    return Resolved(table, still, found.duplicates, effects.aborted, len(effects.open_rows), candidates - len(rows))


def _each_once(commits: pa.Table) -> _Commits:
    named = {name: ranked(commits.column(name)) for name in _NAMES}
    ranks = {name: ranks for name, (ranks, _) in named.items()}
    offsets = int64s(commits, "log_offset")
    rows = np.arange(len(offsets))
    if (np.diff(offsets) <= 0).any():
        rows = order_by([offsets])
        if (np.diff(offsets[rows]) == 0).any():
            rows = _first_of_each(commits, ranks, offsets)
        commits = commits.take(pa.array(rows))
    return _Commits(
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


def _effects(found: _Commits, markers: pa.Table) -> _Effects:
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


def _counts(found: _Commits, effects: _Effects, rows: Int64s) -> Bools:
    """Of ``rows``, sorted by key and effect: which Kafka's store would have taken."""
    same_key = np.ones(max(len(rows) - 1, 0), np.bool_)
    for column in found.key():
        same_key &= column[rows][1:] == column[rows][:-1]
    begins = np.concatenate([[True], ~same_key])
    record = (np.cumsum(begins) << 32) | rows
    counts: Bools = record == np.maximum.accumulate(record)
    counts[:-1] &= ~(same_key & (np.diff(effects.offset[rows]) == 0))
    return counts


def _table(found: _Commits, effects: _Effects, rows: Int64s) -> pa.Table:
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
