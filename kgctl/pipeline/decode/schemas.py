"""What decoding makes of raw records: Arrow schemas, the result as a whole, runs of offsets.

Times are int64 milliseconds, named ``*_ms``.

Strings that repeat in nearly every row (`TEXT`) are dictionary-encoded: Parquet stores them so, and working with them costs an
integer's time. Readers that do not know Arrow's dictionaries (Spark, DuckDB) see plain strings in the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.arrow import Bools, Int64s
from kgctl.pipeline.store.tables import columns_of

TEXT = pa.dictionary(pa.int32(), pa.string())
"""A string that repeats."""

OFFSET_COMMITS = columns_of("offset_commits", text=TEXT)
"""What took effect: one row a commit or tombstone, each log offset once, sorted by group, topic, partition, effect_offset.

A transactional commit has the time and, as ``effect_offset``, the log offset of the marker that committed it; ``log_offset`` is
its record's own. Of the rows of a key with ``time_ms`` up to T, the one with the highest ``effect_offset`` counts."""

COMMITS = columns_of("offset_commits", "effect_offset", "transactional", text=TEXT).append(pa.field("producer_id", pa.int64()))
"""OffsetCommit records of types 0 and 1, one row each, in the order of the raw records, transactions still open.

A tombstone has null ``committed_offset``, ``metadata``, ``commit_timestamp_ms``. ``leader_epoch`` is -1 where unknown,
``topic_id`` Kafka's base64 form or null, ``time_ms`` the record's timestamp, ``producer_id`` null for plain commits."""

MARKERS = pa.schema(
    [
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        ("producer_epoch", pa.int16()),
        pa.field("commits", pa.bool_(), nullable=False),
    ]
)
"""Ends of transactions."""

GROUP_RECORDS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("record_type", pa.int16(), nullable=False),
        ("member_id", pa.string()),
        pa.field("time_ms", pa.int64(), nullable=False),
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("tombstone", pa.bool_(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        ("value", pa.binary()),
    ]
)
"""Records of types 2-8 and 16 that are whole: ``kgctl.serde.coordinator_records.decode_record(key, value)`` reads each."""

UNDECODED = columns_of("undecoded")
"""Records that kgctl does not understand, as they are; ``reason`` is a value of `kgctl.pipeline.decode.schemas.Reason`."""

COVERAGE = columns_of("coverage", "time")
"""Runs of log offsets without a hole, both ends inclusive, with the times of their first and last record."""


class Reason(StrEnum):
    """Why a record was not decoded."""

    UNKNOWN_TYPE = "unknown_type"
    """A record type of a newer broker."""
    UNKNOWN_VERSION = "unknown_version"
    """A value in a version of a newer broker."""
    NO_KEY = "no_key"
    DAMAGED_KEY = "damaged_key"
    DAMAGED_VALUE = "damaged_value"
    DAMAGED_MARKER = "damaged_marker"
    """The end of a transaction that does not say of whose."""


@dataclass(frozen=True)
class Decoded:
    """A batch of raw records, decoded: each raw row is a row of exactly one of the first four tables.

    Schemas: ``COMMITS``, ``GROUP_RECORDS``, ``MARKERS``, ``UNDECODED``, ``COVERAGE``. Commits of transactions are not resolved
    yet, because a marker may be in another batch: `kgctl.pipeline.decode.decode.resolve` does that for a whole partition.
    """

    commits: pa.Table
    group_records: pa.Table
    markers: pa.Table
    undecoded: pa.Table
    coverage: pa.Table

    def counts(self) -> dict[str, int]:
        """Rows by kind: commits (tombstones and transactional ones among them), group_records, markers, and each `Reason`."""
        reasons = {reason.value: 0 for reason in Reason}
        for found in self.undecoded.column("reason").value_counts().to_pylist():
            reasons[found["values"]] = found["counts"]
        return {
            "commits": self.commits.num_rows,
            "tombstones": self.commits.column("committed_offset").null_count,
            "transactional": self.commits.num_rows - self.commits.column("producer_id").null_count,
            "group_records": self.group_records.num_rows,
            "markers": self.markers.num_rows,
            **reasons,
        }


@dataclass(frozen=True)
class Resolved:
    """The offset commits of a whole partition of ``__consumer_offsets`` that took effect (``OFFSET_COMMITS``), and what did not.

    ``duplicates``: rows of a log offset that was there already; ``aborted``: commits of aborted transactions; ``open``: commits
    whose transaction has no end yet; ``overtaken``: commits of committed transactions that something later on had replaced or
    removed before the marker came, or that a later commit of the same transaction replaced.
    """

    offset_commits: pa.Table
    open_commits: pa.Table | None = None
    """The rows (``COMMITS``) whose transaction has no end yet."""
    duplicates: int = 0
    aborted: int = 0
    open: int = 0
    overtaken: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counts by name, ``took_effect`` among them."""
        numbers = {name: getattr(self, name) for name in ("duplicates", "aborted", "open", "overtaken")}
        return {"took_effect": self.offset_commits.num_rows, **numbers}


def runs_of(log_partition: int, offsets: Int64s, times_ms: Int64s) -> pa.Table:
    """The runs (``COVERAGE``) of records of one log partition, in any order; an offset may be there twice."""
    if len(offsets) and (np.diff(offsets) <= 0).any():
        order = np.lexsort((times_ms, offsets))
        offsets, times_ms = offsets[order], times_ms[order]
    begins = np.ones(len(offsets), np.bool_)
    begins[1:] = np.diff(offsets) > 1
    return _table(log_partition, begins, (offsets, times_ms), (offsets, times_ms))


def merge_runs(tables: Sequence[pa.Table]) -> pa.Table:
    """All runs of ``tables`` as the fewest runs, by log partition and offset, whatever the order and overlap of the input."""
    together = pa.concat_tables([COVERAGE.empty_table(), *tables])
    columns = [together.column(name).to_numpy() for name in COVERAGE.names]
    partitions = columns[0]
    merged = [_merge(int(one), *(column[partitions == one] for column in columns[1:])) for one in np.unique(partitions)]
    return pa.concat_tables([COVERAGE.empty_table(), *merged]).combine_chunks()


def _merge(log_partition: int, first: Int64s, last: Int64s, first_ms: Int64s, last_ms: Int64s) -> pa.Table:
    order = np.lexsort((first_ms, first))
    first, last, first_ms, last_ms = first[order], last[order], first_ms[order], last_ms[order]
    reach = np.maximum.accumulate(last)
    begins = np.ones(len(first), np.bool_)
    begins[1:] = first[1:] > reach[:-1] + 1
    by_end = np.lexsort((last_ms, last, np.cumsum(begins)))
    return _table(log_partition, begins, (first, first_ms), (last[by_end], last_ms[by_end]))


def _table(log_partition: int, begins: Bools, first: tuple[Int64s, Int64s], last: tuple[Int64s, Int64s]) -> pa.Table:
    """Rows ``begins`` open a run; the row before the next one closes it. ``first``, ``last``: offsets and times."""
    opening = np.flatnonzero(begins)
    closing = np.append(opening[1:], len(begins)) - 1 if len(begins) else opening
    partitions = np.full(len(opening), log_partition, np.int32)
    columns = [partitions, first[0][opening], last[0][closing], first[1][opening], last[1][closing]]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=COVERAGE)
